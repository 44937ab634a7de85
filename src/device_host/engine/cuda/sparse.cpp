#include <algorithm>

#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/factors.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

/// For each form the one algorithm whose results are the same, bit for bit, in every run: a replay
/// must repeat the answer.
cusparseSpMVAlg_t algorithm(const PreparedMatrix::Key& key) {
  return key.slice_rows == 0 ? CUSPARSE_SPMV_CSR_ALG2 : CUSPARSE_SPMV_SELL_ALG1;
}
constexpr std::size_t kPreparedMatrices = 64;

cudaDataType value_type(DType dtype) {
  return dtype == DType::f32 ? CUDA_R_32F : CUDA_R_64F;
}
cusparseIndexType_t index_type(DType dtype) {
  return dtype == DType::i32 ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;
}

std::uint64_t contents_of(const Operand& operand) {
  return std::uint64_t{operand.buffer} << 32 | operand.generation;
}

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

Result<void> CudaEngine::open_sparse(Queue queue) {
  auto& state = sparse(queue);
  TROUPE_CUDA_TRY(cusparseCreate(state.handle.out()));
  TROUPE_CUDA_TRY(cusparseSetStream(state.handle.get(), stream(queue)));
  TROUPE_CUDA_TRY(cusparseSetPointerMode(state.handle.get(), CUSPARSE_POINTER_MODE_HOST));
  state.scalars = ScalarsAt::host;
  return {};
}

Result<void> CudaEngine::point_sparse_at(Queue queue, ScalarsAt where) {
  enter();
  auto& state = sparse(queue);
  check(static_cast<bool>(state.handle), "the sparse lane is not open");
  if (state.scalars == where) return {};
  TROUPE_CUDA_TRY(cusparseSetPointerMode(state.handle.get(), where == ScalarsAt::host
                                                                 ? CUSPARSE_POINTER_MODE_HOST
                                                                 : CUSPARSE_POINTER_MODE_DEVICE));
  state.scalars = where;
  return {};
}

void CudaEngine::overwrites(const Operand& range) {
  const auto overlaps = [&](const Operand& other) {
    return other.region == range.region && other.offset < range.offset + range.bytes &&
           range.offset < other.offset + other.bytes;
  };
  for (const bool detour : {false, true}) {
    const Queue queue(Lane::sparse, detour);
    std::erase_if(sparse(queue).prepared, [&](const PreparedMatrix& entry) {
      if (!overlaps(entry.structure[0]) && !overlaps(entry.structure[1])) return false;
      if (entry.workspace != nullptr) (void)cudaFreeAsync(entry.workspace, stream(queue));
      return true;
    });
  }
}

/// Keeps the `keep` most recently used matrices.
void CudaEngine::forget_matrices(Queue queue, std::size_t keep) {
  auto& cache = sparse(queue).prepared;
  while (cache.size() > keep) {
    if (auto* workspace = cache.back().workspace; workspace != nullptr) {
      (void)cudaFreeAsync(workspace, stream(queue));
    }
    cache.pop_back();
  }
}

/// What is cached for the matrix, made if it is not there, with x and y set to the given vectors.
Result<PreparedMatrix*> CudaEngine::prepare(Queue queue, const PreparedMatrix::Key& key,
                                            const void* alpha, const void* beta, void* x, void* y) {
  const auto handle = sparse(queue).handle.get();
  auto& cache = sparse(queue).prepared;
  const auto found = std::find_if(cache.begin(), cache.end(),
                                  [&](const PreparedMatrix& entry) { return entry.key == key; });
  if (found != cache.end()) {
    cache.splice(cache.begin(), cache, found);
    TROUPE_CUDA_TRY(cusparseDnVecSetValues(cache.front().x.get(), x));
    TROUPE_CUDA_TRY(cusparseDnVecSetValues(cache.front().y.get(), y));
    return &cache.front();
  }

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
  forget_matrices(queue, kPreparedMatrices - 1);
  if (bytes > 0) {
    TROUPE_CUDA_TRY(cudaMallocAsync(&made.workspace, bytes, stream(queue)));
  }
  const auto status = cusparseSpMV_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha,
                                              made.matrix.get(), made.x.get(), beta, made.y.get(),
                                              type, algorithm(key), made.workspace);
  cache.push_front(std::move(made));
  if (status != CUSPARSE_STATUS_SUCCESS) {
    cache.splice(cache.end(), cache, cache.begin());
    forget_matrices(queue, cache.size() - 1);
    return failure(status, "cusparseSpMV_preprocess");
  }
  return &cache.front();
}

template <class Op>
Result<void> CudaEngine::multiply(const Op& op, const PreparedMatrix::Key& key, const Call& call) {
  if (op.rows == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    auto* const y = call.at<T>(op.y);
    if (op.nonzeros == 0) {
      const kernels::Factor<T> beta{
          op.beta.device.present() ? call.at<const T>(op.beta.device) : nullptr,
          op.beta.template as<T>()};
      TROUPE_CUDA_TRY(kernels::scale(launch(call.queue()), op.rows, beta, y));
      return {};
    }
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(*this, call, {&op.alpha, &op.beta}));
    TROUPE_CUDA_PROPAGATE(point_sparse_at(call.queue(), factors.where()));
    const auto prepared = prepare(call.queue(), key, factors[0], factors[1], call.at(op.x), y);
    if (!prepared) return prepared.error();
    auto& entry = **prepared;
    entry.structure = {offsets_of(op), op.column};
    TROUPE_CUDA_TRY(cusparseSpMV(sparse(call.queue()).handle.get(),
                                 CUSPARSE_OPERATION_NON_TRANSPOSE, factors[0], entry.matrix.get(),
                                 entry.x.get(), factors[1], entry.y.get(), value_type(op.dtype),
                                 algorithm(key), entry.workspace));
    return {};
  });
}

Result<void> CudaEngine::run(const sparse::Spmv& op, const Call& call) {
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

Result<void> CudaEngine::run(const sparse::SpmvSell& op, const Call& call) {
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

/// By a kernel of our own: cusparseGather wants 16-byte alignment and distinct indices.
Result<void> CudaEngine::run(const sparse::Gather& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    const auto* const source = call.at<const T>(op.source);
    auto* const destination = call.at<T>(op.destination);
    if (op.index_dtype.value == DType::i32) {
      TROUPE_CUDA_TRY(kernels::gather(launch(call.queue()), op.count, source,
                                      call.at<const std::int32_t>(op.index), destination));
    } else {
      TROUPE_CUDA_TRY(kernels::gather(launch(call.queue()), op.count, source,
                                      call.at<const std::int64_t>(op.index), destination));
    }
    return {};
  });
}

}  // namespace troupe::host::cuda
