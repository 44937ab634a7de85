#pragma once

#include <atomic>
#include <cstdint>

#include "device_host/engine/engine_memory.hpp"

namespace troupe::host::cpu {

/// Memory of the cpu engine: slabs are memfds.
class CpuMemory final : public EngineMemory {
 public:
  /// `limit`: bytes of all slabs; 0: none.
  explicit CpuMemory(std::uint64_t limit) : limit_(limit) {}

  std::uint64_t free() override;
  std::vector<std::pair<std::string, std::uint64_t>> use() override {
    return {{"slabs", slab_bytes_.load()}};
  }
  Result<Slab> make_slab(std::uint64_t bytes) override;
  Result<std::byte*> map_slab(int fd, std::uint64_t bytes) override;
  void unmap_slab(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_foreign(int fd, std::uint64_t bytes) override;
  void unmap_foreign(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_pinned(int fd, std::uint64_t bytes) override;
  void unmap_pinned(std::byte* base, std::uint64_t bytes) override;

 private:
  Result<void> reserve(std::uint64_t bytes);

  std::uint64_t limit_;
  std::atomic<std::uint64_t> slab_bytes_ = 0;
};

}  // namespace troupe::host::cpu
