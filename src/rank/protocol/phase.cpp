#include "rank/protocol/phase.hpp"

namespace troupe::rank_process {

std::string_view to_string(Phase phase) noexcept {
  constexpr std::string_view kNames[kPhaseCount] = {"active", "halt",   "quiesce", "replace",
                                                    "form",   "verify", "restore"};
  return static_cast<std::size_t>(phase) < kPhaseCount ? kNames[static_cast<std::size_t>(phase)]
                                                       : "unknown";
}

}  // namespace troupe::rank_process
