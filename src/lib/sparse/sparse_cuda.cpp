#include "lib/sparse/sparse_cuda.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/sparse/blocked_ell_kernels.cuh"
#include "lib/sparse/conversion_kernels.cuh"
#include "lib/sparse/counting_kernels.cuh"
#include "lib/sparse/format_kernels.cuh"
#include "lib/sparse/ordering_kernels.cuh"
#include "lib/sparse/sparse_kernels.cuh"
#include "lib/sparse/sparse_vectors_kernels.cuh"
#include "lib/sparse/spmm_kernels.cuh"

namespace troupe::host::cuda {
namespace {

/// For each form the one algorithm whose results are the same, bit for bit, in every run: a replay
/// must repeat the answer.
cusparseSpMVAlg_t algorithm(const PreparedMatrix::Key& key) {
  return key.slice_rows == 0 ? CUSPARSE_SPMV_CSR_ALG2 : CUSPARSE_SPMV_SELL_ALG1;
}
constexpr std::size_t kPreparedMatrices = 64;

const Operand& offsets_of(const sparse::Spmv& op) {
  return op.row_begin;
}
const Operand& offsets_of(const sparse::SpmvSell& op) {
  return op.slice_begin;
}

cusparseStatus_t describe(const PreparedMatrix::Key& key, cusparseConstSpMatDescr_t* matrix) {
  const auto type = value_type(key.dtype);
  const auto index = index_type(key.index_dtype);
  if (key.slice_rows == 0) {
    return cusparseCreateConstCsr(matrix, key.rows, key.columns, key.nonzeros, key.offsets,
                                  key.column, key.value, index, index, CUSPARSE_INDEX_BASE_ZERO,
                                  type);
  }
  return cusparseCreateConstSlicedEll(matrix, key.rows, key.columns, key.nonzeros, key.stored,
                                      key.slice_rows, key.offsets, key.column, key.value, index,
                                      index, CUSPARSE_INDEX_BASE_ZERO, type);
}

}  // namespace

Sparse::~Sparse() {
  for (auto& state : states_) {
    forget(state, 0);
    state.transpositions.forget(services_, 0);
  }
}

Result<void> Sparse::open(Queue queue) {
  auto& opened = state(queue);
  if (!opened.handle) TROUPE_CUDA_TRY(cusparseCreate(opened.handle.out()));
  const auto handle = opened.handle.get();
  opened.stream = services_.stream(queue);
  TROUPE_CUDA_TRY(cusparseSetStream(handle, opened.stream));
  TROUPE_CUDA_TRY(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
  opened.scalars = ScalarsAt::host;
  if (!opened.count) {
    auto count = services_.reserve(queue, sizeof(std::int64_t));
    if (!count) return count.error();
    opened.count = std::move(*count);
  }
  if (queue.detour) return {};
  TROUPE_CUDA_TRY(kernels::preload_sparse());
  TROUPE_CUDA_TRY(kernels::preload_spmm());
  TROUPE_CUDA_TRY(kernels::preload_sparse_vectors());
  TROUPE_CUDA_TRY(kernels::preload_ordering());
  TROUPE_CUDA_TRY(kernels::preload_counting());
  TROUPE_CUDA_TRY(kernels::preload_conversions());
  TROUPE_CUDA_TRY(kernels::preload_formats());
  TROUPE_CUDA_TRY(kernels::preload_blocked_ell());
  return warm_up(queue);
}

/// The matrix is 1 x 1 with one element, 0: row_begin is {0, 1}.
Result<void> Sparse::warm_up(Queue queue) {
  const WarmUp warming(services_, queue);
  const auto call = warming.call();
  const auto rows = WarmUp::part(1), zeros = WarmUp::part(2), result = WarmUp::part(3);
  for (const auto index : {DType::i32, DType::i64}) {
    auto* const row_begin = call.at(rows);
    TROUPE_CUDA_TRY(cudaMemsetAsync(row_begin, 0, rows.bytes, services_.stream(queue)));
    TROUPE_CUDA_PROPAGATE(
        services_.fill(queue, row_begin + size_of(index), {1}, size_of(index), 1));
    for (const auto dtype : WarmUp::kReals) {
      TROUPE_CUDA_PROPAGATE(run(
          sparse::Spmv{dtype, index, 1, 1, 1, {}, {}, rows, zeros, zeros, zeros, result}, call));
      TROUPE_CUDA_PROPAGATE(run(
          sparse::SpmvSell{dtype, index, 1, 1, 1, 1, 1, {}, {}, rows, zeros, zeros, zeros, result},
          call));
      TROUPE_CUDA_PROPAGATE(run(sparse::Gather{dtype, index, 1, 1, zeros, zeros, result}, call));
    }
    TROUPE_CUDA_PROPAGATE(warm_up_products(call, index, rows));
    TROUPE_CUDA_PROPAGATE(warm_up_conversions(call, index, rows));
    TROUPE_CUDA_PROPAGATE(run(sparse::Spmm{DType::f32,
                                           index,
                                           blas::Transpose::yes,
                                           {},
                                           {},
                                           {},
                                           1,
                                           1,
                                           1,
                                           1,
                                           1,
                                           1,
                                           {},
                                           {},
                                           rows,
                                           zeros,
                                           zeros,
                                           zeros,
                                           result},
                              call));
  }
  forget(state(queue), 0);
  state(queue).transpositions.forget(services_, 0);
  return {};
}

/// The square of that matrix.
Result<void> Sparse::warm_up_products(const Call& call, DType index, const Operand& row_begin) {
  auto& its_state = state(call.queue());
  TROUPE_CUDA_PROPAGATE(point_at(its_state, ScalarsAt::host));
  const auto at = [&](std::uint64_t part) { return call.at(WarmUp::part(part)); };
  const CsrFactor matrix{1, 1, 1, call.at(row_begin), at(2), at(2)};
  const CsrProduct product{1, at(4), at(5), at(6)};
  for (const auto dtype : WarmUp::kReals) {
    const auto count = its_state.multiplication.run(its_state.handle.get(), its_state.stream,
                                                    {dtype, index}, matrix, matrix, product);
    // What the loaded cuSPARSE does not have fails when it is asked for.
    if (!count.ok() && count.code() != Errc::unsupported) return count.error();
  }
  return {};
}

Result<void> Sparse::point_at(State& state, ScalarsAt where) {
  check(static_cast<bool>(state.handle), "the sparse lane is not open");
  if (state.scalars == where) return {};
  TROUPE_CUDA_TRY(cusparseSetPointerMode(state.handle.get(), where == ScalarsAt::host
                                                                 ? CUSPARSE_POINTER_MODE_HOST
                                                                 : CUSPARSE_POINTER_MODE_DEVICE));
  state.scalars = where;
  return {};
}

void Sparse::overwrites(const Operand& range) {
  for (auto& state : states_) {
    state.transpositions.overwrites(services_, range);
    std::erase_if(state.prepared, [&](const PreparedMatrix& entry) {
      if (!overlap(entry.structure[0], range) && !overlap(entry.structure[1], range)) return false;
      services_.note_given_back();
      if (entry.workspace != nullptr) (void)cudaFreeAsync(entry.workspace, state.stream);
      return true;
    });
  }
}

/// Keeps the `keep` most recently used matrices.
void Sparse::forget(State& state, std::size_t keep) {
  auto& cache = state.prepared;
  while (cache.size() > keep) {
    if (auto* workspace = cache.back().workspace; workspace != nullptr)
      (void)cudaFreeAsync(workspace, state.stream);
    cache.pop_back();
    services_.note_given_back();
  }
}

/// What is cached for the matrix, made if it is not there, with x and y set to the given vectors.
Result<PreparedMatrix*> Sparse::prepare(State& state, const PreparedMatrix::Key& key,
                                        const void* alpha, const void* beta, void* x, void* y) {
  const auto handle = state.handle.get();
  auto& cache = state.prepared;
  const auto found = std::find_if(cache.begin(), cache.end(),
                                  [&](const PreparedMatrix& entry) { return entry.key == key; });
  if (found != cache.end()) {
    cache.splice(cache.begin(), cache, found);
    TROUPE_CUDA_TRY(cusparseDnVecSetValues(cache.front().x.get(), x));
    TROUPE_CUDA_TRY(cusparseDnVecSetValues(cache.front().y.get(), y));
    return &cache.front();
  }

  if (services_.records()) return Services::not_recorded("what it prepares for a matrix");
  PreparedMatrix made;
  made.key = key;
  const auto type = value_type(key.dtype);
  TROUPE_CUDA_TRY(describe(key, made.matrix.out()));
  TROUPE_CUDA_TRY(cusparseCreateDnVec(made.x.out(), key.columns, x, type));
  TROUPE_CUDA_TRY(cusparseCreateDnVec(made.y.out(), key.rows, y, type));
  std::size_t bytes = 0;
  TROUPE_CUDA_TRY(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha,
                                          made.matrix.get(), made.x.get(), beta, made.y.get(), type,
                                          algorithm(key), &bytes));
  forget(state, kPreparedMatrices - 1);
  if (bytes > 0) {
    TROUPE_CUDA_TRY(cudaMallocAsync(&made.workspace, bytes, state.stream));
  }
  const auto status = cusparseSpMV_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha,
                                              made.matrix.get(), made.x.get(), beta, made.y.get(),
                                              type, algorithm(key), made.workspace);
  cache.push_front(std::move(made));
  if (status != CUSPARSE_STATUS_SUCCESS) {
    cache.splice(cache.end(), cache, cache.begin());
    forget(state, cache.size() - 1);
    return failure(status, "cusparseSpMV_preprocess");
  }
  return &cache.front();
}

