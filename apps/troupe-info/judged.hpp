#pragma once

#include <string>
#include <vector>

#include "burn_in_verdicts.hpp"

/// Parts that the verdicts of a burn-in have in common.
namespace troupe::info {

/// "rank 3 (n01, GPU-…)"
inline std::string name_of(const BurnIn& rank) {
  return "rank " + std::to_string(rank.rank) + " (" + rank.host + ", " +
         (rank.uuid.empty() ? "no device" : rank.uuid) + ")";
}

/// The ranks of which the predicate is true.
template <class Predicate>
std::vector<const BurnIn*> ranks_where(const std::vector<BurnIn>& ranks, Predicate is_so) {
  std::vector<const BurnIn*> found;
  for (const auto& rank : ranks) {
    if (is_so(rank)) found.push_back(&rank);
  }
  return found;
}

/// "rank 3 (n01, GPU-…) (and 1 more rank): …", a failure of all of them.
inline Judged failed(const std::string& check, const std::vector<const BurnIn*>& culprits,
                     const std::string& found, const std::string& remedy) {
  Judged judged{{check, Verdict::failed,
                 name_of(*culprits[0]) + and_more(culprits.size()) + ": " + found, remedy},
                {}};
  for (const auto* rank : culprits) judged.failed.push_back(rank->rank);
  return judged;
}
inline Judged warned(const std::string& check, const std::vector<const BurnIn*>& about,
                     const std::string& found, const std::string& remedy) {
  auto judged = failed(check, about, found, remedy);
  judged.finding.verdict = Verdict::warning;
  judged.failed.clear();
  return judged;
}
inline Judged fine(const std::string& check, const std::string& found) {
  return {{check, Verdict::ok, found, ""}, {}};
}
/// A check that some ranks have not come to, because one has given up.
inline Judged not_tried(const std::string& check, const std::vector<const BurnIn*>& ranks) {
  return warned(check, ranks, "not tried", "see above");
}

}  // namespace troupe::info
