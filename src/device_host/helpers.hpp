#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "common/ipc/doorbell.hpp"

namespace troupe::host {

/// Threads for what may block: making libraries, slabs and communicators. A job runs on a thread of
/// its own and returns what the reactor shall do with its outcome; the reactor calls run_finished()
/// when `bell` is rung. Jobs are rare, so each has its own thread, and at most `most` run at a
/// time.
class Helpers {
 public:
  using Finish = std::function<void()>;
  using Job = std::function<Finish()>;
  static constexpr std::size_t kMaxJobs = 32;

  explicit Helpers(ipc::Doorbell bell, std::size_t most = kMaxJobs)
      : most_(most), bell_(std::move(bell)) {}
  ~Helpers();

  /// A job that opens a library, makes a plan or carries out a blocking operation may wait for all
  /// that the device does (cudaDeviceSynchronize); other jobs wait for their own stream alone.
  enum class WaitsFor { device, stream };

  /// False if that many are running.
  [[nodiscard]] bool start(Job job, WaitsFor waits_for = WaitsFor::device);
  /// True while a job runs that may wait for the device. If a graph were captured meanwhile, it
  /// would be void, and the job's call would fail: CUDA refuses to wait for a stream that captures.
  [[nodiscard]] bool may_wait_for_device() const;
  /// Waits for the jobs that run. What they leave to do is not done any more.
  void join();
  /// Runs what finished jobs left to do. True if there was any.
  bool run_finished();
  [[nodiscard]] int fd() const noexcept { return bell_.fd(); }
  [[nodiscard]] std::size_t running() const noexcept { return threads_.size(); }

 private:
  struct Running {
    std::thread thread;
    WaitsFor waits_for;
  };

  const std::size_t most_;
  ipc::Doorbell bell_;
  std::atomic<bool> any_finished_{false};
  std::mutex mutex_;
  std::vector<std::pair<std::list<Running>::iterator, Finish>> finished_;
  std::list<Running> threads_;  ///< the reactor's thread only
};

}  // namespace troupe::host