template <class Op>
Result<void> Sparse::multiply(const Op& op, const PreparedMatrix::Key& key, const Call& call) {
  if (op.rows == 0) return {};
  return with_real(op.dtype, [&]<class T>(T) -> Result<void> {
    auto* const y = call.at<T>(op.y);
    if (op.nonzeros == 0) {
      TROUPE_CUDA_TRY(
          kernels::scale(services_.launch(call.queue()), op.rows, scalar<T>(op.beta, call), y));
      return {};
    }
    ScalarValues<T> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(services_, call, {&op.alpha, &op.beta}));
    auto& its_state = state(call.queue());
    TROUPE_CUDA_PROPAGATE(point_at(its_state, scalars.where()));
    const auto prepared = prepare(its_state, key, scalars[0], scalars[1], call.at(op.x), y);
    if (!prepared) return prepared.error();
    auto& entry = **prepared;
    entry.structure = {offsets_of(op), op.column};
    TROUPE_CUDA_TRY(cusparseSpMV(its_state.handle.get(), CUSPARSE_OPERATION_NON_TRANSPOSE,
                                 scalars[0], entry.matrix.get(), entry.x.get(), scalars[1],
                                 entry.y.get(), value_type(op.dtype), algorithm(key),
                                 entry.workspace));
    return {};
  });
}

