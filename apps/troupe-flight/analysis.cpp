#include "analysis.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::flight {
namespace {

/// One rank's part in the collectives of one epoch.
class Progress {
 public:
  Progress(const Dump& dump, std::uint32_t epoch)
      : dump_(&dump), submitted_(dump.epoch == epoch ? dump.collectives : 0) {
    for (const auto& operation : dump.operations) {
      // One that was tried again has the same number: the last attempt counts.
      if (operation.collective != 0 && operation.group == 0 && operation.epoch == epoch)
        by_number_[operation.collective] = &operation;
    }
  }

  [[nodiscard]] const Dump& dump() const { return *dump_; }
  [[nodiscard]] std::uint32_t submitted() const { return submitted_; }
  /// What is submitted and no longer recorded was so long ago that it counts as completed.
  [[nodiscard]] std::uint32_t first_open() const {
    for (const auto& [number, operation] : by_number_) {
      if (operation->completed_ns == 0) return number;
    }
    return submitted_ + 1;
  }
  [[nodiscard]] const Operation* find(std::uint32_t number) const {
    const auto it = by_number_.find(number);
    return it == by_number_.end() ? nullptr : it->second;
  }
  [[nodiscard]] Stand stand(std::uint32_t number) const {
    if (number > submitted_) return Stand::not_submitted;
    const auto* const operation = find(number);
    if (operation == nullptr || operation->completed_ns != 0) return Stand::completed;
    return operation->issued_ns == 0 ? Stand::not_issued : Stand::not_completed;
  }

 private:
  const Dump* dump_;
  std::uint32_t submitted_;
  std::map<std::uint32_t, const Operation*> by_number_;
};

const Operation* oldest_unfinished(const Dump& dump, std::uint64_t before_ticket) {
  for (const auto& operation : dump.operations) {
    if (operation.ticket >= before_ticket) break;
    if (operation.completed_ns == 0) return &operation;
  }
  return nullptr;
}

/// What a rank is at while it should be at that collective.
const Operation* whereabouts(const Progress& rank, std::uint32_t number) {
  const auto* const there = rank.find(number);
  const auto* const open =
      oldest_unfinished(rank.dump(), there != nullptr ? there->ticket : UINT64_MAX);
  if (open != nullptr) return open;
  if (there != nullptr) return there;
  return rank.dump().operations.empty() ? nullptr : &rank.dump().operations.back();
}

using Call = std::pair<std::string, std::uint64_t>;  ///< operation and length

Call common_call(const std::vector<Progress>& ranks, std::uint32_t number) {
  std::map<Call, int> calls;
  for (const auto& rank : ranks) {
    if (const auto* const operation = rank.find(number))
      ++calls[{operation->name, operation->count}];
  }
  if (calls.empty()) return {};
  return std::max_element(calls.begin(), calls.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void name_culprits(const std::vector<Progress>& ranks, Analysis& analysis) {
  const auto number = analysis.collective;
  const Call common{analysis.operation, analysis.count};
  const auto stand_of = [&](const Progress& rank) {
    const auto* const operation = rank.find(number);
    const bool other = operation != nullptr && Call{operation->name, operation->count} != common;
    return other ? Stand::other_call : rank.stand(number);
  };
  const auto any = [&](Stand stand) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const Progress& rank) { return stand_of(rank) == stand; });
  };
  for (const auto& rank : ranks) {
    if (rank.stand(number) == Stand::not_completed) analysis.waiting.push_back(rank.dump().rank);
  }
  for (const auto stand :
       {Stand::not_submitted, Stand::other_call, Stand::not_issued, Stand::not_completed}) {
    if (!any(stand)) continue;
    if (stand == Stand::not_completed && !any(Stand::completed)) return;
    for (const auto& rank : ranks) {
      if (stand_of(rank) == stand)
        analysis.culprits.push_back({rank.dump().rank, stand, whereabouts(rank, number)});
    }
    return;
  }
}

}  // namespace

std::string to_string(Stand stand) {
  switch (stand) {
    case Stand::not_submitted: return "has not submitted it";
    case Stand::not_issued: return "has submitted it, its device host has not issued it";
    case Stand::not_completed: return "has issued it and not completed it, as others have";
    case Stand::other_call: return "calls another operation or length in its place";
    case Stand::completed: return "has completed it";
  }
  return "";
}

Analysis analyse(const std::vector<Dump>& dumps) {
  Analysis analysis;
  for (const auto& dump : dumps) {
    analysis.epoch = std::max(analysis.epoch, dump.epoch);
    analysis.unfinished.push_back(oldest_unfinished(dump, UINT64_MAX));
  }
  for (int rank = 0; rank < dumps.front().size; ++rank) {
    if (std::none_of(dumps.begin(), dumps.end(),
                     [&](const Dump& dump) { return dump.rank == rank; }))
      analysis.no_dump.push_back(rank);
  }
  std::vector<Progress> ranks;
  std::uint32_t first_open = UINT32_MAX, last = 0;
  for (const auto& dump : dumps) {
    const auto& rank = ranks.emplace_back(dump, analysis.epoch);
    first_open = std::min(first_open, rank.first_open());
    last = std::max(last, rank.submitted());
  }
  if (first_open > last) return analysis;
  analysis.collective = first_open;
  std::tie(analysis.operation, analysis.count) = common_call(ranks, first_open);
  for (const auto& rank : ranks) {
    const auto* const operation = rank.find(first_open);
    if (operation != nullptr &&
        (analysis.time_ns == 0 || operation->submitted_ns < analysis.time_ns))
      analysis.time_ns = operation->submitted_ns;
  }
  name_culprits(ranks, analysis);
  return analysis;
}

}  // namespace troupe::flight
