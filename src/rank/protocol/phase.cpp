#include "rank/protocol/phase.hpp"

namespace troupe::rank_process {

std::string_view to_string(Phase phase) noexcept {
  if (phase == Phase::active) return "active";
  const auto place = static_cast<std::size_t>(phase) - 1;
  return place < std::size(kRecoveryPhases) ? kRecoveryPhases[place] : "unknown";
}

double Recovery::*time_of(Phase phase) noexcept {
#define TROUPE_RECOVERY_PHASE(name, time) \
  if (phase == Phase::name) return &Recovery::time##_ms;
#include <troupe/recovery.def>
  return nullptr;
}

}  // namespace troupe::rank_process
