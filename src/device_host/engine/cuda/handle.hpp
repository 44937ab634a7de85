#pragma once

#include <utility>

namespace troupe::host::cuda {

/// Owns one handle of a C library; move-only. `Traits` has `Type`, `invalid()` and `destroy(Type)`;
/// what destroy reports is dropped, because a handle that cannot be destroyed belongs to a context
/// that is gone.
template <class Traits>
class Handle {
 public:
  using Type = typename Traits::Type;

  Handle() = default;
  explicit Handle(Type value) noexcept : value_(value) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, Traits::invalid())) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, Traits::invalid());
    }
    return *this;
  }
  ~Handle() { reset(); }

  [[nodiscard]] Type get() const noexcept { return value_; }
  [[nodiscard]] explicit operator bool() const noexcept { return value_ != Traits::invalid(); }
  /// Where a library's create function stores the handle; gives up what was owned before.
  [[nodiscard]] Type* out() noexcept {
    reset();
    return &value_;
  }
  /// Gives the handle up: whoever calls destroys it.
  [[nodiscard]] Type release() noexcept { return std::exchange(value_, Traits::invalid()); }
  void reset() noexcept {
    if (value_ != Traits::invalid()) Traits::destroy(std::exchange(value_, Traits::invalid()));
  }

 private:
  Type value_ = Traits::invalid();
};

}  // namespace troupe::host::cuda
