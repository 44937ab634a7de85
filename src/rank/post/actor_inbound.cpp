#include "rank/post/actor_inbound.hpp"

#include <algorithm>

#include <troupe/actor/typed_cell.hpp>

namespace troupe::rank_process {
namespace {

constexpr std::chrono::microseconds kShortestPause{50};
constexpr std::chrono::microseconds kLongestPause{5000};

}  // namespace

class ActorInbound::Retry final : public TimerTask {
 public:
  explicit Retry(std::weak_ptr<ActorInbound> inbound) : inbound_(std::move(inbound)) {}
  void fire(const TimerId&) noexcept override {
    if (const auto inbound = inbound_.lock()) inbound->retry();
  }

 private:
  std::weak_ptr<ActorInbound> inbound_;
};

ActorInbound::ActorInbound(std::shared_ptr<const ActorPostParts> parts, Find find, int source,
                           std::uint32_t route, std::string name, std::uint64_t set)
    : parts_(std::move(parts)),
      find_(std::move(find)),
      source_(source),
      route_(route),
      name_(std::move(name)),
      set_(set) {}

void ActorInbound::received(const ActorPacket& packet) {
  const auto& head = packet.head;
  const std::lock_guard lock(mutex_);
  if (closed_ || head.number <= last_number_) return;  // at most once
  last_number_ = head.number;
  auto outcome = Result<void>(Error{Errc::would_block, 0, "held up"});
  if (held_.empty()) outcome = hand_over(head, packet.payload, {});
  if (outcome.code() != Errc::would_block) return done(head, outcome);
  if (held_.size() >= kActorWindow)
    return done(head, Error{Errc::would_block, 0, "its sender heeds no window"});
  held_.push_back(
      {head, {packet.payload.begin(), packet.payload.end()}, parts_->scheduler->clock().now()});
  if (held_.size() > 1) return;
  pause_ = kShortestPause;
  retry_later();
}

Result<void> ActorInbound::hand_over(const ActorMessage& head, std::span<const std::byte> payload,
                                     std::chrono::nanoseconds waited) {
  if (!actor_ || actor_->ended()) {
    auto found = find_(name_, set_);
    if (!found.ok()) return found.error();
    actor_ = std::move(*found);
  }
  Result<void> outcome;
  const auto failure = detail::guarded([&]() -> std::optional<Error> {  // a serializer may throw
    if (head.kind == ActorMessage::Kind::tell) {
      outcome = actor_->tell(head.type, payload);
      return std::nullopt;
    }
    const auto within = std::chrono::nanoseconds(head.within_ns) - waited;
    if (within <= std::chrono::nanoseconds::zero()) return std::nullopt;  // nobody waits any more
    const auto reply = [parts = parts_, source = source_, route = route_,
                        number = head.number](const Result<std::vector<std::byte>>& answer) {
      const ActorMessage back{.kind = ActorMessage::Kind::answer,
                              .from = parts->rank,
                              .route = route,
                              .number = number};
      if (!answer.ok()) return parts->send(source, encode(back, answer.error()));
      if (answer->size() > kMaxActorPayload)
        return parts->send(source,
                           encode(back, Error{Errc::invalid, 0,
                                              "an answer of " + std::to_string(answer->size()) +
                                                  " bytes cannot travel"}));
      parts->send(source, encode(back, *answer));
    };
    if (head.type == detail::kEndOfActor) {
      actor_->watch(reply);
      return std::nullopt;
    }
    outcome = actor_->ask(head.type, payload, within, reply);
    return std::nullopt;
  });
  return failure ? Result<void>(*failure) : outcome;
}

/// Tells the sender what became of a message, and in time that there is room for others.
void ActorInbound::done(const ActorMessage& head, const Result<void>& outcome) {
  if (!outcome.ok()) {
    const bool told = head.kind == ActorMessage::Kind::tell;
    parts_->send(source_,
                 encode({.kind = told ? ActorMessage::Kind::refused : ActorMessage::Kind::answer,
                         .from = parts_->rank,
                         .route = route_,
                         .number = head.number},
                        outcome.error()));
  }
  to_give_back_ += places_of(head.payload_bytes);
  if (to_give_back_ < kActorWindow / 2) return;
  parts_->send(source_, encode({.kind = ActorMessage::Kind::accepted,
                                .from = parts_->rank,
                                .route = route_,
                                .count = std::exchange(to_give_back_, 0)}));
}

void ActorInbound::retry() {
  const std::lock_guard lock(mutex_);
  if (closed_) return held_.clear();
  const auto now = parts_->scheduler->clock().now();
  bool any = false;
  while (!held_.empty() && !closed_) {
    const auto& first = held_.front();
    const auto outcome = hand_over(first.head, first.payload, now - first.since);
    if (outcome.code() == Errc::would_block) break;
    done(first.head, outcome);
    held_.pop_front();
    any = true;
  }
  if (held_.empty()) return;
  pause_ = any ? kShortestPause : std::min<std::chrono::nanoseconds>(2 * pause_, kLongestPause);
  retry_later();
}

void ActorInbound::settle() {
  const std::lock_guard lock(mutex_);
  held_.clear();
}

void ActorInbound::retry_later() {
  // A scheduler that takes no timer has stopped, or has a million of them; then what comes next
  // finds this full, and is refused.
  (void)parts_->scheduler->schedule(pause_, std::make_unique<Retry>(weak_from_this()));
}

}  // namespace troupe::rank_process
