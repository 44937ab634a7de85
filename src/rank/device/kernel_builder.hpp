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

#include "rank/device/kernel_cache.hpp"

namespace troupe::rank_process {

/// Compiles kernels, each in a process of its own (troupe-compile): a compiler that crashes costs
/// one job, and the rank opens no library of CUDA's. What was compiled before is taken from memory
/// or disk. Any thread.
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
  Result<wire::CompileOutcome> compile(wire::CompileJob job);
  Result<void> run_tool(int job, int outcome);
  std::optional<wire::CompileOutcome> find_in_memory(const ContentId& key);
  void keep_in_memory(const ContentId& key, const wire::CompileOutcome& outcome);

  Options options_;
  KernelCache cache_;
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::size_t idle_ = 0;
  std::vector<std::thread> threads_;
  std::list<std::pair<ContentId, wire::CompileOutcome>> in_memory_;  ///< the last used first
};

/// The text of all files that a source may include by its include paths, one behind another,
/// whatever the preprocessor leaves out; files that are found nowhere are the compiler's own.
/// Nothing if a name is made by a macro, so that only the compiler knows it.
std::optional<std::string> included_text(const wire::CompileJob& job);

}  // namespace troupe::rank_process