Result<void> Sparse::run(const sparse::Spmv& op, const Call& call) {
  return multiply(op,
                  {.offsets = call.at(op.row_begin),
                   .column = call.at(op.column),
                   .value = call.at(op.value),
                   .rows = op.rows,
                   .columns = op.columns,
                   .nonzeros = op.nonzeros,
                   .stored = op.nonzeros,
                   .slice_rows = 0,
                   .offsets_contents = contents_of(op.row_begin),
                   .column_contents = contents_of(op.column),
                   .dtype = op.dtype,
                   .index_dtype = op.index_dtype},
                  call);
}

Result<void> Sparse::run(const sparse::SpmvSell& op, const Call& call) {
  return multiply(op,
                  {.offsets = call.at(op.slice_begin),
                   .column = call.at(op.column),
                   .value = call.at(op.value),
                   .rows = op.rows,
                   .columns = op.columns,
                   .nonzeros = op.nonzeros,
                   .stored = op.stored,
                   .slice_rows = op.slice_rows,
                   .offsets_contents = contents_of(op.slice_begin),
                   .column_contents = contents_of(op.column),
                   .dtype = op.dtype,
                   .index_dtype = op.index_dtype},
                  call);
}

Result<void> Sparse::run(const sparse::Spgemm& op, const Call& call) {
  using sparse::Spgemm;
  auto& its_state = state(call.queue());
  TROUPE_CUDA_PROPAGATE(point_at(its_state, ScalarsAt::host));
  const auto values = [&](Spgemm::Matrix matrix) {
    return call.at(sparse::find_values(call.tail(), matrix));
  };
  const CsrFactor a{
      op.rows,          op.inner, op.nonzeros_a, call.at(op.a_row_begin), call.at(op.a_column),
      values(Spgemm::a)};
  const CsrFactor b{
      op.inner,         op.columns, op.nonzeros_b, call.at(op.b_row_begin), call.at(op.b_column),
      values(Spgemm::b)};
  const CsrProduct c{call.tail().empty() ? 0 : op.capacity, call.at(op.c_row_begin),
                     call.at(op.c_column), values(Spgemm::c)};
  const auto count = its_state.multiplication.run(its_state.handle.get(), its_state.stream,
                                                  {op.dtype, op.index_dtype}, a, b, c);
  if (!count) return count.error();
  std::array<std::uint8_t, 16> pattern{};
  std::memcpy(pattern.data(), &*count, sizeof *count);
  TROUPE_CUDA_PROPAGATE(
      services_.fill(call.queue(), its_state.count.get(), pattern, sizeof *count, 1));
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.nonzeros), its_state.count.get(), sizeof *count,
                                  cudaMemcpyDefault, its_state.stream));
  return {};
}

}  // namespace troupe::host::cuda

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cuda::Services& services) {
  return new troupe::host::cuda::Sparse(services);
}
