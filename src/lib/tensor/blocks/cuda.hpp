#pragma once

#include <list>
#include <vector>

#include "lib/tensor/blocks/view.hpp"
#include "lib/tensor/common/plan_cuda.hpp"

namespace troupe::host::cuda {

/// How cuTENSOR carries out contractions of tensors of blocks, on one queue. It asks for the
/// kernels that repeat their bits.
class BlockPlans {
 public:
  /// `workspace`: of the queue. Makes a plan for sections and blocks that are new. Errors:
  /// unsupported (cuTENSOR has no such operation), out_of_memory, library.
  Result<void> run(Services& services, cutensorHandle_t handle, Workspace& workspace,
                   const tensor::ContractBlockSparse& op, const Call& call);

 private:
  struct Planned {
    std::vector<std::byte> key;
    Handle<CutensorPlanTraits> plan;
    std::uint64_t workspace_bytes = 0;
  };
  static constexpr std::size_t kMost = 16;

  static Result<Planned> make(cutensorHandle_t handle, const tensor::ContractBlockSparse& op,
                              const tensor::BlockData& blocks);

  std::list<Planned> plans_;  ///< the most recently used first
  RetiredPlans<Planned> retired_;
};

}  // namespace troupe::host::cuda
