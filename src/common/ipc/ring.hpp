#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <troupe/error.hpp>

#include "common/ipc/fences.hpp"

/// Variable-length records from one process to another over shared memory: one producer, one
/// consumer, bounded.
///
/// Positions count bytes for ever; a record is a length word and its bytes, padded to eight, never
/// wrapping: where the rest of the buffer is too short a skip mark fills it. Either side may be
/// killed or write nonsense at any moment: the other one checks every position and length before it
/// follows them.
namespace troupe::ipc {

/// The shared part; zero-initialised memory is an empty ring. The writers have a cache line each.
struct RingControl {
  alignas(64) std::atomic<std::uint64_t> tail;            ///< written by the producer
  alignas(64) std::atomic<std::uint64_t> head;            ///< written by the consumer
  alignas(64) std::atomic<std::uint32_t> consumer_waits;  ///< set by who goes to sleep, cleared by
                                                          ///< who wakes
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

namespace ring_detail {
inline constexpr std::uint64_t kSkip = ~std::uint64_t{0};
constexpr std::uint64_t padded(std::uint64_t bytes) {
  return sizeof(std::uint64_t) + ((bytes + 7) & ~std::uint64_t{7});
}
}  // namespace ring_detail

/// The producing end. Not thread-safe: its owner serialises.
class RingProducer {
 public:
  RingProducer() = default;
  /// `capacity` is a power of two.
  RingProducer(RingControl* control, std::byte* data, std::uint64_t capacity)
      : control_(control),
        data_(data),
        capacity_(capacity),
        tail_(control->tail.load(std::memory_order_relaxed)),
        head_(control->head.load(std::memory_order_acquire)) {}

  /// The largest record that is sure to fit an empty ring.
  [[nodiscard]] std::uint64_t max_record() const noexcept {
    return capacity_ / 2 - sizeof(std::uint64_t);
  }

  /// Room for one record of `bytes` <= max_record(); empty while the ring is full. Errors:
  /// `internal` if the consumer has written nonsense.
  Result<std::span<std::byte>> reserve(std::uint64_t bytes) {
    const auto need = ring_detail::padded(bytes);
    auto offset = tail_ & (capacity_ - 1);
    const auto skip = capacity_ - offset < need ? capacity_ - offset : 0;
    if (tail_ + skip + need - std::min(head_, kept_) > capacity_) {
      const auto head = control_->head.load(std::memory_order_acquire);
      if (head < head_ || head > tail_ || head % 8 != 0)
        return Error{Errc::internal, 0, "a ring's head is corrupt"};
      head_ = head;
      if (tail_ + skip + need - std::min(head_, kept_) > capacity_) return std::span<std::byte>{};
    }
    if (skip != 0) {
      std::memcpy(data_ + offset, &ring_detail::kSkip, sizeof ring_detail::kSkip);
      offset = 0;
    }
    std::memcpy(data_ + offset, &bytes, sizeof bytes);
    reserved_ = skip + need;
    return std::span(data_ + offset + sizeof bytes, bytes);
  }

  /// Publishes what was reserved. True if the consumer sleeps and its doorbell must be rung.
  [[nodiscard]] bool commit() noexcept {
    tail_ += reserved_;
    control_->tail.store(tail_, std::memory_order_release);
    light_fence();  // the store above before the load below
    return control_->consumer_waits.load(std::memory_order_relaxed) != 0 &&
           control_->consumer_waits.exchange(0, std::memory_order_acq_rel) != 0;
  }

  /// The consumer has announced that it goes to sleep, and nothing has come since.
  [[nodiscard]] bool consumer_sleeps() const noexcept {
    return control_->consumer_waits.load(std::memory_order_relaxed) != 0;
  }

  /// Records from this position on stay in the ring although the consumer has taken them, until
  /// this is called with a later one.
  void keep_from(std::uint64_t position) noexcept { kept_ = position; }
  /// Up to where the consumer was last seen to have taken the records.
  [[nodiscard]] std::uint64_t consumed() const noexcept { return head_; }
  /// Where the next record comes to stand.
  [[nodiscard]] std::uint64_t position() const noexcept { return tail_; }

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }

 private:
  RingControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  ///< last seen
  std::uint64_t kept_ = ~std::uint64_t{0};
  std::uint64_t reserved_ = 0;
};

/// The consuming end. Not thread-safe: its owner serialises.
class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(RingControl* control, const std::byte* data, std::uint64_t capacity)
      : control_(control),
        data_(data),
        capacity_(capacity),
        head_(control->head.load(std::memory_order_relaxed)) {}

  /// The oldest record, in shared memory: copy before checking. Empty if there is none. Errors:
  /// `internal` if the producer has written nonsense.
  Result<std::span<const std::byte>> front() {
    // The producer's line is looked at only when all that was seen there is used up: each look
    // costs both sides.
    if (tail_ == head_) tail_ = control_->tail.load(std::memory_order_acquire);
    for (;;) {
      const auto tail = tail_;
      if (tail == head_) return std::span<const std::byte>{};
      if (tail < head_ || tail - head_ > capacity_ || tail % 8 != 0 || head_ % 8 != 0)
        return corrupt();
      const auto offset = head_ & (capacity_ - 1);
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, data_ + offset, sizeof bytes);
      if (bytes == ring_detail::kSkip) {
        head_ += capacity_ - offset;
        continue;
      }
      if (bytes > capacity_ || ring_detail::padded(bytes) > tail - head_ ||
          ring_detail::padded(bytes) > capacity_ - offset || bytes == 0) {
        return corrupt();
      }
      length_ = ring_detail::padded(bytes);
      prefetch_ahead();
      return std::span(data_ + offset + sizeof bytes, bytes);
    }
  }

  /// Frees the record that front() returned.
  void pop() noexcept {
    head_ += length_;
    control_->head.store(head_, std::memory_order_release);
  }

  /// Goes on to the next record without freeing this one: for reading what another consumer has not
  /// taken.
  void skip() noexcept { head_ += length_; }

  /// Where the record that front() returned stands.
  [[nodiscard]] std::uint64_t position() const noexcept { return head_; }

  [[nodiscard]] bool empty() const noexcept {
    return control_->tail.load(std::memory_order_acquire) == head_;
  }

  /// Announces that the consumer goes to sleep; look at empty() once more after it.
  void announce_sleep() noexcept {
    control_->consumer_waits.store(1, std::memory_order_relaxed);
    heavy_fence();  // the store above before the next look at the tail
  }
  void cancel_sleep() noexcept { control_->consumer_waits.store(0, std::memory_order_relaxed); }
  /// Somebody has announced it, and nothing has come since.
  [[nodiscard]] bool sleep_is_announced() const noexcept {
    return control_->consumer_waits.load(std::memory_order_relaxed) != 0;
  }

 private:
  static Error corrupt() { return {Errc::internal, 0, "a ring's contents are corrupt"}; }

  /// The other process has just written what comes next: each line has to come from its core.
  void prefetch_ahead() noexcept {
    constexpr std::uint64_t kLine = 64, kAhead = 1024;
    const auto next = head_ + length_, end = std::min(tail_, next + kAhead);
    for (fetched_ = std::max(fetched_, next); fetched_ < end; fetched_ += kLine)
      __builtin_prefetch(data_ + (fetched_ & (capacity_ - 1)));
  }

  RingControl* control_ = nullptr;
  const std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = head_;  ///< last seen
  std::uint64_t length_ = 0;
  std::uint64_t fetched_ = 0;  ///< what was asked for ahead ends here
};

}  // namespace troupe::ipc
