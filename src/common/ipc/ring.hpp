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
/// Positions count bytes for ever; a record is a word and its bytes, padded to eight, never
/// wrapping: where the rest of the buffer is too short a skip mark fills it. The word holds the
/// length and the place, and is stored last: by it the consumer sees that the record is there, so
/// that the line it comes in is all that travels between the cores. Before a word is stored the
/// place of the next one is cleared. Either side may be killed or write nonsense at any moment: the
/// other one checks every position and word before it follows them.
namespace troupe::ipc {

/// The shared part; zero-initialised memory, the buffer's too, is an empty ring.
struct RingControl {
  alignas(64) std::atomic<std::uint64_t> head;            ///< written by the consumer
  alignas(64) std::atomic<std::uint32_t> consumer_waits;  ///< set by who goes to sleep, cleared by
                                                          ///< who wakes
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

namespace ring_detail {
inline constexpr std::uint64_t kWord = sizeof(std::uint64_t);
/// In place of a length: the record is at the buffer's begin.
inline constexpr std::uint32_t kSkip = ~std::uint32_t{0};

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return kWord + ((bytes + 7) & ~std::uint64_t{7});
}
/// The word of a record; 0 stands for none. One that is left from another lap is told by its place.
constexpr std::uint64_t word_of(std::uint64_t position, std::uint32_t length) {
  return position / kWord << 32 | length;
}
/// The other process may write the word at any time. `at` is aligned.
inline std::atomic_ref<std::uint64_t> word_at(const std::byte* at) noexcept {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(at)));
}
}  // namespace ring_detail

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
    for (;;) {
      const auto offset = head_ & (capacity_ - 1);
      if (offset % ring_detail::kWord != 0) return corrupt();
      const auto word = ring_detail::word_at(data_ + offset).load(std::memory_order_acquire);
      if (word == 0) return std::span<const std::byte>{};
      const auto bytes = static_cast<std::uint32_t>(word);
      if (word != ring_detail::word_of(head_, bytes)) return corrupt();
      if (bytes == ring_detail::kSkip) {
        if (offset == 0) return corrupt();
        head_ += capacity_ - offset;
        continue;
      }
      if (bytes == 0 || ring_detail::padded(bytes) > capacity_ - offset) return corrupt();
      length_ = ring_detail::padded(bytes);
      prefetch_ahead();
      return std::span(data_ + offset + ring_detail::kWord, bytes);
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

  /// Where the record that front() returned stands; where there is none, the next one will.
  [[nodiscard]] std::uint64_t position() const noexcept { return head_; }

  [[nodiscard]] bool empty() const noexcept {
    const auto offset = head_ & (capacity_ - 1) & ~(ring_detail::kWord - 1);
    return ring_detail::word_at(data_ + offset).load(std::memory_order_acquire) == 0;
  }

  /// Announces that the consumer goes to sleep; look at empty() once more after it.
  void announce_sleep() noexcept {
    control_->consumer_waits.store(1, std::memory_order_relaxed);
    heavy_fence();  // the store above before the next look at the word
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
    constexpr std::uint64_t kLine = 64, kAhead = 256;
    const auto next = head_ + length_, end = next + kAhead;
    for (fetched_ = std::max(fetched_, next); fetched_ < end; fetched_ += kLine)
      __builtin_prefetch(data_ + (fetched_ & (capacity_ - 1)));
  }

  RingControl* control_ = nullptr;
  const std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t fetched_ = 0;  ///< what was asked for ahead ends here
};

/// The producing end. Not thread-safe: its owner serialises.
class RingProducer {
 public:
  RingProducer() = default;
  /// `capacity` is a power of two, at most 8 GiB. The ring may hold records already.
  RingProducer(RingControl* control, std::byte* data, std::uint64_t capacity)
      : control_(control),
        data_(data),
        capacity_(capacity),
        tail_(end_of({control, data, capacity})),
        head_(control->head.load(std::memory_order_acquire)) {}

  /// The largest record that is sure to fit an empty ring.
  [[nodiscard]] std::uint64_t max_record() const noexcept {
    return capacity_ / 2 - ring_detail::kWord;
  }
  /// Bytes of records, padded() each, that fit a ring that nobody has written to yet.
  [[nodiscard]] std::uint64_t room_when_new() const noexcept {
    return capacity_ - ring_detail::kWord;
  }

  /// Room for one record of `bytes` <= max_record(); empty while the ring is full. Errors:
  /// `internal` if the consumer has written nonsense.
  Result<std::span<std::byte>> reserve(std::uint64_t bytes) {
    const auto need = ring_detail::padded(bytes);
    auto offset = tail_ & (capacity_ - 1);
    const auto skip = capacity_ - offset < need ? capacity_ - offset : 0;
    if (!has_room(skip + need)) {
      const auto head = control_->head.load(std::memory_order_acquire);
      if (head < head_ || head > tail_ || head % ring_detail::kWord != 0)
        return Error{Errc::internal, 0, "a ring's head is corrupt"};
      head_ = head;
      if (!has_room(skip + need)) return std::span<std::byte>{};
    }
    if (skip != 0) {
      publish(ring_detail::kSkip, skip);
      offset = 0;
    }
    reserved_ = static_cast<std::uint32_t>(bytes);
    return std::span(data_ + offset + ring_detail::kWord, bytes);
  }

  /// Publishes what was reserved. True if the consumer sleeps and its doorbell must be rung.
  [[nodiscard]] bool commit() noexcept {
    publish(reserved_, ring_detail::padded(reserved_));
    light_fence();  // the store of the word before the load below
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
  /// Where the next record comes to stand, or the skip mark before it; that of a reserved one.
  [[nodiscard]] std::uint64_t position() const noexcept { return tail_; }

 private:
  static std::uint64_t end_of(RingConsumer reader) {
    for (auto record = reader.front(); record.ok() && !record->empty(); record = reader.front())
      reader.skip();
    return reader.position();
  }
  /// Behind the record a word must be free, for the next one to be seen to be missing.
  [[nodiscard]] bool has_room(std::uint64_t bytes) const noexcept {
    return tail_ + bytes + ring_detail::kWord - std::min(head_, kept_) <= capacity_;
  }
  /// The record or mark of so many bytes at the tail is there.
  void publish(std::uint32_t length, std::uint64_t bytes) noexcept {
    const auto at = [this](std::uint64_t position) {
      return ring_detail::word_at(data_ + (position & (capacity_ - 1)));
    };
    at(tail_ + bytes).store(0, std::memory_order_relaxed);
    at(tail_).store(ring_detail::word_of(tail_, length), std::memory_order_release);
    tail_ += bytes;
  }

  RingControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  ///< last seen
  std::uint64_t kept_ = ~std::uint64_t{0};
  std::uint32_t reserved_ = 0;
};

}  // namespace troupe::ipc
