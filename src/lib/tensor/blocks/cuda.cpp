#include "lib/tensor/blocks/cuda.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/tensor/common/descriptors_cuda.hpp"
#include "lib/tensor/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

using tensor::BlockData;
using tensor::ContractBlockSparse;

struct BlocksTraits {
  using Type = cutensorBlockSparseTensorDescriptor_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type blocks) { (void)cutensorDestroyBlockSparseTensorDescriptor(blocks); }
};

/// A tensor as cuTENSOR describes it. Its last dimension is the first one there: without strides
/// that one varies fastest.
struct DescribedBlocks {
  std::array<std::int32_t, tensor::kMaxModes> modes{};
  Handle<BlocksTraits> descriptor;

  Result<void> describe(cutensorHandle_t handle, const ContractBlockSparse& op,
                        const BlockData& blocks, std::size_t tensor) {
    const auto rank = static_cast<std::size_t>(op.ranks[tensor]);
    std::array<std::uint32_t, tensor::kMaxModes> sections{};
    std::vector<std::int64_t> extents;
    for (std::size_t i = 0; i < rank; ++i) {
      modes[i] = op.its_modes[tensor][rank - 1 - i];
      const auto mode = static_cast<std::size_t>(modes[i]);
      const auto count = static_cast<std::size_t>(op.sections[mode]);
      sections[i] = static_cast<std::uint32_t>(count);
      const auto all = blocks.extents().subspan(blocks.first(mode), count);
      extents.insert(extents.end(), all.begin(), all.end());
    }
    std::vector<std::int32_t> places;
    for (std::size_t i = 0; i < static_cast<std::size_t>(op.blocks[tensor]); ++i) {
      const auto block = blocks.block(tensor, i);
      places.insert(places.end(), block.rbegin(), block.rend());
    }
    const auto status = cutensorCreateBlockSparseTensorDescriptor(
        handle, descriptor.out(), static_cast<std::uint32_t>(rank),
        static_cast<std::uint64_t>(op.blocks[tensor]), sections.data(), extents.data(),
        places.data(), nullptr, type_of(op.dtype));
    if (status == CUTENSOR_STATUS_SUCCESS) return {};
    return no_plan(status, "cutensorCreateBlockSparseTensorDescriptor");
  }
};

/// Everything that a plan depends on.
std::vector<std::byte> key_of(ContractBlockSparse op, std::span<const std::byte> data) {
  op.alpha = op.beta = {}, op.a = op.b = op.d = {};
  const auto head = std::as_bytes(std::span(&op, 1));
  std::vector<std::byte> key(head.begin(), head.end());
  key.insert(key.end(), data.begin(), data.end());
  return key;
}

/// The addresses of a tensor's blocks.
std::vector<void*> addresses_of(const ContractBlockSparse& op, const BlockData& blocks,
                                std::size_t tensor, std::byte* first) {
  std::vector<void*> all;
  for (const auto begin : blocks.beginnings(op, tensor))
    all.push_back(first + static_cast<std::size_t>(begin) * size_of(op.dtype));
  return all;
}

}  // namespace

Result<BlockPlans::Planned> BlockPlans::make(cutensorHandle_t handle, const ContractBlockSparse& op,
                                             const BlockData& blocks) {
  std::array<DescribedBlocks, ContractBlockSparse::kTensors> all;
  for (std::size_t i = 0; i < all.size(); ++i)
    TROUPE_CUDA_PROPAGATE(all[i].describe(handle, op, blocks, i));
  const auto& [a, b, d] = all;
  constexpr auto kSame = CUTENSOR_OP_IDENTITY;
  Handle<OperationTraits> operation;
  if (const auto status = cutensorCreateBlockSparseContraction(
          handle, operation.out(), a.descriptor.get(), a.modes.data(), kSame, b.descriptor.get(),
          b.modes.data(), kSame, d.descriptor.get(), d.modes.data(), kSame, d.descriptor.get(),
          d.modes.data(), compute_of(op.dtype, tensor::Compute::standard));
      status != CUTENSOR_STATUS_SUCCESS)
    return no_plan(status, "cutensorCreateBlockSparseContraction");
  const std::int32_t repeats = 1;
  TROUPE_CUDA_TRY(cutensorOperationDescriptorSetAttribute(
      handle, operation.get(), CUTENSOR_OPERATION_DESCRIPTOR_BLOCKSPARSE_REPRODUCIBLE, &repeats,
      sizeof repeats));
  Handle<PreferenceTraits> preference;
  TROUPE_CUDA_TRY(cutensorCreatePlanPreference(handle, preference.out(), CUTENSOR_ALGO_DEFAULT,
                                               CUTENSOR_JIT_MODE_NONE));
  Planned made;
  TROUPE_CUDA_TRY(cutensorEstimateWorkspaceSize(handle, operation.get(), preference.get(),
                                                CUTENSOR_WORKSPACE_DEFAULT, &made.workspace_bytes));
  if (const auto status = cutensorCreatePlan(handle, made.plan.out(), operation.get(),
                                             preference.get(), made.workspace_bytes);
      status != CUTENSOR_STATUS_SUCCESS)
    return no_plan(status, "cutensorCreatePlan");
  return made;
}

Result<void> BlockPlans::run(Services& services, cutensorHandle_t handle, Workspace& workspace,
                             const ContractBlockSparse& op, const Call& call) {
  const BlockData blocks(op, call.data());
  const auto stream = services.stream(call.queue());
  auto key = key_of(op, call.data());
  const auto found = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const Planned& one) { return one.key == key; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
  } else {
    TROUPE_CUDA_PROPAGATE(retired_.destroy_ended());
    auto made = make(handle, op, blocks);
    if (!made) return made.error();
    made->key = std::move(key);
    if (plans_.size() == kMost) {
      TROUPE_CUDA_PROPAGATE(retired_.add(std::move(plans_.back()), stream));
      plans_.pop_back();
    }
    plans_.push_front(std::move(*made));
  }
  const auto& planned = plans_.front();
  TROUPE_CUDA_PROPAGATE(
      workspace.reserve(services, call.queue(), static_cast<std::size_t>(planned.workspace_bytes)));
  const auto a = addresses_of(op, blocks, ContractBlockSparse::kA, call.at(op.a)),
             b = addresses_of(op, blocks, ContractBlockSparse::kB, call.at(op.b)),
             d = addresses_of(op, blocks, ContractBlockSparse::kD, call.at(op.d));
  const Factors factors{op.alpha, op.beta};
  TROUPE_CUDA_TRY(cutensorBlockSparseContract(
      handle, planned.plan.get(), factors[0], a.data(), b.data(), factors[1], d.data(),
      const_cast<void* const*>(d.data()), workspace.get(), planned.workspace_bytes, stream));
  return {};
}

}  // namespace troupe::host::cuda
