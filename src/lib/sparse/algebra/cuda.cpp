#include "lib/sparse/cuda.hpp"
#include "lib/sparse/algebra/kernels.cuh"

/// Sums of sparse matrices, and products whose structure is known, on the cuda engine.
namespace troupe::host::cuda {

Result<void> run(const sparse::Geam& op, const Call& call, Sparse& library) {
  using sparse::Geam;
  auto& own = library.state(call.queue());
  const auto launch = library.services.launch(call.queue());
  const auto queued = with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
    std::size_t bytes = 0;
    TROUPE_CUDA_TRY(kernels::sum_bytes<I>(op.nonzeros_b, &bytes));
    bytes = (bytes + sizeof(I) - 1) / sizeof(I) * sizeof(I);  // new_before stands behind that
    const auto numbers = (static_cast<std::size_t>(op.nonzeros_b) + 1) * sizeof(I);
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(), bytes + numbers));
    kernels::SumStructure<I> sum;
    sum.a = {op.rows, op.columns, op.nonzeros_a, call.at<const I>(op.a_row_begin),
             call.at<const I>(op.a_column)};
    sum.b = {op.rows, op.columns, op.nonzeros_b, call.at<const I>(op.b_row_begin),
             call.at<const I>(op.b_column)};
    sum.new_before = reinterpret_cast<I*>(static_cast<std::byte*>(own.workspace.get()) + bytes);
    sum.row_begin = call.at<I>(op.c_row_begin);
    sum.count = static_cast<std::int64_t*>(own.count.get());
    TROUPE_CUDA_TRY(kernels::count_sum(launch, sum, own.workspace.get(), bytes));
    if (call.tail().empty()) return {};
    return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
      using N = Native<T>;
      const auto part = [&](Geam::Part which) { return sparse::find_tagged(call.tail(), which); };
      kernels::SparseSum<N, I> whole;
      whole.structure = sum;
      whole.a_value = call.at<const N>(part(Geam::a));
      whole.b_value = call.at<const N>(part(Geam::b));
      whole.alpha = native_scalar<T>(op.alpha, call);
      whole.beta = native_scalar<T>(op.beta, call);
      whole.capacity = op.capacity;
      whole.column = call.at<I>(part(Geam::c_column));
      whole.value = call.at<N>(part(Geam::c));
      TROUPE_CUDA_TRY(kernels::fill_sum(launch, whole));
      return {};
    });
  });
  if (!queued.ok()) return queued;
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.nonzeros), own.count.get(), sizeof(std::int64_t),
                                  cudaMemcpyDefault, launch.stream));
  return {};
}

Result<void> run(const sparse::SpgemmReuse& op, const Call& call, Sparse& library) {
  using sparse::SpgemmReuse;
  if (op.nonzeros_c == 0) return {};
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const auto values = [&](SpgemmReuse::Matrix matrix) {
        return sparse::find_tagged(call.tail(), matrix);
      };
      kernels::KnownProduct<N, I> product;
      product.a = {op.rows, op.inner, op.nonzeros_a, call.at<const I>(op.a_row_begin),
                   call.at<const I>(op.a_column)};
      product.b = {op.inner, op.columns, op.nonzeros_b, call.at<const I>(op.b_row_begin),
                   call.at<const I>(op.b_column)};
      product.c = {op.rows, op.columns, op.nonzeros_c, call.at<const I>(op.c_row_begin),
                   call.at<const I>(op.c_column)};
      product.a_value = call.at<const N>(values(SpgemmReuse::a));
      product.b_value = call.at<const N>(values(SpgemmReuse::b));
      product.value = call.at<N>(values(SpgemmReuse::c));
      TROUPE_CUDA_TRY(kernels::multiply_into(library.services.launch(call.queue()), product));
      return {};
    });
  });
}

Result<void> run(const sparse::Spgemm& op, const Call& call, Sparse& library) {
  using sparse::Spgemm;
  auto& its_state = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(library.point_at(its_state, ScalarsAt::host));
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
      library.services.fill(call.queue(), its_state.count.get(), pattern, sizeof *count, 1));
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.nonzeros), its_state.count.get(), sizeof *count,
                                  cudaMemcpyDefault, its_state.stream));
  return {};
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
