#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::host::cuda {

/// Bytes of a device's memory that nobody has taken, without a context on it: by the NVIDIA
/// management library. Nothing where that is not there or does not know.
std::optional<std::uint64_t> free_memory_of(const std::string& bus_id);

/// What has taken how much of the device's memory: by how much less of it was free afterwards, so
/// that what other processes take at the same moment is counted along. What stands in the memory
/// pool of the stream order is a cause of its own. Any thread.
class MemoryUse {
 public:
  /// Calls `work()`, which takes memory for `cause`.
  template <class Work>
  auto measured(const std::string& cause, Work&& work) {
    const auto before = look();
    auto outcome = std::forward<Work>(work)();
    const auto after = look();
    add(cause, static_cast<std::int64_t>(before.free - after.free) -
                   static_cast<std::int64_t>(after.pool - before.pool));
    return outcome;
  }
  void add(const std::string& cause, std::int64_t bytes);
  void forget(const std::string& cause);
  /// All of it, and the pool as "workspaces".
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> all() const;

 private:
  struct Look {
    std::uint64_t free = 0, pool = 0;
  };
  static Look look();

  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> bytes_;
};

}  // namespace troupe::host::cuda
