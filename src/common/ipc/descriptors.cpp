#include "common/ipc/descriptors.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {
namespace {

constexpr rlim_t kEnough = rlim_t{1} << 20;

/// 0 if it is not known.
rlim_t limit() noexcept {
  rlimit limits{};
  return ::getrlimit(RLIMIT_NOFILE, &limits) == 0 ? limits.rlim_cur : 0;
}

std::string limit_text() {
  return "the " + std::to_string(limit()) +
         " descriptors that a process may have (RLIMIT_NOFILE; `ulimit -Hn` raises it)";
}

/// Descriptors that are open, this listing's own not counted.
Result<rlim_t> count_open() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return system_error("/proc/self/fd");
  rlim_t entries = 0;
  while (::readdir(folder) != nullptr) ++entries;
  ::closedir(folder);
  return entries - 3;  // ".", "..", and the listing
}

}  // namespace

void fill_standard_descriptors() noexcept {
  for (const int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free: this one. The other way round than it would be used.
    (void)::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

void raise_descriptor_limit() noexcept {
  rlimit limits{};
  if (::getrlimit(RLIMIT_NOFILE, &limits) != 0) return;
  const auto wanted = std::min(limits.rlim_max, kEnough);
  if (limits.rlim_cur >= wanted) return;
  limits.rlim_cur = wanted;
  (void)::setrlimit(RLIMIT_NOFILE, &limits);  // what was allowed before is still allowed
}

Result<void> keep_descriptors(unsigned reserve) {
  const auto open = count_open();
  if (open.ok() && *open + reserve <= limit()) return {};
  const auto left = open.ok() ? limit() - std::min(limit(), *open) : 0;
  return Error{Errc::out_of_memory, EMFILE,
               std::to_string(left) + " are left of " + limit_text() + ", and " +
                   std::to_string(reserve) +
                   " are kept for starting device hosts: raise the limit, or take memory in larger "
                   "pieces (--slab-size)"};
}

Error no_descriptor_left(const std::string& what) {
  return {Errc::out_of_memory, EMFILE, what + ": none is left of " + limit_text()};
}

}  // namespace troupe::ipc
