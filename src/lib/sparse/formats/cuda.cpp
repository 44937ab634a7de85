#include "lib/sparse/cuda.hpp"
#include "lib/sparse/formats/block_numbers_cuda.hpp"

/// CSR matrices in other forms, on the cuda engine. The device alone knows whether a result has
/// room: kernels that fill it in look at its size, which stands behind the counts.
namespace troupe::host::cuda {

/// What CUB's kernels are launched by: csr2bsr sorts and adds up. `row_begin`: {0, 1}
Result<void> warm_up_conversions(const Call& call, DType index, const Operand& row_begin,
                                 Sparse& library) {
  const auto zeros = WarmUp::part(2);
  sparse::Csr2Bsr op;
  op.dtype = DType::f32, op.index_dtype = index;
  op.rows = op.columns = op.nonzeros = op.capacity = 1;
  op.row_begin = row_begin, op.column = zeros, op.value = zeros;
  op.block_row_begin = WarmUp::part(3), op.block_column = WarmUp::part(4);
  op.block_value = WarmUp::part(5), op.blocks = WarmUp::part(6);
  return library.carry_out(op, call);
}

Result<void> run(const sparse::Csr2Bsr& op, const Call& call, Sparse& library) {
  auto& workspace = library.state(call.queue()).workspace;
  const auto launch = library.services.launch(call.queue());
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      auto* const block_row_begin = call.at<I>(op.block_row_begin);
      if (op.nonzeros == 0) {
        const auto offsets = static_cast<std::size_t>(op.block_rows()) + 1;
        TROUPE_CUDA_TRY(cudaMemsetAsync(block_row_begin, 0, offsets * sizeof(I), launch.stream));
        return give_size_of_nothing(library.services, workspace, op.blocks, call);
      }
      const auto from = given_rows<N, I>(op, call);
      const auto numbered = number_blocks<I>(library.services, workspace, op, from.column, call, 0);
      if (!numbered) return numbered.error();
      const auto& [elements, before, unused] = *numbered;
      TROUPE_CUDA_TRY(
          kernels::begin_block_rows(launch, elements, before, op.block_rows(), block_row_begin));
      if (op.capacity > 0) {
        const kernels::BlockTarget<N, I> to{op.capacity, call.at<I>(op.block_column),
                                            call.at<N>(op.block_value)};
        TROUPE_CUDA_TRY(kernels::fill_blocks(launch, from, elements, before,
                                             {op.block, op.order == BlockOrder::row}, to));
      }
      return give_size(before + op.nonzeros, op.blocks, call, launch.stream);
    });
  });
}

Result<void> run(const sparse::Bsr2Csr& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const kernels::GivenBlocks<N, I> from{
          op.block_rows, op.blocks, call.at<const I>(op.block_row_begin),
          call.at<const I>(op.block_column), call.at<const N>(op.block_value)};
      TROUPE_CUDA_TRY(kernels::expand_blocks(
          library.services.launch(call.queue()), from, {op.block, op.order == BlockOrder::row},
          call.at<I>(op.row_begin), call.at<I>(op.column), call.at<N>(op.value)));
      return {};
    });
  });
}

Result<void> run(const sparse::Csr2Sell& op, const Call& call, Sparse& library) {
  auto& workspace = library.state(call.queue()).workspace;
  const auto launch = library.services.launch(call.queue());
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const auto offsets = op.slices() + 1;
      std::size_t bytes = 0;
      TROUPE_CUDA_TRY(kernels::counting_bytes(offsets, &bytes));
      PartsOfMemory parts;
      const auto counts_begin = parts.add<std::int64_t>(offsets), work = parts.add_bytes(bytes);
      TROUPE_CUDA_PROPAGATE(workspace.reserve(library.services, call.queue(), parts.bytes()));
      auto* const counts = part_at<std::int64_t>(workspace.get(), counts_begin);

      const auto from = given_rows<N, I>(op, call);
      TROUPE_CUDA_TRY(kernels::measure_slices(launch, op.rows, from.row_begin, op.slice_rows,
                                              op.slices(), counts));
      (void)cudaGetLastError();  // CUB reports what others left there
      TROUPE_CUDA_TRY(kernels::add_up(launch, offsets, counts,
                                      part_at<std::byte>(workspace.get(), work), bytes));
      TROUPE_CUDA_TRY(kernels::narrow(launch, offsets, counts, call.at<I>(op.slice_begin)));
      if (op.capacity > 0) {
        const kernels::SliceTarget<N, I> to{op.slice_rows,
                                            op.slices(),
                                            op.capacity,
                                            counts,
                                            call.at<I>(op.sell_column),
                                            call.at<N>(op.sell_value)};
        TROUPE_CUDA_TRY(kernels::fill_slices(launch, from, to));
      }
      return give_size(counts + op.slices(), op.stored, call, launch.stream);
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
