#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <troupe/error.hpp>

#include "common/ipc/shared_counter.hpp"

namespace troupe::host {

/// Gives the communicators up when the rank asks for it, even while the reactor waits in a call of
/// CUDA's.
///
/// Intuition: CUDA loads a kernel when it is first launched, and that waits for all that runs; so
/// does a launch into a stream that is full. A collective of a peer that died runs until its
/// communicator is given up. The reactor would have to do that, and waits for it: so a thread does
/// it, at once. The reactor learns of it when it gets to the rank's order.
class Surrender {
 public:
  /// `asked`: counts how often the rank has asked. `give_up`: called on either thread.
  Surrender(ipc::SharedCounter& asked, std::function<void()> give_up);
  ~Surrender();
  Surrender(const Surrender&) = delete;
  Surrender& operator=(const Surrender&) = delete;

  /// What the rank has asked for is given up when this returns. Reactor.
  void catch_up();
  /// Calls `work`, which launches on a communicator's behalf what does not go through its library,
  /// and is not told when the communicator is freed. Reactor. Errors: those of `work`;
  /// world_reformed if the rank has asked for more than catch_up() has been called for.
  template <class Work>
  Result<void> use(Work&& work) {
    if (!begin_launch()) return Error{Errc::world_reformed, 0, "the communicator is given up"};
    auto outcome = std::forward<Work>(work)();
    end_launch();
    return outcome;
  }

 private:
  bool begin_launch();
  void end_launch();
  void give_up();
  /// `seen`: what had been asked for before.
  void watch(std::uint32_t seen);

  ipc::SharedCounter& asked_;
  const std::function<void()> give_up_;
  std::mutex launching_;
  bool launches_ = false;  ///< the reactor is in use(); guarded by launching_
  std::condition_variable launched_;
  std::mutex giving_up_;  ///< held while it is done
  std::uint32_t done_;    ///< the request that was carried out last; guarded by giving_up_
  std::uint32_t known_;   ///< the newest that the reactor has come to; the reactor's
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace troupe::host
