#include "rank/post/actor_post.hpp"

#include <algorithm>

namespace troupe::rank_process {

using Kind = ActorMessage::Kind;

namespace {

/// Resolves questions on the scheduler's thread.
class Tell final : public TimerTask {
 public:
  explicit Tell(EndedQuestions questions) : questions_(std::move(questions)) {}
  void fire(const TimerId&) noexcept override {
    for (auto& [answer, error] : questions_) answer->resolve(error);
  }

 private:
  EndedQuestions questions_;
};

}  // namespace

ActorPost::ActorPost(ActorPostParts parts)
    : parts_(std::make_shared<const ActorPostParts>(std::move(parts))),
      excluded_(static_cast<std::size_t>(parts_->size), false) {}

// ---- names
// ---------------------------------------------------------------------------------------

Result<void> ActorPost::publish(const std::string& name,
                                std::shared_ptr<detail::PublishedActor> actor) {
  const std::lock_guard lock(mutex_);
  if (ended_) return *ended_;
  if (name.empty() || name.size() > kMaxActorPayload)
    return Error{Errc::invalid, 0, "an actor's name has 1 to 65536 characters"};
  if (actor->ended()) return Error{Errc::stopped, 0, "the actor has ended"};
  auto& place = published_[name];
  if (place && !place->ended())
    return Error{Errc::invalid, 0, "this rank has published an actor '" + name + "' already"};
  place = std::move(actor);
  return {};
}

Result<std::shared_ptr<detail::PublishedActor>> ActorPost::find(const std::string& name,
                                                                std::uint64_t set) {
  const auto whose = "rank " + std::to_string(parts_->rank);
  const std::lock_guard lock(mutex_);
  const auto found = published_.find(name);
  if (found == published_.end())
    return Error{Errc::invalid, 0, whose + " has published no actor of that name"};
  if (found->second->ended()) return Error{Errc::stopped, 0, "that actor has ended"};
  if (found->second->message_set() != set)
    return Error{Errc::invalid, 0, "the actor of that name of " + whose + " is of another class"};
  return found->second;
}

// ---- this rank's routes
// --------------------------------------------------------------------------

std::optional<Error> ActorPost::obstacle(int rank) const {
  if (ended_) return ended_;
  if (rank == parts_->rank) return std::nullopt;
  if (rank < 0 || rank >= parts_->size)
    return Error{Errc::peer_lost, 0, "there is no such rank in the world"};
  if (excluded_[static_cast<std::size_t>(parts_->rank)])
    return Error{Errc::peer_lost, 0, "this rank is not in the world any more"};
  if (excluded_[static_cast<std::size_t>(rank)])
    return Error{Errc::peer_lost, 0,
                 "rank " + std::to_string(rank) + " is not in the world any more"};
  return std::nullopt;
}

std::shared_ptr<detail::RemoteAddress> ActorPost::address(const std::string& name, int rank,
                                                          std::uint64_t set) {
  const std::lock_guard lock(mutex_);
  auto why = obstacle(rank);
  const bool known = rank >= 0 && rank < parts_->size;
  if (known) {
    if (const auto found = targets_.find({rank, name, set}); found != targets_.end())
      return found->second;
  }
  if (name.empty() || name.size() > kMaxActorPayload)
    why = Error{Errc::invalid, 0, "an actor's name has 1 to 65536 characters"};
  if (!why && routes_.size() >= kMaxRoutes)
    why = Error{Errc::out_of_memory, 0,
                "actor '" + name + "' of rank " + std::to_string(rank) +
                    ": this rank has spoken to " + std::to_string(kMaxRoutes) +
                    " actors by name, and can speak to no further one: publish new actors under "
                    "names whose actors have ended"};
  const auto number = ++last_route_;
  const auto route = std::make_shared<ActorRoute>(parts_, rank, name, set, number);
  if (why) {
    EndedQuestions none;
    route->close(*why, none);
  }
  if (!known || (why && why->code != Errc::peer_lost)) return route;
  targets_.emplace(Target{rank, name, set}, route);
  if (!why) routes_.emplace(number, route);
  return route;
}

void ActorPost::set_excluded(const std::vector<std::int32_t>& ranks) {
  std::vector<std::shared_ptr<ActorInbound>> closed;
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) closed = exclude(ranks);
  }
  // What such a rank sends when it is back must not overtake what it has sent before.
  for (const auto& inbound : closed) inbound->settle();
}

std::vector<std::shared_ptr<ActorInbound>> ActorPost::exclude(
    const std::vector<std::int32_t>& ranks) {
  EndedQuestions questions;
  std::vector<bool> were(excluded_.size());
  for (std::size_t rank = 0; rank < were.size(); ++rank)
    were[rank] = obstacle(static_cast<int>(rank)).has_value();
  for (std::size_t rank = 0; rank < excluded_.size(); ++rank) {
    excluded_[rank] =
        std::find(ranks.begin(), ranks.end(), static_cast<std::int32_t>(rank)) != ranks.end();
  }
  for (auto& [target, route] : targets_) {
    const auto why = obstacle(route->rank());
    if (why.has_value() == were[static_cast<std::size_t>(route->rank())]) continue;
    if (why) {
      route->close(*why, questions);
      std::erase_if(routes_, [&](const auto& entry) { return entry.second == route; });
    } else {
      routes_.emplace(++last_route_, route);
      route->reopen(last_route_);
    }
  }
  tell_later(std::move(questions));
  return close_inbound([&](const auto& entry) { return obstacle(entry.first.first).has_value(); });
}

