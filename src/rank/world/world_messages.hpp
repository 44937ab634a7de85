#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/error.hpp>

#include "rank/device/device_events.hpp"
#include "rank/net/host_group.hpp"

namespace troupe::rank_process {

/// Messages of the WorldActor.
namespace world_message {
struct FromNetwork {
  std::vector<std::byte> bytes;
};
struct FromDevice {
  DeviceEvent event;
};
struct Begin {};  ///< everything is in place: form the world
struct Verified {
  std::uint32_t round;
  Result<void> outcome;
};
struct Regrouped {
  std::uint32_t round;
  std::shared_ptr<const HostGroup> group;
};
struct Restored {
  std::uint32_t round;
  Result<void> outcome;
  std::int64_t iteration;
  std::int64_t repeated;
};
struct Committed {
  std::uint32_t epoch, run;
  std::int64_t step;
  Result<void> outcome;  ///< success: all before the commit has ended well
};
/// All that was asked of others before the commit of this step is answered.
struct Flushed {
  std::uint32_t epoch, run;
  std::int64_t step;
};
struct Finished {
  std::uint32_t epoch, run;
  std::int64_t step;  ///< that the run has ended with; kAnyStep: it was left
};
/// The program has left its run by an error of its own.
struct Left {
  std::uint32_t run;
  Error error;
};
/// A step has failed in this epoch as if by a fault: the epoch is to end, whatever has failed.
struct EndEpoch {
  std::uint32_t epoch;
  Error error;
};
struct AskToStop {};
/// This rank's GPU is failing, and its state is where others find it.
struct Withdraw {};
/// The program ends: answered when all that came before has been handled. With `all_left`, on rank
/// 0, also what is left to be told of the ranks' libraries.
struct Conclude {
  bool all_left;
  using Reply = bool;
};
/// The program has one group more, or some were freed.
struct GroupsChanged {};
/// There may be room for the next command of the verification.
struct VerifyOn {
  std::uint32_t round;
};
struct Deadline {};  ///< time to look at the deadlines
}  // namespace world_message

}  // namespace troupe::rank_process
