#include "rank/world/status/phase_faults.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/net/session.hpp"

namespace troupe::rank_process {

void suffer(RankDeath death) {
  switch (death) {
    case RankDeath::rank: break;
    case RankDeath::node:
      // This process goes with its keeper. Without one its parent is the launcher's.
      if (!Session::has_keeper()) break;
      ::kill(::getppid(), SIGKILL);
      for (;;) ::pause();
    case RankDeath::stop: ::raise(SIGSTOP); return;
  }
  ::kill(::getpid(), SIGKILL);
}

void PhaseFaults::order(memory::FaultKind kind, Phase phase) {
  const std::lock_guard lock(mutex_);
  ordered_.emplace_back(phase, kind);
}

void PhaseFaults::order(RankDeath death, Phase phase) {
  const std::lock_guard lock(mutex_);
  deaths_.emplace_back(phase, death);
}

std::optional<RankDeath> PhaseFaults::take_death(Phase phase) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(deaths_.begin(), deaths_.end(),
                               [&](const auto& death) { return death.first == phase; });
  if (it == deaths_.end()) return std::nullopt;
  const auto death = it->second;
  deaths_.erase(it);
  return death;
}

std::optional<memory::FaultKind> PhaseFaults::take(Phase phase) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(ordered_.begin(), ordered_.end(),
                               [&](const auto& fault) { return fault.first == phase; });
  if (it == ordered_.end()) return std::nullopt;
  const auto kind = it->second;
  ordered_.erase(it);
  return kind;
}

void PhaseFaults::tell_left() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [phase, kind] : ordered_) {
    log::warn("world",
              "the {} that was ordered for {} has not struck: no recovery came to that phase",
              to_string(kind), to_string(phase));
  }
  for (const auto& [phase, death] : deaths_) {
    log::warn("world",
              "the end of this rank that was ordered for {} ({}) has not come: no recovery came to "
              "that phase",
              to_string(phase), to_string(death));
  }
}

}  // namespace troupe::rank_process
