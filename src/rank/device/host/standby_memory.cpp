#include "rank/device/host/standby_memory.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {
namespace {

/// 0: nobody knows.
std::uint64_t free_in(const Result<wire::from_host::MemoryUse>& answer) {
  return answer.ok() ? answer->free : 0;
}

}  // namespace

void StandbyMemory::before(const HostLink* serving, std::uint64_t slabs) {
  if (std::exchange(asked_, true)) {
    before_.reset();
  } else if (serving != nullptr) {
    (void)requests_->ask(*serving, wire::to_host::TellMemoryUse{},
                         [this, slabs](const Result<wire::from_host::MemoryUse>& answer) {
                           const auto free = free_in(answer);
                           before_ = free == 0 ? std::nullopt : std::optional(free + slabs);
                         });
  }
}

void StandbyMemory::after(const HostLink* serving, std::uint64_t slabs,
                          const std::function<void(std::optional<std::uint64_t>)>& then) {
  if (serving == nullptr || !before_) return then(std::nullopt);
  (void)requests_->ask(*serving, wire::to_host::TellMemoryUse{},
                       [this, slabs, then](const Result<wire::from_host::MemoryUse>& answer) {
                         const auto free = free_in(answer);
                         if (free == 0) before_.reset();
                         if (!before_) return then(std::nullopt);
                         bytes_ = *before_ - std::min(*before_, free + slabs);
                         then(bytes_);
                       });
}

}  // namespace troupe::rank_process
