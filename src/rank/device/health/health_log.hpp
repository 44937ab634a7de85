#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include <troupe/gpu_health.hpp>

namespace troupe::rank_process {

/// How often a GPU has said what of its health. Any thread.
class HealthLog {
 public:
  /// Different things said that are remembered; more are only counted.
  static constexpr std::size_t kMost = 64;

  /// Counts the event. True: nothing like it was said before.
  bool add(const HealthEvent& event);
  [[nodiscard]] std::map<HealthKind, std::uint64_t> counts() const;

 private:
  mutable std::mutex mutex_;
  std::map<HealthKind, std::uint64_t> counts_;
  std::set<std::string> said_;
};

}  // namespace troupe::rank_process
