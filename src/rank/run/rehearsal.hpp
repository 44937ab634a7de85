#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/device.hpp>

#include "rank/net/host_group.hpp"
#include "rank/run/device_exchange.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Finds out before the first fault whether a run outlives one: --rehearse.
///
/// Intuition: what a run goes on from after a fault is its checkpoint and nothing else. So each
/// interval between two commits is done twice from the same commit, the second time with a device
/// host lost on the way, and the two states at its end are compared. A buffer that was left out of
/// the checkpoint, a value on the host, or a result that depends on chance makes them differ.
///
/// Each interval takes three passes over its steps:
///
///     first      as always; at its end the state is copied to the host, and the device host of a
///                random rank is killed, which takes all ranks back to the commit
///     second     the device host of a random rank is killed at a random step; back to the commit
///     third      to the end, where the state is compared with the copy; then it is committed
///
/// Both ways back are the usual recovery. The random choices come from the seed and the step of the
/// commit, so all ranks make the same. All ranks end each pass together, in a collective of the
/// devices, for that fails like any other if a fault comes in between. So no rank ends a second
/// pass before the fault has struck, and faults that nobody ordered do no harm: where they leave
/// ranks in different passes, all begin the interval again with the first.
///
/// What the steps of a first pass write is compared with the checkpoint too: a buffer that is older
/// than the step that writes it, outlives the interval, and is neither state nor scratch is a
/// finding, for a fault may leave it stale.
///
/// Lives on the program's thread.
class Rehearsal {
 public:
  /// `stride`: steps of one call, as RunOptions has it.
  Rehearsal(WorldCore& core, Checkpoint& checkpoint, const RehearsalOptions& options,
            std::int64_t stride);

  /// The run begins with this step, or goes on from it after a recovery.
  void resume(std::int64_t step);
  /// The commit of `step` has been submitted: the next interval begins.
  void begin(std::int64_t step);
  void before_step(std::int64_t step);
  /// The steps up to `step` are done. Throws world_reformed where the interval is to be done again.
  /// True, on all ranks alike: something was found, and the run should end.
  [[nodiscard]] bool end(std::int64_t step);
  /// What an error says that came after a loss in the rehearsal.
  [[nodiscard]] Error explain(const Error& error) const;
  /// The run has ended on all ranks. Throws CollectiveException (stopped) if anything was found.
  void conclude();

 private:
  enum class Pass { first, second, third };

  void find_unlisted(std::int64_t step);
  void look_at_the_state(std::int64_t step);
  /// What the ranks tell each other at the end of a pass: whether it is the first of any of them,
  /// and whether any has found something.
  struct Meeting {
    bool first, found;
  };
  [[nodiscard]] Meeting meet();
  void find(const std::string& what);
  /// Kills that rank's device host, and waits for the recovery to begin.
  [[noreturn]] void go_back(int victim);
  [[nodiscard]] std::string interval(std::int64_t step) const;

  WorldCore* core_;
  const HostGroup* members_;
  Checkpoint* checkpoint_;
  RehearsalOptions options_;
  std::int64_t stride_;
  Device device_;
  DeviceExchange exchange_;
  Pass pass_ = Pass::first;
  bool leaving_ = false;      ///< the first pass is done, and its device host ordered to die
  std::int64_t begin_ = -1;   ///< the commit that the interval begins with
  std::int64_t strike_ = -1;  ///< the step of the second pass in which the device host is lost
  int victim_ = 0;            ///< whose
  std::vector<std::vector<std::byte>> state_;  ///< of the end of the first pass
  std::vector<std::string> findings_;          ///< of this rank
  std::int64_t intervals_ = 0, steps_ = 0;     ///< rehearsed
};

}  // namespace troupe::rank_process
