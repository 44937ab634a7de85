#include "rank/protocol/split_order.hpp"

#include <algorithm>
#include <set>

namespace troupe::rank_process {
namespace {

using Kind = WorldMessage::Kind;

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
  return at != waiting_.end() && at->second.call.is_same(call);
}

std::optional<SplitOrder::Finding> SplitOrder::receive(const WorldMessage& message, TimePoint now) {
  if (message.kind == Kind::split_given_up) {
    const auto at = waiting_.find(message.rank);
    if (at == waiting_.end()) return std::nullopt;  // all have agreed by now, and it is told so
    answer(message.rank, at->second.call, Errc::world_reformed);
    waiting_.erase(at);
    return std::nullopt;
  }
  if (message.kind == Kind::at_call) return judge(message, now);
  auto call = decode_host_call(message.payload);
  if (!call.ok() || !has(*call, message.rank)) return Finding{{Errc::internal, 0, "a split"}};
  return begins(message.rank, std::move(*call), now);
}

std::optional<SplitOrder::Finding> SplitOrder::begins(int rank, HostCall call, TimePoint now) {
  if (waiting_.empty()) {
    pause_ = kFirstQuestion;
    ask_at_ = now + pause_;
  }
  waiting_.insert_or_assign(rank, Waiting{call, now});
  const bool all = std::all_of(call.ranks.begin(), call.ranks.end(),
                               [&](int other) { return waits_in(other, call); });
  if (all) {
    for (const int other : call.ranks) {
      answer(other, call, Errc::ok);
      waiting_.erase(other);
    }
    return std::nullopt;
  }
  const auto circle = circle_through(rank);
  if (circle.empty()) return std::nullopt;
  std::vector<std::pair<int, std::string>> named;
  for (const int one : circle) named.emplace_back(one, waiting_.at(one).call.name);
  std::sort(named.begin(), named.end());
  return Finding{disagreement(named)};
}

/// Ranks each of which waits for the next, the last one for the first; depth first.
std::vector<int> SplitOrder::circle_through(int rank) const {
  std::vector<int> path{rank};
  std::set<int> seen{rank};
  std::vector<std::size_t> next{0};  // of the ranks that each on the path waits for
  while (!path.empty()) {
    const auto& call = waiting_.at(path.back()).call;
    if (next.back() == call.ranks.size()) {
      path.pop_back();
      next.pop_back();
      continue;
    }
    const int other = call.ranks[next.back()++];
    if (!waiting_.contains(other) || waits_in(other, call)) continue;
    if (other == rank) return path;
    if (!seen.insert(other).second) continue;
    path.push_back(other);
    next.push_back(0);
  }
  return {};
}

std::optional<SplitOrder::Finding> SplitOrder::judge(const WorldMessage& answer,
                                                     TimePoint now) const {
  const int rank = answer.rank;
  const bool ended = answer.repeated == kAtTheEnd;
  std::optional<HostCall> other;
  if (answer.repeated == kInHostCall) {
    if (auto call = decode_host_call(answer.payload); call.ok()) other = std::move(*call);
  }
  if (!ended && !other) return std::nullopt;  // it may come yet
  for (const auto& [waits, waiting] : waiting_) {
    const auto& call = waiting.call;
    if (!has(call, rank) || waits_in(rank, call)) continue;
    const bool past = other && other->communicator == call.communicator &&
                      other->ranks == call.ranks && other->number >= call.number;
    if (!past && !(ended && now - waiting.since >= kEndedPatience)) continue;
    std::vector<std::pair<int, std::string>> named{{waits, call.name},
                                                   {rank, ended ? answer.text : other->name}};
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
  for (const auto& [rank, waiting] : waiting_) {
    for (const int other : waiting.call.ranks) {
      if (!waiting_.contains(other)) missing.insert(other);
    }
  }
  for (const int rank : missing) send_(rank, {.kind = Kind::ask_call});
}

void SplitOrder::answer(int rank, const HostCall& call, Errc code) {
  send_(rank, {.kind = Kind::split_agreed,
               .code = static_cast<std::uint32_t>(code),
               .formation = call.communicator,
               .step = static_cast<std::int64_t>(call.number)});
}

}  // namespace troupe::rank_process
