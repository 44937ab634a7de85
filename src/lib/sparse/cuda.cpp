#include "lib/sparse/cuda.hpp"

#include <cstring>
#include <utility>

#include "lib/sparse/algebra/kernels.cuh"
#include "lib/sparse/blocked_ell/kernels.cuh"
#include "lib/sparse/conversions/counting_kernels.cuh"
#include "lib/sparse/conversions/kernels.cuh"
#include "lib/sparse/dense/sddmm_kernels.cuh"
#include "lib/sparse/dense/spmm_kernels.cuh"
#include "lib/sparse/examine/kernels.cuh"
#include "lib/sparse/formats/kernels.cuh"
#include "lib/sparse/looks/kernels.cuh"
#include "lib/sparse/sorts/kernels.cuh"
#include "lib/sparse/triangular/kernels.cuh"
#include "lib/sparse/vectors/gather_kernels.cuh"
#include "lib/sparse/vectors/kernels.cuh"

namespace troupe::host::cuda {

Sparse::~Sparse() {
  for (auto& state : states) {
    state.prepared.forget(services, 0);
    state.transpositions.forget(services, 0);
  }
}

Result<void> Sparse::open(Queue queue) {
  auto& opened = state(queue);
  if (!opened.handle) TROUPE_CUDA_TRY(cusparseCreate(opened.handle.out()));
  const auto handle = opened.handle.get();
  opened.stream = services.stream(queue);
  TROUPE_CUDA_TRY(cusparseSetStream(handle, opened.stream));
  TROUPE_CUDA_TRY(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
  opened.scalars = ScalarsAt::host;
  if (!opened.count) {
    auto count = services.reserve(queue, sizeof(std::int64_t));
    if (!count) return count.error();
    opened.count = std::move(*count);
  }
  if (queue.detour) return {};
  TROUPE_CUDA_TRY(kernels::preload_sparse());
  TROUPE_CUDA_TRY(kernels::preload_spmm());
  TROUPE_CUDA_TRY(kernels::preload_narrow_products());
  TROUPE_CUDA_TRY(kernels::preload_sparse_vectors());
  TROUPE_CUDA_TRY(kernels::preload_ordering());
  TROUPE_CUDA_TRY(kernels::preload_triangular());
  TROUPE_CUDA_TRY(kernels::preload_algebra());
  TROUPE_CUDA_TRY(kernels::preload_sddmm());
  TROUPE_CUDA_TRY(kernels::preload_counting());
  TROUPE_CUDA_TRY(kernels::preload_conversions());
  TROUPE_CUDA_TRY(kernels::preload_formats());
  TROUPE_CUDA_TRY(kernels::preload_blocked_ell());
  TROUPE_CUDA_TRY(kernels::preload_examine());
  if (looks.on()) TROUPE_CUDA_TRY(kernels::preload_checks());
  return warm_up(queue);
}

/// The matrix is 1 x 1 with one element, 0: row_begin is {0, 1}.
Result<void> Sparse::warm_up(Queue queue) {
  const WarmUp warming(services, queue);
  const auto call = warming.call();
  const auto rows = WarmUp::part(1), zeros = WarmUp::part(2), result = WarmUp::part(3);
  for (const auto index : {DType::i32, DType::i64}) {
    auto* const row_begin = call.at(rows);
    TROUPE_CUDA_TRY(cudaMemsetAsync(row_begin, 0, rows.bytes, services.stream(queue)));
    TROUPE_CUDA_PROPAGATE(services.fill(queue, row_begin + size_of(index), {1}, size_of(index), 1));
    sparse::Form form;
    form.index_dtype = index;
    form.rows = form.columns = form.nonzeros = form.stored = 1;
    for (const auto dtype : WarmUp::kReals) {
      for (const auto format : {sparse::Format::csr, sparse::Format::sell}) {
        form.format = format;
        TROUPE_CUDA_PROPAGATE(carry_out(
            sparse::Spmv{dtype, {}, {}, form, {}, {}, rows, zeros, zeros, zeros, result}, call));
      }
      TROUPE_CUDA_PROPAGATE(
          carry_out(sparse::Gather{dtype, index, 1, 1, zeros, zeros, result}, call));
    }
    TROUPE_CUDA_PROPAGATE(warm_up_products(call, index, rows));
    TROUPE_CUDA_PROPAGATE(carry_out(
        sparse::CsrSort{
            DType::f32, index, 1, 1, 1, rows, zeros, zeros, result, WarmUp::part(4), {}},
        call));
    form.format = sparse::Format::csr;
    sparse::Geam sum;
    sum.dtype = DType::f32, sum.index_dtype = index;
    sum.rows = sum.columns = sum.nonzeros_a = sum.nonzeros_b = 1;
    sum.a_row_begin = sum.b_row_begin = rows, sum.a_column = sum.b_column = zeros;
    sum.c_row_begin = result, sum.nonzeros = WarmUp::part(4);
    TROUPE_CUDA_PROPAGATE(carry_out(sum, call));
    TROUPE_CUDA_PROPAGATE(warm_up_conversions(call, index, rows, *this));
    TROUPE_CUDA_PROPAGATE(carry_out(sparse::Spmm{DType::f32,
                                                 blas::Transpose::yes,
                                                 {},
                                                 {},
                                                 {},
                                                 form,
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
  state(queue).prepared.forget(services, 0);
  state(queue).transpositions.forget(services, 0);
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
  for (auto& state : states) {
    state.transpositions.overwrites(services, range);
    state.vector_analyses.overwrites(services, range);
    state.matrix_analyses.overwrites(services, range);
    state.prepared.overwrites(services, range);
  }
}

}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Sparse, cuda)
