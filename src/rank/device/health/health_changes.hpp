#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <troupe/gpu_health.hpp>

namespace troupe::rank_process {

/// What has become worse from one look at a GPU to the next. The first look is compared with a GPU
/// in good health, but for what only counts up (errors of memory) or differs from machine to
/// machine (NVLinks that are up). Pure.
class HealthChanges {
 public:
  /// `counts_memory`: errors of memory are told by their counters, because no events tell of them.
  [[nodiscard]] std::vector<HealthEvent> look(const GpuHealth& health, bool counts_memory);

 private:
  bool pending_ = false, failed_ = false;
  std::string action_ = "none";
  std::set<std::string> slowed_by_;
  std::optional<int> links_, links_now_;  ///< the most that were up; those at the last look
  std::optional<std::uint64_t> uncorrected_;
};

}  // namespace troupe::rank_process
