#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <troupe/clock.hpp>
#include <troupe/error.hpp>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// Rank 0's part in finding out why nothing goes on.
///
/// A rank that makes no progress for long says so (Stalled). Then all are asked where they are
/// (Inquire), and what they say (Standing) is put together: who waits in what, and who is not
/// there. A rank that does not answer in time is what the others wait for.
///
/// Pure, like the protocol: no I/O, no threads, time is passed in.
class Inquiry {
 public:
  static constexpr std::chrono::seconds kPatience{5};
  using Broadcast = std::function<void(const SupervisorMessage& message)>;

  Inquiry(int size, Broadcast broadcast) : size_(size), broadcast_(std::move(broadcast)) {}

  void receive(const from_rank::Stalled& stalled, TimePoint now);
  void receive(const from_rank::Standing& standing, TimePoint now);

  struct Finding {
    std::string text;               ///< one line
    std::optional<Error> error;     ///< what can never go on
    std::optional<Error> deadlock;  ///< likewise, and no rank's program hears of it any more
  };
  /// Once for each inquiry, when all have answered or some have not in time. To be called now and
  /// then.
  std::optional<Finding> tick(TimePoint now);

 private:
  [[nodiscard]] Finding put_together() const;
  [[nodiscard]] std::optional<Error> disagreement() const;
  [[nodiscard]] std::optional<Error> deadlock() const;

  int size_;
  Broadcast broadcast_;
  std::uint32_t number_ = 0;
  bool open_ = false;
  TimePoint since_{};
  std::map<int, from_rank::Standing> answers_;  ///< by rank
};

}  // namespace troupe::rank_process
