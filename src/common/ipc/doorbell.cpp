#include "common/ipc/doorbell.hpp"

#include <sched.h>
#include <sys/eventfd.h>

#include <cstdint>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {

Result<Doorbell> Doorbell::create() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return system_error("eventfd");
  return Doorbell(std::move(fd));
}

void Doorbell::ring() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void Doorbell::clear() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(fd_.get(), &count, sizeof count);
}

int usable_cores() noexcept {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace troupe::ipc
