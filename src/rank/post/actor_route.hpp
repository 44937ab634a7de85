#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actor/remote_actor.hpp>
#include <troupe/actor/scheduler.hpp>

#include "rank/post/actor_message.hpp"

namespace troupe::rank_process {

/// What an ActorPost works with; outlives its use until the post has ended.
struct ActorPostParts {
  int rank = 0;
  int size = 1;
  Scheduler* scheduler = nullptr;  ///< for deadlines, and for what must not be called under locks
  /// Queues bytes for another rank's post, or this one's; never waits. They arrive in order.
  std::function<void(int rank, std::vector<std::byte> bytes)> send;
  /// An error of which no future tells the program.
  std::function<void(const Error& error)> report;
  detail::Progress* progress = nullptr;  ///< of who waits for an answer
};

/// Questions that end with an error, to be told when no lock is held.
using EndedQuestions = std::vector<std::pair<std::unique_ptr<detail::PendingAnswer>, Error>>;

/// The sending end of a route: from this rank to one actor of another.
///
/// The window bounds what is on its way: each message takes places in it, and the receiver gives
/// them back, half a window at a time, for what it has handed over or refused. Any thread.
class ActorRoute final : public detail::RemoteAddress,
                         public std::enable_shared_from_this<ActorRoute> {
 public:
  /// `rank` -1: of no rank there is.
  ActorRoute(std::shared_ptr<const ActorPostParts> parts, int rank, std::string name,
             std::uint64_t set, std::uint32_t number);

  Result<void> tell(std::uint32_t type, std::vector<std::byte> payload) override;
  Result<void> ask(std::uint32_t type, std::vector<std::byte> payload,
                   std::chrono::nanoseconds within,
                   std::unique_ptr<detail::PendingAnswer> answer) override;
  void report(const Error& error) override;
  [[nodiscard]] detail::Progress* progress() const noexcept override { return parts_->progress; }

  [[nodiscard]] int rank() const noexcept { return rank_; }

  // For the post.

  void accepted(std::uint32_t places);
  void refused(const Error& error);
  void answered(std::uint64_t number, const Result<std::span<const std::byte>>& answer);
  /// Nothing is sent any more, and the questions under way end, with this error.
  void close(const Error& why, EndedQuestions& ended);
  /// Begins anew, as a route of this number.
  void reopen(std::uint32_t number);

 private:
  struct Question {
    std::unique_ptr<detail::PendingAnswer> answer;
    TimerId deadline;
  };
  class Deadline;

  Result<void> may_send(std::size_t bytes);
  void send(ActorMessage head, std::span<const std::byte> payload);
  std::unique_ptr<detail::PendingAnswer> take(std::uint64_t number);

  const std::shared_ptr<const ActorPostParts> parts_;
  const int rank_;
  const std::string name_;
  const std::uint64_t set_;

  std::mutex
      mutex_;  // guards what follows; only parts_->send and the scheduler are called under it
  std::uint32_t route_;
  bool opened_ = false;
  std::optional<Error> closed_;
  std::uint32_t taken_ = 0;  ///< places of the window
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Question> questions_;
};

}  // namespace troupe::rank_process