template <class Which>
std::vector<std::shared_ptr<ActorInbound>> ActorPost::close_inbound(const Which& which) {
  std::vector<std::shared_ptr<ActorInbound>> closed;
  std::erase_if(inbound_, [&](const auto& entry) {
    if (!which(entry)) return false;
    entry.second->close();
    closed.push_back(entry.second);
    return true;
  });
  return closed;
}

void ActorPost::end(const Error& why) {
  EndedQuestions questions;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = why;
  for (auto& [target, route] : targets_) route->close(why, questions);
  for (auto& [id, inbound] : inbound_) inbound->close();
  inbound_.clear();
  tell_later(std::move(questions));
}

/// Not here: who waits for them may call anything, and this is called with locks held.
void ActorPost::tell_later(EndedQuestions questions) {
  if (questions.empty()) return;
  (void)parts_->scheduler->schedule({}, std::make_unique<Tell>(std::move(questions)));
}

// ---- what comes
// ----------------------------------------------------------------------------------

Result<void> ActorPost::received(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto packet = take_actor_message(bytes);
    if (!packet.ok()) return packet.error();
    handle(*packet);
  }
  return {};
}

void ActorPost::handle(const ActorPacket& packet) {
  const auto& head = packet.head;
  if (head.from < 0 || head.from >= parts_->size) return;
  switch (head.kind) {
    case Kind::open: open(packet); return;
    case Kind::tell:
    case Kind::ask:
      if (const auto inbound = inbound_of(head)) {
        inbound->received(packet);
      } else {
        refuse(head);
      }
      return;
    case Kind::accepted:
      if (const auto route = route_of(head)) route->accepted(head.count);
      return;
    case Kind::refused:
      if (const auto route = route_of(head); route && head.code != 0)
        route->refused(packet.outcome().error());
      return;
    case Kind::answer:
      if (const auto route = route_of(head)) route->answered(head.number, packet.outcome());
      return;
  }
}

/// This post has ended, or the route was dropped when its sender left the world, of which the
/// sender has yet to hear.
void ActorPost::refuse(const ActorMessage& head) {
  Error why{Errc::peer_lost, 0, "the sender was out of the world"};
  {
    const std::lock_guard lock(mutex_);
    if (ended_) why = *ended_;
  }
  parts_->send(head.from, encode({.kind = head.kind == Kind::tell ? Kind::refused : Kind::answer,
                                  .from = parts_->rank,
                                  .route = head.route,
                                  .number = head.number},
                                 why));
}

void ActorPost::open(const ActorPacket& packet) {
  const auto& head = packet.head;
  const std::string wanted(reinterpret_cast<const char*>(packet.payload.data()),
                           packet.payload.size());
  std::vector<std::shared_ptr<ActorInbound>> superseded;
  {
    const std::lock_guard lock(mutex_);
    // Its sender was out of the world, and is back, of which this rank has yet to hear.
    superseded = close_inbound([&](const auto& entry) {
      const auto& [source, route] = entry.first;
      return source == head.from && route < head.route && entry.second->leads_to(wanted, head.set);
    });
  }
  for (const auto& inbound : superseded) inbound->settle();
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  const auto in_use = std::count_if(inbound_.begin(), inbound_.end(), [&](const auto& entry) {
    return entry.first.first == head.from;
  });
  if (static_cast<std::size_t>(in_use) >= kMaxRoutes) return;
  auto& inbound = inbound_[{head.from, head.route}];
  if (inbound) return;
  const auto find_here = [weak = weak_from_this()](
                             const std::string& name,
                             std::uint64_t set) -> Result<std::shared_ptr<detail::PublishedActor>> {
    const auto post = weak.lock();
    if (!post) return Error{Errc::stopped, 0, "the runtime has ended"};
    return post->find(name, set);
  };
  inbound =
      std::make_shared<ActorInbound>(parts_, find_here, head.from, head.route, wanted, head.set);
}

std::shared_ptr<ActorInbound> ActorPost::inbound_of(const ActorMessage& head) {
  const std::lock_guard lock(mutex_);
  const auto found = inbound_.find({head.from, head.route});
  return found == inbound_.end() ? nullptr : found->second;
}

std::shared_ptr<ActorRoute> ActorPost::route_of(const ActorMessage& head) {
  const std::lock_guard lock(mutex_);
  const auto found = routes_.find(head.route);
  return found == routes_.end() || found->second->rank() != head.from ? nullptr : found->second;
}

}  // namespace troupe::rank_process
