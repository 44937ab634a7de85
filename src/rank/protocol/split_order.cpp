#include "rank/protocol/split_order.hpp"

#include <algorithm>
#include <set>

namespace troupe::rank_process {
namespace {

constexpr std::size_t kShown = 8;  ///< ranks that an error names

Error disagreement(const std::vector<std::pair<int, std::string>>& ranks) {
  std::string text = "the ranks disagree on their host collectives, and wait for one another:";
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    text +=
        (i == 0 ? " rank " : "; rank ") + std::to_string(ranks[i].first) + ": " + ranks[i].second;
  if (ranks.size() > kShown) text += "; and others";
  return {Errc::invalid, 0, text};
}

bool has(const HostCall& call, int rank) {
  return std::find(call.ranks.begin(), call.ranks.end(), rank) != call.ranks.end();
}

}  // namespace

bool SplitOrder::waits_in(int rank, const HostCall& call) const {
  const auto at = waiting_.find(rank);
  return at != waiting_.end() && at->second.call->call.is_same(call);
}

std::list<SplitOrder::Call>::iterator SplitOrder::find(const HostCall& call) {
  return std::find_if(calls_.begin(), calls_.end(),
                      [&](const Call& other) { return other.call.is_same(call); });
}

void SplitOrder::leave(int rank) {
  const auto at = waiting_.find(rank);
  if (--at->second.call->come == 0) calls_.erase(at->second.call);
  waiting_.erase(at);
}

std::optional<SplitOrder::Finding> SplitOrder::receive(const from_rank::SplitGivenUp& given_up,
                                                       TimePoint) {
  const auto at = waiting_.find(given_up.rank);
  if (at == waiting_.end()) return std::nullopt;  // all have agreed by now, and it is told so
  answer(given_up.rank, at->second.call->call, Errc::world_reformed);
  leave(given_up.rank);
  return std::nullopt;
}

std::optional<SplitOrder::Finding> SplitOrder::receive(from_rank::Splitting splitting,
                                                       TimePoint now) {
  if (!has(splitting.call, splitting.rank) || waiting_.contains(splitting.rank))
    return Finding{{Errc::internal, 0, "a host collective"}};
  return begins(splitting.rank, std::move(splitting.call), now);
}

std::optional<SplitOrder::Finding> SplitOrder::begins(int rank, HostCall call, TimePoint now) {
  if (waiting_.empty()) {
    pause_ = kFirstQuestion;
    ask_at_ = now + pause_;
  }
  const auto name = call.name;
  auto at = find(call);
  if (at == calls_.end()) at = calls_.insert(at, Call{std::move(call)});
  ++at->come;
  waiting_.insert_or_assign(rank, Waiting{at, name, now});
  if (at->come == at->call.ranks.size()) {
    const auto agreed = at->call;
    for (const int other : agreed.ranks) {
      answer(other, agreed, Errc::ok);
      leave(other);
    }
    return std::nullopt;
  }
  const auto circle = circle_through(rank);
  if (circle.empty()) return std::nullopt;
  std::vector<std::pair<int, std::string>> named;
  for (const int one : circle) named.emplace_back(one, waiting_.at(one).name);
  std::sort(named.begin(), named.end());
  return Finding{disagreement(named)};
}

/// Ranks each of which waits for the next, the last one for the first; depth first.
std::vector<int> SplitOrder::circle_through(int rank) const {
  if (calls_.size() == 1) return {};
  std::vector<int> path{rank};
  std::set<int> seen{rank};
  std::vector<std::size_t> next{0};  // of the ranks that each on the path waits for
  while (!path.empty()) {
    const auto in = waiting_.at(path.back()).call;
    if (next.back() == in->call.ranks.size()) {
      path.pop_back();
      next.pop_back();
      continue;
    }
    const int other = in->call.ranks[next.back()++];
    const auto its = waiting_.find(other);
    if (its == waiting_.end() || its->second.call == in) continue;
    if (other == rank) return path;
    if (!seen.insert(other).second) continue;
    path.push_back(other);
    next.push_back(0);
  }
  return {};
}

std::optional<SplitOrder::Finding> SplitOrder::receive(const from_rank::AtCall& answer,
                                                       TimePoint now) const {
  const int rank = answer.rank;
  const bool ended = answer.awaits == Awaits::end_of_program,
             in_other = answer.awaits == Awaits::host_call;
  const auto& other = answer.call;
  if (!ended && !in_other) return std::nullopt;  // it may come yet
  for (const auto& [waits, waiting] : waiting_) {
    const auto& call = waiting.call->call;
    if (!has(call, rank) || waits_in(rank, call)) continue;
    const bool past = in_other && other.communicator == call.communicator &&
                      other.ranks == call.ranks && other.number >= call.number;
    if (!past && !(ended && now - waiting.since >= kEndedPatience)) continue;
    std::vector<std::pair<int, std::string>> named{{waits, waiting.name},
                                                   {rank, ended ? answer.place : other.name}};
    std::sort(named.begin(), named.end());
    return Finding{disagreement(named), !ended};
  }
  return std::nullopt;
}

void SplitOrder::tick(TimePoint now) {
  if (waiting_.empty() || now < ask_at_) return;
  pause_ = std::min<std::chrono::nanoseconds>(2 * pause_, kQuestionsApart);
  ask_at_ = now + pause_;
  std::set<int> missing;
  for (const auto& [call, come] : calls_) {
    for (const int other : call.ranks) {
      if (!waiting_.contains(other)) missing.insert(other);
    }
  }
  for (const int rank : missing) send_(rank, from_supervisor::AskCall{});
}

void SplitOrder::answer(int rank, const HostCall& call, Errc code) {
  send_(rank, from_supervisor::SplitAgreed{
                  .communicator = call.communicator, .number = call.number, .code = code});
}

}  // namespace troupe::rank_process
