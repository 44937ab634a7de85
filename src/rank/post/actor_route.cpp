#include "rank/post/actor_route.hpp"

#include <algorithm>

namespace troupe::rank_process {

/// Ends a question when its time is over.
class ActorRoute::Deadline final : public TimerTask {
 public:
  Deadline(std::weak_ptr<ActorRoute> route, std::uint64_t number)
      : route_(std::move(route)), number_(number) {}
  void fire(const TimerId&) noexcept override {
    const auto route = route_.lock();
    if (!route) return;
    if (const auto answer = route->take(number_))
      answer->resolve(Error{Errc::timeout, 0, "no answer before the deadline"});
  }

 private:
  std::weak_ptr<ActorRoute> route_;
  std::uint64_t number_;
};

ActorRoute::ActorRoute(std::shared_ptr<const ActorPostParts> parts, int rank, std::string name,
                       std::uint64_t set, std::uint32_t number)
    : parts_(std::move(parts)), rank_(rank), name_(std::move(name)), set_(set), route_(number) {}

Result<void> ActorRoute::may_send(std::size_t bytes) {
  if (closed_) return *closed_;
  if (bytes > kMaxActorPayload)
    return Error{Errc::invalid, 0,
                 "a message of " + std::to_string(bytes) + " bytes to actor '" + name_ +
                     "' cannot travel: at most " + std::to_string(kMaxActorPayload) + " can"};
  if (taken_ + places_of(bytes) > kActorWindow)
    return Error{Errc::would_block, 0,
                 "actor '" + name_ + "' of rank " + std::to_string(rank_) +
                     " has yet to take what was sent before"};
  return {};
}

void ActorRoute::send(ActorMessage head, std::span<const std::byte> payload) {
  head.from = parts_->rank;
  head.route = route_;
  if (!std::exchange(opened_, true)) {
    parts_->send(
        rank_,
        encode(
            {.kind = ActorMessage::Kind::open, .from = parts_->rank, .route = route_, .set = set_},
            std::as_bytes(std::span(name_))));
  }
  taken_ += places_of(payload.size());
  parts_->send(rank_, encode(head, payload));
}

Result<void> ActorRoute::tell(std::uint32_t type, std::vector<std::byte> payload) {
  const std::lock_guard lock(mutex_);
  if (auto possible = may_send(payload.size()); !possible.ok()) return possible;
  send({.kind = ActorMessage::Kind::tell, .type = type, .number = ++last_number_}, payload);
  return {};
}

Result<void> ActorRoute::ask(std::uint32_t type, std::vector<std::byte> payload,
                             std::chrono::nanoseconds within,
                             std::unique_ptr<detail::PendingAnswer> answer) {
  within = std::max(within, std::chrono::nanoseconds::zero());
  const std::lock_guard lock(mutex_);
  if (auto possible = may_send(payload.size()); !possible.ok()) return possible;
  const auto number = last_number_ + 1;
  const auto deadline =
      parts_->scheduler->schedule(within, std::make_unique<Deadline>(weak_from_this(), number));
  if (!deadline) return Error{Errc::would_block, 0, "too many timers"};
  last_number_ = number;
  questions_.emplace(number, Question{std::move(answer), *deadline});
  send({.kind = ActorMessage::Kind::ask,
        .type = type,
        .number = number,
        .within_ns = within.count()},
       payload);
  return {};
}

void ActorRoute::report(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ && closed_->code == Errc::stopped) return;  // nobody is there to be told
  }
  parts_->report(error);
}

void ActorRoute::accepted(std::uint32_t places) {
  const std::lock_guard lock(mutex_);
  taken_ -= std::min(places, taken_);
}

void ActorRoute::refused(const Error& error) {
  report({error.code, error.native,
          "a message to actor '" + name_ + "' of rank " + std::to_string(rank_) +
              " was not delivered: " + error.message});
}

std::unique_ptr<detail::PendingAnswer> ActorRoute::take(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = questions_.find(number);
  if (found == questions_.end()) return nullptr;
  auto question = std::move(found->second);
  questions_.erase(found);
  parts_->scheduler->cancel(question.deadline);
  return std::move(question.answer);
}

void ActorRoute::answered(std::uint64_t number, const Result<std::span<const std::byte>>& answer) {
  if (const auto pending = take(number)) pending->resolve(answer);
}

void ActorRoute::close(const Error& why, EndedQuestions& ended) {
  const std::lock_guard lock(mutex_);
  closed_ = why;
  for (auto& [number, question] : questions_) {
    parts_->scheduler->cancel(question.deadline);
    ended.emplace_back(std::move(question.answer), why);
  }
  questions_.clear();
}

void ActorRoute::reopen(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  route_ = number;
  opened_ = false;
  closed_.reset();
  taken_ = 0;
}

}  // namespace troupe::rank_process
