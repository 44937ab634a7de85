#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/corruption.hpp>

#include "rank/run/device_exchange.hpp"
#include "rank/store/compare.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Finds numbers that the hardware has got wrong, in a run that repeats bit for bit: --verify.
///
/// Each Nth interval between two commits is done in passes, all from the commit that it begins
/// with:
///
///     first    at its end the state is set aside, in the half of the checkpoint that the next
///              commit is to overwrite
///     second   at its end the state is compared with what was set aside, by digests of the device
///     third    only if they differ on some rank: the two of three passes that agree are the state
///
/// The passes are those of all ranks together, because ranks pass wrong numbers on. Whose numbers
/// were wrong first tells what the ranks have given to collectives (CollectiveDigests).
///
/// All members call each function alike. The program's thread.
class Verifier {
 public:
  enum class Outcome {
    good,      ///< the state counts
    again,     ///< the interval has to be done again, from its commit
    undecided  ///< likewise, and no two of three passes agree
  };

  /// `every`: N above. All outlive this.
  Verifier(WorldCore& core, Checkpoint& checkpoint, DeviceExchange& exchange, std::int64_t every,
           const RunOptions& run)
      : core_(&core), checkpoint_(&checkpoint), exchange_(&exchange), every_(every), run_(&run) {}

  /// The interval behind the commit of `step` begins, with its first pass.
  void begin(std::int64_t step);
  /// True if the interval is one that is verified.
  [[nodiscard]] bool is_due() const noexcept { return due_; }
  /// No steps follow for now.
  void pause() {
    core_->device().run_singly(false);
    core_->collective_digests().end();
  }
  /// The state has been taken back to the commit: the next pass begins.
  void go_on();
  /// The steps before `next` are done on all ranks, with all that ranks have asked of one another
  /// for them.
  [[nodiscard]] Outcome end(std::int64_t next);

 private:
  enum class Pass { first, second, third };
  /// A rank's account of the first two passes, where they differ.
  struct Told;

  /// The first entry that differs from what was set aside.
  struct Entry {
    std::size_t index;
    Difference how;
  };
  [[nodiscard]] std::optional<Entry> differs_from_aside();
  [[nodiscard]] std::optional<Entry> differs_from_second();
  /// Data of the host that no step changes.
  [[nodiscard]] bool is_constant(std::size_t entry) const;
  /// The entries whose digests are not those of what was set aside.
  [[nodiscard]] std::vector<std::size_t> other_digests();
  [[nodiscard]] Outcome end_second();
  [[nodiscard]] Outcome end_third();
  void remember(bool persistent, bool second_is_wrong);

  WorldCore* core_;
  Checkpoint* checkpoint_;
  DeviceExchange* exchange_;
  std::int64_t every_;
  const RunOptions* run_;
  GpuRef<std::uint64_t> digests_;
  bool due_ = false;
  Pass pass_ = Pass::first;
  std::int64_t begin_ = -1, next_ = -1;
  std::vector<std::vector<std::byte>> second_;  ///< the state at the end of the second pass
  Corruption found_;  ///< what the first two passes tell; `wrong` is the value of the first
};

}  // namespace troupe::rank_process
