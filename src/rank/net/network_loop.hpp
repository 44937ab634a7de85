#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/actor/cpu_binding.hpp"
#include "common/actor/loop_scheduler.hpp"
#include "rank/net/node_rings.hpp"
#include "rank/net/session.hpp"

namespace troupe::rank_process {

/// A thread that runs actors and sends and receives the messages of tokens for them: on the way
/// from an actor to the network, and from there to an actor, nothing passes from one thread to
/// another.
///
/// While something is under way the thread looks at the network, at the actors and at what else is
/// awaited (Work::look) without a pause, if there are cores to spare: then a message between two
/// ranks takes little longer than the network itself. Otherwise it sleeps between looks, as
/// Transport does; what is sent to an actor wakes it.
class NetworkLoop {
 public:
  /// The rank's threads that may spin at a time while tokens are used: the program's, the device
  /// host's reactor, this one, and Bulk's.
  static constexpr int kCoresToSpin = 4;
  /// After the last sign of life it spins for so long, because a request is often followed by
  /// another, and one that comes upon a thread that sleeps takes twice as long; and for so long
  /// while something is under way. Then its end is far enough off that waking up for it does not
  /// count.
  static constexpr auto kSpinTime = std::chrono::milliseconds(2);
  static constexpr auto kLongestSpin = std::chrono::milliseconds(20);

  /// What the thread does for its actors beside their turns. All of it is called on the thread.
  struct Work {
    std::function<void(std::vector<std::byte>)> receive;  ///< a message has come
    std::function<bool()> under_way;                      ///< an answer of some kind is awaited
    std::function<void()> look;  ///< while it spins: for answers that do not come over the network
    std::function<void()> rest;  ///< others have to look for those from now on
  };

  /// All ranks make one.
  explicit NetworkLoop(Session& session);
  ~NetworkLoop();

  /// For one ActorSystem, whose end has to come before this object's.
  [[nodiscard]] std::shared_ptr<Scheduler> scheduler() const noexcept { return scheduler_; }
  /// Messages to the ranks that these reach go through them, all others through the session. Before
  /// start().
  void use(NodeRings rings) { rings_ = std::move(rings); }
  /// Begins; before that no actor has a turn. Once.
  void start(Work work);
  /// Binds the thread to these cores; after start(). Errc::io if the operating system refuses.
  Result<void> bind(const CpuBinding& binding) { return binding.bind(thread_); }
  /// Sends a message, to this rank itself too. For actors in their turns, and Work. After leave()
  /// it goes nowhere.
  void send(int rank, std::vector<std::byte> bytes);
  /// Another process is that rank now. For actors in their turns.
  void forget(int rank) { rings_.forget(rank); }
  /// Gives actors that have something to do a turn. For Work::receive, which waits for room in a
  /// mailbox.
  void run_actors() { scheduler_->run_ready(); }
  /// Waits until what was sent is on its way, and for all ranks to do the same, unless the others
  /// are forsaken (Session::forsake). The actors go on.
  void leave();

 private:
  void run();
  /// Takes the messages that have come; from the network too if that is due, or `all`.
  void receive(bool all);
  [[nodiscard]] bool sending() const {
    return messages_ && (messages_->sending() || rings_.sending());
  }
  void leave_if_asked();

  Session* session_;
  const bool spins_;
  std::shared_ptr<LoopScheduler> scheduler_ = std::make_shared<LoopScheduler>();
  Work work_;
  std::unique_ptr<Messages> messages_;  ///< the thread's own, as what follows
  NodeRings rings_;
  std::uint32_t looks_ = 0;  ///< at the rings alone, since the last at the network
  std::deque<std::vector<std::byte>> to_self_;
  bool heard_ = false;

  std::mutex mutex_;
  std::condition_variable has_left_;
  std::atomic<bool> leaving_{false};
  bool left_ = false;
  std::thread thread_;
};

}  // namespace troupe::rank_process
