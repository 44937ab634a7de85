#include "lib/sparse/cuda.hpp"
#include "lib/sparse/blocked_ell/kernels.cuh"
#include "lib/sparse/formats/block_numbers_cuda.hpp"

/// CSR matrices in blocked ELL form, on the cuda engine.
namespace troupe::host::cuda {

Result<void> run(const sparse::Csr2BlockedEll& op, const Call& call, Sparse& library) {
  auto& workspace = library.state(call.queue()).workspace;
  const auto launch = library.services.launch(call.queue());
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const auto block_rows = op.rows / op.block;
      const auto places = static_cast<std::size_t>(block_rows * op.capacity);
      kernels::EllTarget<N, I> to{op.block, op.capacity, nullptr, nullptr};
      if (places > 0) {
        to.column = call.at<I>(op.ell_column);
        to.value = call.at<N>(op.ell_value);
      }
      if (op.nonzeros == 0) {
        if (places > 0) {
          const auto size = static_cast<std::size_t>(op.block * op.block);
          TROUPE_CUDA_TRY(cudaMemsetAsync(to.column, 0xff, places * sizeof(I), launch.stream));
          TROUPE_CUDA_TRY(cudaMemsetAsync(to.value, 0, places * size * sizeof(N), launch.stream));
        }
        return give_size_of_nothing(library.services, workspace, op.width, call);
      }
      // The offsets of the rows of blocks, and behind them the width.
      PartsOfMemory parts;
      const auto begin_at = parts.add<I>(block_rows + 1), width_at = parts.add<std::int64_t>(1);
      const auto from = given_rows<N, I>(op, call);
      const auto numbered =
          number_blocks<I>(library.services, workspace, op, from.column, call, parts.bytes());
      if (!numbered) return numbered.error();
      const auto& [elements, before, more] = *numbered;
      auto* const begin = part_at<I>(more, begin_at);
      auto* const width = part_at<std::int64_t>(more, width_at);
      TROUPE_CUDA_TRY(kernels::begin_block_rows(launch, elements, before, block_rows, begin));
      TROUPE_CUDA_TRY(cudaMemsetAsync(width, 0, sizeof *width, launch.stream));
      if (block_rows > 0) {
        TROUPE_CUDA_TRY(kernels::find_width<I>(launch, block_rows, begin, width));
      }
      if (places > 0) {
        TROUPE_CUDA_TRY(kernels::pad(launch, block_rows, width, to));
        TROUPE_CUDA_TRY(kernels::fill_ell(launch, from, elements, before, begin, width, to));
      }
      return give_size(width, op.width, call, launch.stream);
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
