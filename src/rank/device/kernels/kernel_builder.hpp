#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rank/device/kernels/kernel_cache.hpp"

namespace troupe::rank_process {

/// Compiles kernels, each in a process of its own (troupe-compile): a compiler that crashes costs
/// one job, and the rank opens no library of CUDA's. What was compiled before is taken from memory
/// or disk, if it is known that the compiler would make the same again: the preprocessed source is
/// the same (cpu), or all files are that the compiler has looked for, found or not (cuda). Any
/// thread.
class KernelBuilder {
 public:
  struct Options {
    std::string tool = {};              ///< troupe-compile
    std::string host_compiler = "c++";  ///< see CompileJob
    std::filesystem::path cache = {};   ///< see KernelCache; empty: none
    std::uint64_t cache_bytes = KernelCache::kMaxBytes;
  };
  explicit KernelBuilder(Options options);
  ~KernelBuilder() { stop(); }

  /// Waits for the compiler. Errors: what it says; unsupported, timeout, stopped, io.
  Result<wire::CompileOutcome> build(wire::CompileJob job);
  /// Calls the function on a thread for such work. Errors: would_block (too much is under way),
  /// stopped.
  Result<void> start(std::function<void()> work);
  /// Ends what is under way; returns when all that was started has returned. What has not begun is
  /// dropped.
  void stop();
  /// How many jobs a compiler has done.
  [[nodiscard]] std::uint64_t compiled() const noexcept { return compiled_.load(); }

 private:
  static constexpr std::size_t kThreads = 4, kMaxWaiting = 1024, kMaxInMemory = 64;
  static constexpr std::chrono::minutes kLimit{10};  ///< of one job

  void work();
  /// For the cpu engine: the preprocessor always runs, so that what it makes is part of the key.
  Result<wire::CompileOutcome> build_preprocessed(wire::CompileJob job);
  Result<wire::CompileOutcome> run_tool(const wire::CompileJob& job, int lock);
  /// `lock`: of the job's folder; -1: it has none.
  Result<void> run_tool(int job, int outcome, int lock);
  std::optional<wire::CompileOutcome> find(KernelKey key);
  void keep(KernelKey key, const wire::CompileOutcome& outcome);
  std::optional<wire::CompileOutcome> find_in_memory(KernelKey key);
  void keep_in_memory(KernelKey key, const wire::CompileOutcome& outcome);

  Options options_;
  KernelCache cache_;
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::size_t idle_ = 0;
  std::vector<std::thread> threads_;
  /// The last used first.
  std::list<std::pair<std::vector<std::byte>, wire::CompileOutcome>> in_memory_;
};

}  // namespace troupe::rank_process
