#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "rank/net/session.hpp"

namespace troupe::rank_process {

/// Messages of one kind between ranks, on a thread of their own. Messages between two ranks arrive
/// in order. While nothing has happened for a while the thread looks at the network every
/// kIdlePause, so that an idle rank costs next to nothing; right after traffic it looks at every
/// kBusyPause. Where there are no cores to spare, each look takes time from a process that
/// computes: the pause then grows with the time since the last traffic, up to kLongestPause.
class Transport {
 public:
  static constexpr auto kIdlePause = std::chrono::microseconds(1000);
  static constexpr auto kBusyPause = std::chrono::microseconds(20);
  /// Where cores are scarce: the pause is this part of the time since the last traffic, so that a
  /// message waits for no longer than that.
  static constexpr int kPauseShare = 8;
  static constexpr auto kLongestPause = std::chrono::microseconds(4000);
  /// What is joined has at most so many bytes.
  static constexpr std::size_t kJoined = 32 * 1024;
  /// Where there are cores to spare, actors' messages are looked for without a pause for so long
  /// after the last one: a question and its answer then cost little more than the network.
  static constexpr auto kSpinTime = std::chrono::microseconds(200);
  static constexpr int kCoresToSpin =
      2;  ///< of each rank of the node: with fewer, cores are scarce
  static constexpr auto kBusyTime = std::chrono::milliseconds(100);

  /// Messages of actors from one rank to another may come as one, joined.
  using Channel = Session::Channel;
  /// Called on the transport's thread, with one message at a time.
  using Receiver = std::function<void(std::vector<std::byte>)>;

  Transport(Session& session, Channel channel, Receiver receiver);
  ~Transport();

  /// Waits until what was sent is on its way, and for all ranks to do the same, unless the others
  /// are forsaken (Session::forsake). What is sent later goes nowhere.
  void leave();
  /// From now on the other ranks are asked whether they are there, which their transports answer
  /// whatever else they do. `lost` is called, on the transport's thread, with those that have been
  /// silent for `patience`, and with the same ones again after as much time once more: once each.
  /// Any thread; the first call counts.
  void watch(std::chrono::nanoseconds patience,
             std::function<void(const std::vector<int>& ranks, bool again)> lost);
  /// How long to wait between two looks at the network, `quiet` after the last traffic.
  [[nodiscard]] static std::chrono::nanoseconds pause(bool to_spare, bool sending,
                                                      std::chrono::nanoseconds quiet);
  /// Queues a message; any thread. To this rank itself too.
  void send(int rank, std::vector<std::byte> bytes);

 private:
  struct Outgoing {
    int rank;
    std::vector<std::byte> bytes;
  };
  struct Watch;
  struct Traffic;

  [[nodiscard]] bool join(int rank, std::span<const std::byte> bytes);
  void run();
  void look_at_others(Traffic& traffic);
  bool receive(Traffic& traffic);

  Session* session_;
  std::unique_ptr<Messages> messages_;  ///< the thread's own
  Channel channel_;
  Receiver receiver_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Outgoing> outgoing_;
  bool stop_ = false;
  std::unique_ptr<Watch> watch_;  ///< set once
  std::thread thread_;
};

}  // namespace troupe::rank_process
