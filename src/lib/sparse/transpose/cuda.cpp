#include "lib/sparse/cuda.hpp"
#include "lib/sparse/vectors/gather_kernels.cuh"

/// Transposed sparse matrices on the cuda engine.
namespace troupe::host::cuda {

Result<void> run(const sparse::Transposition& op, const Call& call, Sparse& library) {
  const auto stream = library.services.stream(call.queue());
  if (op.nonzeros == 0) {
    const auto offsets = static_cast<std::size_t>(op.columns) + 1;
    TROUPE_CUDA_TRY(
        cudaMemsetAsync(call.at(op.t_row_begin), 0, offsets * size_of(op.index_dtype), stream));
    return {};
  }
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      const auto launch = library.services.launch(call.queue());
      auto& workspace = library.state(call.queue()).workspace;
      std::size_t bytes = 0;
      TROUPE_CUDA_TRY(kernels::transposition_bytes<I>(op.nonzeros, &bytes));
      bytes = (bytes + sizeof(I) - 1) / sizeof(I) * sizeof(I);  // the places stand behind that
      const auto places = static_cast<std::size_t>(op.nonzeros) * sizeof(I);
      TROUPE_CUDA_PROPAGATE(workspace.reserve(library.services, call.queue(), bytes + places));
      auto* const place = reinterpret_cast<I*>(static_cast<std::byte*>(workspace.get()) + bytes);
      const kernels::Structure<I> matrix{op.rows, op.columns, op.nonzeros,
                                         call.at<const I>(op.row_begin),
                                         call.at<const I>(op.column)};
      TROUPE_CUDA_TRY(kernels::transpose(
          launch, matrix, {call.at<I>(op.t_row_begin), call.at<I>(op.t_column), place},
          workspace.get(), bytes));
      TROUPE_CUDA_TRY(kernels::gather(launch, op.nonzeros, call.at<const Native<T>>(op.value),
                                      static_cast<const I*>(place),
                                      call.at<Native<T>>(op.t_value)));
      return {};
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
