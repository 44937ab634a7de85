#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <troupe/spin.hpp>

namespace troupe {

enum class Push : std::uint8_t { ok, full, closed };

/// A bounded queue of messages: many producers, one consumer, no lock, no allocation per message.
///
/// A ring of slots. A producer claims a slot with one compare-exchange on `tail_` and publishes it
/// by storing its number in the slot, so messages of one producer arrive in the order in which it
/// sent them. That compare-exchange is the only contended write of a push: whether there is room
/// stands beside `tail_`, in the same cache line, and is only renewed from the consumer's progress
/// when it is used up; and the consumer tells its progress once per batch. The closing bit lives in
/// `tail_` itself: after close() no claim can succeed, so no message is ever left behind in a
/// mailbox that nobody reads any more.
///
/// "Consumer" below is whoever has the actor's turn: one thread at a time, handed over by the
/// scheduler.
template <class T>
class Mailbox {
 public:
  /// `capacity` is rounded up to a power of two, at least 2.
  explicit Mailbox(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
        batch_(std::clamp<std::uint64_t>((mask_ + 1) / 8, 1, kLargestBatch)),
        slots_(static_cast<Slot*>(std::calloc(mask_ + 1, sizeof(Slot)))),
        room_until_(mask_ + 1) {
    if (slots_ == nullptr) throw std::bad_alloc();
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  /// No producer may be left.
  ~Mailbox() {
    while (consume([](T&&) {})) {
    }
  }

  /// Any thread. Constructs a message from `args`; they are moved from only if the answer is ok.
  /// `full` may come up to an eighth of the capacity early while the consumer is at work.
  template <class... Args>
  [[nodiscard]] Push push(Args&&... args) noexcept {
    static_assert(std::is_nothrow_constructible_v<T, Args...>,
                  "a claimed slot must be filled: messages need a noexcept move constructor");
    auto tail = tail_.load(std::memory_order_relaxed);
    for (int failures = 0;; ++failures) {
      if ((tail & kClosed) != 0) return Push::closed;
      if (tail >= room_until_.load(std::memory_order_acquire) && !find_room(tail))
        return Push::full;
      if (tail_.compare_exchange_strong(tail, tail + 1, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
        Slot& slot = slot_of(tail);
        std::construct_at(value_of(slot), std::forward<Args>(args)...);
        std::atomic_ref(slot.published).store(tail + 1, std::memory_order_release);
        return Push::ok;
      }
      // The failure has brought the line and its value here: one more try at once, after that
      // whoever has the line may send some more messages before it moves on.
      if (failures > 0) {
        for (int i = 0; i < (1 << std::min(failures, kLongestBackoff)); ++i) cpu_relax();
        tail = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  /// Consumer. Calls `f(T&&)` on the oldest message, in place; it is gone when f has returned or
  /// thrown. False if no message is published.
  template <class F>
  bool consume(F&& f) {
    if (!published()) {
      free_consumed();
      return false;
    }
    Slot& slot = slot_of(head_);
    struct Release {
      Mailbox& mailbox;
      Slot& slot;
      ~Release() {
        std::destroy_at(value_of(slot));
        if (++mailbox.head_ - mailbox.freed_ >= mailbox.batch_) mailbox.free_consumed();
      }
    } release{*this, slot};
    std::forward<F>(f)(std::move(*value_of(slot)));
    return true;
  }

  /// Consumer. Gives the slots of all consumed messages back to the producers; to be called before
  /// it turns to something else. consume() does so once per batch and when it finds nothing.
  void free_consumed() noexcept {
    if (freed_ == head_) return;
    freed_ = head_;
    progress_.store(head_, std::memory_order_release);
  }

  /// Consumer. True if consume() will find a message.
  [[nodiscard]] bool published() const noexcept {
    return std::atomic_ref(slot_of(head_).published).load(std::memory_order_acquire) == head_ + 1;
  }

  /// Consumer. True if a message is published or a producer is just about to publish one.
  /// Sequentially consistent with push(): a producer whose claim is not seen here will see what the
  /// caller stored (sequentially consistent, too) before.
  [[nodiscard]] bool claimed() const noexcept {
    return (tail_.load(std::memory_order_seq_cst) & ~kClosed) != head_;
  }

  /// Consumer. From now on push() answers closed; calls `f(T&&)` on every message that was accepted
  /// before.
  template <class F>
  void close(F&& f) {
    tail_.fetch_or(kClosed, std::memory_order_seq_cst);
    while (claimed()) {
      if (!consume(f)) cpu_relax();  // a producer is between its claim and its store
    }
  }

  /// Any thread; may be out of date when it returns, but never turns from true to false.
  [[nodiscard]] bool closed() const noexcept {
    return (tail_.load(std::memory_order_acquire) & kClosed) != 0;
  }

  /// Any thread.
  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

 private:
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  static constexpr std::size_t kCacheLine = 64;
  static constexpr std::uint64_t kLargestBatch = 64;
  static constexpr int kLongestBackoff = 4;  ///< 16 pauses: some hundred nanoseconds

  /// Zeros at first, which the allocator takes from the system: the pages of a large mailbox are
  /// touched when a message comes there, and take no memory before.
  struct Slot {
    std::uint64_t published;  ///< atomic: 1 + the number of the last message put in here
    alignas(T) std::byte value[sizeof(T)];
  };
  static_assert(alignof(Slot) <= alignof(std::max_align_t));
  struct Free {
    void operator()(Slot* slots) const noexcept { std::free(slots); }
  };

  [[nodiscard]] Slot& slot_of(std::uint64_t number) const noexcept {
    return slots_[number & mask_];
  }
  [[nodiscard]] static T* value_of(Slot& slot) noexcept {
    return std::launder(reinterpret_cast<T*>(slot.value));
  }

  /// Renews `room_until_`, which by a race may become lower, never too high. False if there is no
  /// room for message number `tail`.
  bool find_room(std::uint64_t tail) noexcept {
    const auto until = progress_.load(std::memory_order_acquire) + mask_ + 1;
    if (tail >= until) return false;
    room_until_.store(until, std::memory_order_release);
    return true;
  }

  // Never written again.
  const std::size_t mask_;
  const std::uint64_t batch_;
  const std::unique_ptr<Slot[], Free> slots_;
  // The producers'.
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> room_until_;
  // What the consumer tells them: messages before this one are consumed.
  alignas(kCacheLine) std::atomic<std::uint64_t> progress_{0};
  // The consumer's own.
  alignas(kCacheLine) std::uint64_t head_ = 0;
  std::uint64_t freed_ = 0;  ///< the last value of `progress_`
};

}  // namespace troupe
