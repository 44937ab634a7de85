#pragma once

#include <cstring>
#include <memory>

#include "common/ipc/ring.hpp"

namespace troupe::ipc {

/// A ring in heap memory of exactly its size, so that AddressSanitizer sees any step beyond it.
struct HeapRing {
  explicit HeapRing(std::uint64_t bytes)
      : capacity(bytes),
        control(std::make_unique<RingControl>()),
        data(std::make_unique<std::byte[]>(bytes)) {}
  RingProducer producer() { return {control.get(), data.get(), capacity}; }
  RingConsumer consumer() { return {control.get(), data.get(), capacity}; }
  void put(std::uint64_t offset, std::uint64_t word) {
    std::memcpy(data.get() + offset, &word, sizeof word);
  }

  std::uint64_t capacity;
  std::unique_ptr<RingControl> control;
  std::unique_ptr<std::byte[]> data;
};

}  // namespace troupe::ipc
