#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <troupe/clock.hpp>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// The supervisor's part in raising a *standby world*: while the world works, the standbys of all
/// ranks form a communicator of their own and warm it up. When a device host is lost, all standbys
/// are promoted together, and nobody waits for a communicator to be made.
///
/// Intuition: the same two steps that form the world itself (everyone contributes, everyone
/// connects), but in the background and without deadlines that matter: whatever goes wrong, the
/// next re-formation just takes the slower way. A *formation* is one attempt; its number tells its
/// answers from those to older ones.
///
///     none --all standbys ready--> contributing -> connecting -> formed --take()--> none
///       ^------ a standby is lost, an answer fails or is late, the world re-forms ------'
///
/// Pure, like WorldSupervisor.
class StandbyWorld {
 public:
  struct Options {
    bool wanted = true;
    std::chrono::nanoseconds timeout = std::chrono::seconds(30);  ///< of each of the two steps
    std::chrono::nanoseconds pause = std::chrono::seconds(1);     ///< before the next attempt
    int max_attempts = 3;                                         ///< in one epoch
  };
  using Broadcast = std::function<void(const SupervisorMessage& message)>;

  StandbyWorld(Options options, int size, Broadcast broadcast);

  void receive(const from_rank::Standby& standby, TimePoint now);
  void receive(const from_rank::Prepared& prepared, TimePoint now);
  void tick(TimePoint now);
  /// `epoch` has begun among these ranks: from now on their standbys are heard of.
  void activated(std::uint32_t epoch, const std::vector<bool>& members);
  /// The world does not work any more: nothing new is begun, what is under way counts as failed.
  void interrupted();
  /// The number of the formation to promote, which is used up by that; 0: there is none.
  std::uint32_t take();

  [[nodiscard]] bool formed() const noexcept { return state_ == State::formed; }
  /// Why there is none, when attempts have ended; empty otherwise.
  [[nodiscard]] const std::string& obstacle() const noexcept { return obstacle_; }

 private:
  enum class State { none, contributing, connecting, formed };
  /// Sets the entries of the members among `rank` … `rank + covered - 1`.
  void mark(std::vector<bool>& ranks, std::int32_t rank, std::int32_t covered, bool value);
  void begin_if_ready(TimePoint now);
  void step(State state, TimePoint now);
  void fail(const std::string& why, TimePoint now);

  Options options_;
  Broadcast broadcast_;
  State state_ = State::none;
  std::uint32_t epoch_ = 0;
  std::uint32_t formation_ = 0;
  bool working_ = false;  ///< the world is active
  int attempts_ = 0;
  TimePoint since_{}, not_before_{};
  std::vector<bool> members_, ready_, answered_;
  std::vector<std::vector<std::byte>> contributions_;
  std::string obstacle_;
};

}  // namespace troupe::rank_process
