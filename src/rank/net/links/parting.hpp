#pragma once

#include <cstdint>
#include <set>

#include "common/links/links.hpp"

namespace troupe::rank_process {

using net::LinkChannel;
using net::LinkHub;
using net::Links;

/// All ranks leave together: what one of them has sent before can be received by then. A barrier by
/// dissemination: in round k each tells the one that is 2^k behind it (D. Hensgen, R. Finkel, U.
/// Manber, "Two algorithms for barrier synchronization", International Journal of Parallel
/// Programming 17, 1988).
class Parting {
 public:
  static constexpr std::uint32_t kTag = UINT32_MAX;  ///< of its messages

  Parting(int rank, int size) : rank_(rank), size_(size) {}

  /// True once all ranks call it, again and again. Then it begins anew.
  bool advance(Links& links);
  /// A message of this tag has come.
  void hear(const Links::Head& head) { heard_.emplace(head.sequence, head.slot); }
  [[nodiscard]] bool under_way() const noexcept { return under_way_; }

 private:
  int rank_, size_;
  bool under_way_ = false;
  bool said_ = false;         ///< in this round
  std::uint64_t number_ = 0;  ///< of partings
  std::uint32_t round_ = 0;
  std::set<std::pair<std::uint64_t, std::uint32_t>> heard_;  ///< parting and round
};

}  // namespace troupe::rank_process
