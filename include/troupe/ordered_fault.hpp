#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/lib/fault_kind.hpp>
#include <troupe/recovery.hpp>

namespace troupe {

/// A fault that a program is told to let a device host suffer: one value of its option --fault. In
/// this order it has the kind, when it strikes (an iteration, or a phase of a recovery), and the
/// rank. With the kind failing-gpu nothing breaks, but the rank's GPU says that it is failing. With
/// the kinds of RankDeath (rank, node, stop) the rank's own process is struck (--on-rank-loss
/// respawn). With those of SilentFault (flip, flip-result, slow …) numbers are wrong, or all takes
/// longer, and nothing says so.
struct OrderedFault {
  memory::FaultKind kind{};
  bool failing_gpu = false;
  std::optional<RankDeath> death{};
  std::optional<SilentFault> silent{};
  std::int64_t iteration = -1;  ///< -1: in `phase`
  std::string phase{};          ///< as World::inject_in_phase has it
  int rank = 0;
};

class Device;
class Runtime;

/// Holds the faults ordered for this rank until they have struck. The destructor logs a warning for
/// each fault whose iteration the program did not reach. One thread at a time.
class FaultsOfRank {
 public:
  FaultsOfRank() = default;
  /// This rank's of `all`. Those that wait for a phase of a recovery are the world's from now on.
  /// Deaths of this rank's process are past, as many as it has died. All ranks make one.
  /// Throws CollectiveException (invalid): the engine lacks a kind of fault.
  FaultsOfRank(Runtime& runtime, const std::vector<OrderedFault>& all);
  FaultsOfRank(FaultsOfRank&&) = default;
  FaultsOfRank& operator=(FaultsOfRank&&) = default;
  ~FaultsOfRank();
  /// Those strike whose iteration is one of `count` from `first` on, each once. True if a device
  /// host was struck.
  bool strike(std::int64_t first, std::int64_t count = 1);

 private:
  Device* device_ = nullptr;
  std::vector<OrderedFault> waiting_;
};

/// The option --fault, for a program's own options.
OptionSpec fault_option();
/// The values of that option. Errors: invalid, one line that names the option and the form.
Result<std::vector<OrderedFault>> ordered_faults(const Config& config);
/// Whether `ranks` ranks have all that are named. Errors: invalid.
Result<void> check_ranks(const std::vector<OrderedFault>& faults, int ranks);

}  // namespace troupe
