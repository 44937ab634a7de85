#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/kernel/fibers/image_cpu.hpp"

namespace troupe::host::cpu {

/// A launch, as blocks are run.
struct BlockGrid {
  const troupe_kernel::Table* table;
  const troupe_kernel::Entry* entry;
  troupe_kernel::Index grid, block;
  std::size_t shared_bytes;
  void* const* arguments;
};

/// Runs the blocks of launches, on threads that live as long as it does. The threads of a block are
/// fibers of one thread, which switches between them at barriers alone; a kernel that has none
/// costs one fiber.
class BlockRunner {
 public:
  /// `threads`: of the host, the caller of run() among them.
  explicit BlockRunner(int threads);
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Returns when all blocks have ended. One thread at a time.
  void run(const BlockGrid& grid);

 private:
  class Fibers;
  void help(const BlockGrid& grid, Fibers& fibers);
  void work();

  const std::size_t helpers_;
  std::unique_ptr<Fibers> own_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const BlockGrid* grid_ = nullptr;
  std::uint64_t turn_ = 0;  ///< counts launches
  std::size_t busy_ = 0;
  bool ending_ = false;
  std::atomic<std::uint64_t> next_{0};
  std::vector<std::thread> threads_;
};

}  // namespace troupe::host::cpu
