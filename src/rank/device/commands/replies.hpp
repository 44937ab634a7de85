#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <troupe/clock.hpp>

#include "common/ipc/ring.hpp"
#include "common/wire/record.hpp"
#include "rank/device/commands/port_shared.hpp"

namespace troupe::rank_process {

/// The consuming end of the reply ring: resolves what is answered. Any thread, but for what says
/// that it needs the lock of the replies.
class Replies {
 public:
  explicit Replies(PortShared& shared) : shared_(&shared) {}

  /// Takes the replies there are, unless another thread does.
  void poll() noexcept;
  /// The same for a thread that calls it again and again, and rest() when it leaves off: until then
  /// no reply rings a bell, and the device host does not sleep over what it waits for.
  void attend() noexcept;
  /// Others look from now on.
  void rest();
  /// A thread attends to the replies.
  [[nodiscard]] bool attended() const noexcept { return attended_.load(std::memory_order_relaxed); }
  /// The next reply rings the bell, and the watcher drains.
  void before_sleep() noexcept;
  /// Takes the replies there are; for those that wait for other things too. Whoever was woken for
  /// many of them takes those of the next millisecond as well, in passes: until the next sleep is
  /// announced no reply rings a bell.
  void drain();
  /// True while some waiting thread drains the replies itself, so that the watcher need not be
  /// woken.
  [[nodiscard]] bool being_polled() const noexcept {
    return SteadyClock::time().count() - last_poll_ns_.load(std::memory_order_relaxed) < 200'000;
  }

  // With the lock of the replies.

  /// Returns how many commands are answered.
  std::uint64_t take(Resolved& resolved);
  void turn_to(const HostLink& link) { ring_ = link.replies(); }

 private:
  /// The tickets that one reply is about have ended so.
  void close(const wire::ReplyHeader& reply, const Result<void>& outcome, Resolved& resolved);
  void lose_spoilt(Resolved& resolved);
  void look(bool attends) noexcept;

  PortShared* shared_;
  ipc::RingConsumer ring_;
  std::atomic<std::int64_t> last_poll_ns_{0};
  std::atomic<bool> attended_{false};
  /// Since a waiter slept; with the lock of the replies. The clock costs as much as a poll that
  /// finds nothing.
  std::uint32_t polls_ = 0;
  static constexpr std::uint32_t kPollsPerClock = 16;
  /// If so many commands are answered at a time, to be woken for each batch of replies would cost
  /// the device host a system call each time, and its core and the submitters' an interrupt.
  static constexpr std::uint64_t kStream = 64;
  static constexpr std::chrono::microseconds kStreamPause{20};
  static constexpr int kStreamPasses = 16;  ///< the watcher has other things to do
};

}  // namespace troupe::rank_process
