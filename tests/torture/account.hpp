#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::torture {

/// Something is wrong. Thrown on the rank that finds it; the job ends with it.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What this rank has done so far and is at. Any thread.
class Account {
 public:
  /// `spoil` is the number of the download to be falsified, to show that it is found; -1: none.
  explicit Account(std::int64_t spoil) : spoil_(spoil) {}

  void at(std::string where) {
    const std::lock_guard lock(mutex_);
    where_ = std::move(where);
    advance();
  }
  /// For the watchdog: the next thing is done.
  void advance() { progress_.fetch_add(1, std::memory_order_relaxed); }
  void count_operations(std::int64_t count = 1) { operations_ += count; }
  /// What was downloaded, as it is to be looked at.
  [[nodiscard]] std::vector<std::byte> seen(std::vector<std::byte> bytes) {
    if (downloads_.fetch_add(1) == spoil_ && !bytes.empty()) bytes.back() ^= std::byte{0x41};
    return bytes;
  }

  [[nodiscard]] std::string where() const {
    const std::lock_guard lock(mutex_);
    return where_;
  }
  [[nodiscard]] std::int64_t progress() const { return progress_; }
  [[nodiscard]] std::int64_t operations() const { return operations_; }

 private:
  const std::int64_t spoil_;
  std::atomic<std::int64_t> progress_{0}, operations_{0}, downloads_{0};
  mutable std::mutex mutex_;
  std::string where_;  ///< under mutex_
};

}  // namespace troupe::torture
