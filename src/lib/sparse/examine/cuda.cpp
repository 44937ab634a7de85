#include "lib/sparse/cuda.hpp"
#include "lib/sparse/common/parts_cuda.hpp"
#include "lib/sparse/examine/kernels.cuh"

/// Whether indices are what operations demand of them, on the cuda engine.
namespace troupe::host::cuda {

static_assert(sizeof(kernels::IndexFinding) == sizeof(sparse::Finding));
static_assert(kernels::kWrongBegin == static_cast<std::int64_t>(sparse::Fault::wrong_begin) &&
              kernels::kOuterOutside == static_cast<std::int64_t>(sparse::Fault::outer_outside) &&
              kernels::kDescends == static_cast<std::int64_t>(sparse::Fault::descends) &&
              kernels::kWrongEnd == static_cast<std::int64_t>(sparse::Fault::wrong_end) &&
              kernels::kNoMultiple == static_cast<std::int64_t>(sparse::Fault::no_multiple) &&
              kernels::kInnerOutside == static_cast<std::int64_t>(sparse::Fault::inner_outside) &&
              kernels::kNotSorted == static_cast<std::int64_t>(sparse::Fault::not_sorted));

Result<void> run(const sparse::Examine& op, const Call& call, Sparse& library) {
  using kernels::IndexFinding;
  const auto launch = library.services.launch(call.queue());
  auto& workspace = library.state(call.queue()).workspace;
  PartsOfMemory parts;
  const auto first_at = parts.add<unsigned long long>(1), finding_at = parts.add<IndexFinding>(1);
  TROUPE_CUDA_PROPAGATE(workspace.reserve(library.services, call.queue(), parts.bytes()));
  auto* const first = part_at<unsigned long long>(workspace.get(), first_at);
  auto* const finding = part_at<IndexFinding>(workspace.get(), finding_at);
  const bool nothing = op.outer_length == 0 && op.inner_length == 0;
  TROUPE_CUDA_TRY(cudaMemsetAsync(finding, 0, sizeof *finding, launch.stream));
  if (!nothing) {
    TROUPE_CUDA_TRY(cudaMemsetAsync(first, 0xff, sizeof *first, launch.stream));
    TROUPE_CUDA_PROPAGATE(with_index(op.dtype, [&]<class I>(I) -> Result<void> {
      const auto demands = [&](IndexRule::Demand demand) { return (op.demands & demand) != 0; };
      kernels::ExaminedIndices<I> indices;
      if (op.outer_length > 0) indices.outer = call.at<const I>(op.outer);
      if (op.inner_length > 0) indices.inner = call.at<const I>(op.inner);
      indices.outer_length = op.outer_length, indices.outer_bound = op.outer_bound;
      indices.inner_length = op.inner_length, indices.inner_bound = op.inner_bound;
      indices.step = op.step;
      indices.offsets = demands(IndexRule::offsets), indices.ordered = demands(IndexRule::ordered);
      indices.padding = demands(IndexRule::padding), indices.sorted = demands(IndexRule::sorted);
      TROUPE_CUDA_TRY(kernels::examine(launch, indices, first, finding));
      return {};
    }));
  }
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.found), finding, sizeof *finding, cudaMemcpyDefault,
                                  launch.stream));
  return {};
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
