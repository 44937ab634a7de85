#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/actor/remote_actor.hpp>
#include <troupe/actor/scheduler.hpp>

#include "rank/post/actor_message.hpp"
#include "rank/post/actor_route.hpp"

namespace troupe::rank_process {

/// The receiving end of a route: hands its messages over, in order, as the actor's mailbox has
/// room.
///
/// A message that finds the mailbox full is held, with all behind it, and tried again by a timer;
/// the sender's window bounds how many there can be. Any thread.
class ActorInbound final : public std::enable_shared_from_this<ActorInbound> {
 public:
  /// The actor of that name; errors: invalid (there is none, or one with other messages), stopped
  /// (it has ended).
  using Find = std::function<Result<std::shared_ptr<detail::PublishedActor>>(
      const std::string& name, std::uint64_t set)>;

  ActorInbound(std::shared_ptr<const ActorPostParts> parts, Find find, int source,
               std::uint32_t route, std::string name, std::uint64_t set);

  /// A message of this route (tell or ask).
  void received(const ActorPacket& packet);
  /// Nothing more of it is handed over, but for what just is. Takes no lock.
  void close() noexcept { closed_ = true; }
  /// After close(): waits for that too.
  void settle();
  /// Whether it is a route to that actor.
  [[nodiscard]] bool leads_to(std::string_view name, std::uint64_t set) const noexcept {
    return name_ == name && set_ == set;
  }

 private:
  struct Held {
    ActorMessage head;
    std::vector<std::byte> payload;
    TimePoint since;
  };
  class Retry;

  Result<void> hand_over(const ActorMessage& head, std::span<const std::byte> payload,
                         std::chrono::nanoseconds waited);
  void done(const ActorMessage& head, const Result<void>& outcome);
  void retry();
  void retry_later();

  const std::shared_ptr<const ActorPostParts> parts_;
  const Find find_;
  const int source_;
  const std::uint32_t route_;
  const std::string name_;
  const std::uint64_t set_;

  std::atomic<bool> closed_{false};
  std::mutex mutex_;  // so that messages are handed over one at a time
  std::shared_ptr<detail::PublishedActor> actor_;
  std::uint64_t last_number_ = 0;
  std::uint32_t to_give_back_ = 0;  ///< places in the sender's window
  std::deque<Held> held_;
  std::chrono::nanoseconds pause_{};  ///< until the next try
};

}  // namespace troupe::rank_process
