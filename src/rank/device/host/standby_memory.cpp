#include "rank/device/host/standby_memory.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {
namespace {

/// 0: nobody knows.
std::uint64_t free_in(const Result<wire::ControlMessage>& answer) {
  return answer.ok() ? answer->head.bytes : 0;
}

}  // namespace

void StandbyMemory::before(const HostLink* serving, std::uint64_t slabs) {
  if (std::exchange(asked_, true)) {
    before_.reset();
  } else if (serving != nullptr) {
    requests_->ask(*serving, {.kind = wire::ControlKind::memory_use}, -1,
                   [this, slabs](const Result<wire::ControlMessage>& answer) {
                     const auto free = free_in(answer);
                     before_ = free == 0 ? std::nullopt : std::optional(free + slabs);
                   });
  }
}

void StandbyMemory::after(const HostLink* serving, std::uint64_t slabs,
                          const std::function<void(std::optional<std::uint64_t>)>& then) {
  if (serving == nullptr || !before_) return then(std::nullopt);
  requests_->ask(*serving, {.kind = wire::ControlKind::memory_use}, -1,
                 [this, slabs, then](const Result<wire::ControlMessage>& answer) {
                   const auto free = free_in(answer);
                   if (free == 0) before_.reset();
                   if (!before_) return then(std::nullopt);
                   bytes_ = *before_ - std::min(*before_, free + slabs);
                   then(bytes_);
                 });
}

}  // namespace troupe::rank_process
