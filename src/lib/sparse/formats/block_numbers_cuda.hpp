#pragma once

#include <algorithm>

#include <troupe/lib/sparse/formats.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/sparse/common/parts_cuda.hpp"
#include "lib/sparse/common/status_cuda.hpp"
#include "lib/sparse/conversions/counting_kernels.cuh"
#include "lib/sparse/formats/kernels.cuh"
#include "lib/sparse/sorts/kernels.cuh"

/// CSR matrices that are put into other forms, on the cuda engine.
namespace troupe::host::cuda {

/// The matrix of an operation; its values may be absent, and its columns where nothing looks at
/// them.
template <class N, class I, class Op>
kernels::GivenRows<N, I> given_rows(const Op& op, const Call& call) {
  const auto* const column = op.column.present() ? call.at<const I>(op.column) : nullptr;
  const auto* const value = op.value.present() ? call.at<const N>(op.value) : nullptr;
  return {op.rows, op.nonzeros, call.at<const I>(op.row_begin), column, value};
}

/// Queues the copy of a size to a result cell.
inline Result<void> give_size(const std::int64_t* size, const Operand& cell, const Call& call,
                              cudaStream_t stream) {
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(cell), size, sizeof *size, cudaMemcpyDefault, stream));
  return {};
}
/// The same of the size 0.
inline Result<void> give_size_of_nothing(Services& services, Workspace& workspace,
                                         const Operand& cell, const Call& call) {
  const auto stream = services.stream(call.queue());
  TROUPE_CUDA_PROPAGATE(workspace.reserve(services, call.queue(), sizeof(std::int64_t)));
  auto* const size = static_cast<std::int64_t*>(workspace.get());
  TROUPE_CUDA_TRY(cudaMemsetAsync(size, 0, sizeof *size, stream));
  return give_size(size, cell, call, stream);
}

/// The elements of a matrix in the order of their blocks, and how many blocks begin before each:
/// before[count] is the number of blocks. In a queue's workspace.
template <class I>
struct NumberedBlocks {
  kernels::BlockedOrder<I> elements;
  std::int64_t* before = nullptr;
  std::byte* more = nullptr;  ///< as many bytes as were asked for
};
/// Queues that for the CSR matrix of an operation that has elements.
template <class I, class Op>
Result<NumberedBlocks<I>> number_blocks(Services& services, Workspace& workspace, const Op& op,
                                        const I* column, const Call& call, std::size_t more) {
  const auto n = op.nonzeros;
  std::size_t counting = 0, ordering = 0;
  TROUPE_CUDA_TRY(kernels::counting_bytes(n + 1, &counting));
  TROUPE_CUDA_TRY(kernels::ordering_bytes<I>(n, &ordering));
  PartsOfMemory parts;
  const auto before_begin = parts.add<std::int64_t>(n + 1), key_begin = parts.add<std::uint64_t>(n);
  const auto place_begin = parts.add<I>(n), more_begin = parts.add_bytes(more);
  const auto work_begin = parts.add_bytes(std::max(counting, ordering));
  TROUPE_CUDA_PROPAGATE(workspace.reserve(services, call.queue(), parts.bytes()));
  void* const memory = workspace.get();
  auto* const before = part_at<std::int64_t>(memory, before_begin);
  auto* const key = part_at<std::uint64_t>(memory, key_begin);
  auto* const place = part_at<I>(memory, place_begin);
  auto* const work = part_at<std::byte>(memory, work_begin);

  const auto launch = services.launch(call.queue());
  const kernels::Elements<I> elements{
      op.rows, op.columns, n, nullptr, call.at<const I>(op.row_begin), column};
  const auto block_columns = sparse::parts_of(op.columns, op.block);
  const kernels::BlockedOrder<I> blocked{n, kernels::key_bits(block_columns), key, place};
  (void)cudaGetLastError();  // CUB reports what others left there
  TROUPE_CUDA_TRY(kernels::order(launch, elements, {op.block, false}, key, place, work, ordering));
  TROUPE_CUDA_TRY(kernels::mark_blocks(launch, blocked, before));
  TROUPE_CUDA_TRY(kernels::add_up(launch, n + 1, before, work, counting));
  return NumberedBlocks<I>{blocked, before, part_at<std::byte>(memory, more_begin)};
}

}  // namespace troupe::host::cuda
