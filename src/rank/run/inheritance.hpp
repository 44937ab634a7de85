#pragma once

#include <memory>
#include <vector>

#include "rank/device/device_core.hpp"
#include "rank/net/estate.hpp"
#include "rank/store/commit_ledger.hpp"
#include "rank/store/memory_state.hpp"

namespace troupe::rank_process {

/// The commits that the process before this one, of the same rank at the same place, has left in
/// device memory. That memory is free again once this is dropped.
class Inheritance {
 public:
  /// Takes what there is; once in the life of a process.
  explicit Inheritance(std::shared_ptr<Estate> estate);

  /// The commits, copied to host memory; what cannot be had is left out. The device serves.
  [[nodiscard]] std::vector<HeldPart> copy_out(DeviceCore& device) const;
  void drop();

 private:
  std::shared_ptr<Estate> estate_;
  std::vector<KeptSlab> slabs_;
  std::vector<CommitLedger::Commit> commits_;
};

}  // namespace troupe::rank_process
