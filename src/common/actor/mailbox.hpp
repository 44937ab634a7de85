#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "common/core/spin.hpp"

namespace troupe {

enum class Push : std::uint8_t { ok, full, closed };

/// A bounded queue of messages: many producers, one consumer, no lock, no allocation per message.
///
/// A ring of slots in the manner of D. Vyukov's bounded queue: each slot carries the turn in which
/// it may next be written or read, so a producer claims a slot with one compare-exchange on `tail_`
/// and publishes it with one store. Messages of one producer arrive in the order in which it sent
/// them. The closing bit lives in `tail_` itself: after close() no claim can succeed, so no message
/// is ever left behind in a mailbox that nobody reads any more.
///
/// "Consumer" below is whoever has the actor's turn: one thread at a time, handed over by the
/// scheduler.
template <class T>
class Mailbox {
 public:
  /// `capacity` is rounded up to a power of two, at least 2.
  explicit Mailbox(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
        slots_(std::make_unique<Slot[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  /// No producer may be left.
  ~Mailbox() {
    while (consume([](T&&) {})) {
    }
  }

  /// Any thread. Constructs a message from `args`; they are moved from only if the answer is ok.
  template <class... Args>
  [[nodiscard]] Push push(Args&&... args) noexcept {
    static_assert(std::is_nothrow_constructible_v<T, Args...>,
                  "a claimed slot must be filled: messages need a noexcept move constructor");
    auto tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if ((tail & kClosed) != 0) return Push::closed;
      Slot& slot = slots_[tail & mask_];
      const auto lead = static_cast<std::int64_t>(slot.turn.load(std::memory_order_acquire) - tail);
      if (lead < 0) return Push::full;
      if (lead > 0) {
        tail = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_seq_cst,
                                             std::memory_order_relaxed)) {
        std::construct_at(&slot.value, std::forward<Args>(args)...);
        slot.turn.store(tail + 1, std::memory_order_release);
        return Push::ok;
      }
    }
  }

  /// Consumer. Calls `f(T&&)` on the oldest message, in place; its slot is free when f has returned
  /// or thrown. False if no message is published.
  template <class F>
  bool consume(F&& f) {
    Slot& slot = slots_[head_ & mask_];
    if (slot.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    struct Release {
      Mailbox& mailbox;
      Slot& slot;
      ~Release() {
        std::destroy_at(&slot.value);
        slot.turn.store(mailbox.head_ + mailbox.mask_ + 1, std::memory_order_release);
        ++mailbox.head_;
      }
    } release{*this, slot};
    std::forward<F>(f)(std::move(slot.value));
    return true;
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

  struct Slot {
    std::atomic<std::uint64_t> turn{0};
    union {
      T value;
    };
    Slot() noexcept {}  // the value's life is the mailbox's business
    ~Slot() {}
  };

  const std::size_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_{0};
  alignas(kCacheLine) std::uint64_t head_ = 0;
};

}  // namespace troupe
