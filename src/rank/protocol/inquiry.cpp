#include "rank/protocol/inquiry.hpp"

#include <algorithm>
#include <vector>

namespace troupe::rank_process {
namespace {

constexpr std::size_t kNamed = 16;  ///< ranks that are named of those who say the same

std::string names(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return ranks.size() > kNamed ? text + " and " + std::to_string(ranks.size() - kNamed) + " more"
                               : text;
}

}  // namespace

void Inquiry::receive(const from_rank::Stalled& stalled, TimePoint now) {
  if (stalled.rank < 0 || stalled.rank >= size_ || open_) return;
  open_ = true;
  since_ = now;
  answers_.clear();
  broadcast_(from_supervisor::Inquire{++number_});
}

void Inquiry::receive(const from_rank::Standing& standing, TimePoint) {
  if (standing.rank < 0 || standing.rank >= size_ || !open_ || standing.inquiry != number_) return;
  answers_[standing.rank] = standing;
}

std::optional<Inquiry::Finding> Inquiry::tick(TimePoint now) {
  const bool all = static_cast<int>(answers_.size()) == size_;
  if (!open_ || (!all && now - since_ < kPatience)) return std::nullopt;
  open_ = false;
  return put_together();
}

Inquiry::Finding Inquiry::put_together() const {
  std::map<std::string, std::vector<int>> groups;
  std::vector<int> silent;
  std::int64_t longest = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const auto answer = answers_.find(rank);
    if (answer == answers_.end()) {
      silent.push_back(rank);
      continue;
    }
    groups[answer->second.text].push_back(rank);
    longest = std::max(longest, answer->second.waited_us);
  }
  std::string text = "no progress for " + std::to_string(longest / 1'000'000) + " s:";
  for (const auto& [what, ranks] : groups) text += " " + names(ranks) + ": " + what + ";";
  if (!silent.empty()) text += " " + names(silent) + ": no answer;";
  text.pop_back();
  return {text, disagreement(), deadlock()};
}

/// A rank that has ended its run takes no further step: one that is at a later step waits for ever.
std::optional<Error> Inquiry::disagreement() const {
  for (const auto& [rank, answer] : answers_) {
    if (answer.awaits != Awaits::end_of_run) continue;
    for (const auto& [other, its] : answers_) {
      const bool differs =
          its.awaits == Awaits::end_of_run ? its.step != answer.step : its.step > answer.step;
      if (!differs) continue;
      return Error{Errc::invalid, 0,
                   "the ranks disagree on the end of the run: rank " + std::to_string(rank) +
                       " has ended it with step " + std::to_string(answer.step) + ", rank " +
                       std::to_string(other) + " is at step " + std::to_string(its.step)};
    }
  }
  return std::nullopt;
}

/// Where all ranks have waited in host collectives for long, and not in the same, nobody comes to
/// that of another any more. A rank whose program has ended comes to none. One whose wait is short
/// beside that of others may be about to go on.
std::optional<Error> Inquiry::deadlock() const {
  if (static_cast<int>(answers_.size()) != size_) return std::nullopt;
  std::int64_t shortest = answers_.begin()->second.waited_us, longest = 0;
  bool alike = true;
  int in_host_call = -1, at_the_end = -1;  // the first of them
  for (const auto& [rank, answer] : answers_) {
    if (answer.awaits != Awaits::host_call && answer.awaits != Awaits::end_of_program)
      return std::nullopt;
    auto& first = answer.awaits == Awaits::host_call ? in_host_call : at_the_end;
    if (first < 0) first = rank;
    alike = alike && answer.text == answers_.begin()->second.text;
    shortest = std::min(shortest, answer.waited_us);
    longest = std::max(longest, answer.waited_us);
  }
  if (alike || in_host_call < 0 || shortest < longest / 2) return std::nullopt;
  if (at_the_end >= 0) {
    return Error{Errc::invalid, 0,
                 "the ranks disagree on their host collectives: rank " +
                     std::to_string(in_host_call) + ": " + answers_.at(in_host_call).text +
                     "; the program of rank " + std::to_string(at_the_end) + " has ended"};
  }
  return Error{Errc::invalid, 0, "the ranks wait for one another in different host collectives"};
}

}  // namespace troupe::rank_process
