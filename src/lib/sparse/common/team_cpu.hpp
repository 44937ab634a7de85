#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::host::cpu {

/// Host threads that share the work of one operation at a time. They start when they are first
/// needed, and sleep in between.
class Team {
 public:
  /// What is done for the items [first, last).
  using Part = std::function<void(std::int64_t first, std::int64_t last)>;

  /// `threads`: of the host, the caller of share() among them.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Does the part of every item once, several at a time, and returns when all are done. Which
  /// thread does which is not fixed: no item's result may depend on it. `part` does not throw. A
  /// caller that comes while the team works for another one does all by itself.
  void share(std::int64_t items, const Part& part);

 private:
  struct Work {
    const Part* part;
    std::int64_t items, at_once;
    std::atomic<std::int64_t> next{0};

    void help();
  };
  void run();

  const std::size_t helpers_;
  std::mutex caller_;  ///< held by whom the team works for
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  Work* work_ = nullptr;    ///< where there is something left to begin
  std::uint64_t turn_ = 0;  ///< counts works
  std::size_t busy_ = 0;    ///< helpers at work
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::host::cpu
