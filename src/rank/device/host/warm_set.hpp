#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/control.hpp"

namespace troupe::rank_process {

/// What the device hosts of a rank have used: libraries, kinds of commands that recur, plans that
/// took a search. Their successors prepare it before they are needed. Bounded: what has not come
/// for longest goes first. One thread.
class WarmSet {
 public:
  using Blob = std::vector<std::byte>;
  static constexpr std::size_t kMaxKinds = 256;
  static constexpr std::size_t kMaxPlans = 256, kMaxPlanBytes = std::size_t{64} << 20;

  /// These return whether it was not there.
  bool add_library(const std::string& library) { return libraries_.insert(library).second; }
  /// `key`: wire::kind_key(), `record`: of any command of the kind.
  bool add_kind(std::uint64_t key, Blob record);
  bool add_plan(const std::string& library, Blob plan);
  /// Forgets kinds and plans; libraries stay.
  void clear_kinds();

  [[nodiscard]] const std::set<std::string>& libraries() const noexcept { return libraries_; }
  /// Records, those that came last first: they are the likeliest to be needed.
  [[nodiscard]] std::vector<Blob> kinds() const;
  /// Those that came last first.
  [[nodiscard]] std::vector<wire::to_host::AdoptPlans::Plan> plans() const;

 private:
  std::set<std::string> libraries_;
  std::list<std::pair<std::uint64_t, Blob>> kinds_;  ///< newest first
  std::list<std::pair<std::string, Blob>> plans_;    ///< newest first
  std::size_t plan_bytes_ = 0;
};

}  // namespace troupe::rank_process
