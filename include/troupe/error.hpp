#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace troupe {

/// What kind of failure an operation met. The class decides what supervision does with it.
enum class Errc : std::uint8_t {
  ok = 0,
  invalid,         ///< the caller's arguments are wrong; nothing was launched
  unsupported,     ///< the engine has no such operation or dtype; nothing was launched
  out_of_memory,   ///< device, pinned or host memory does not suffice
  library,         ///< a library call failed; its actor stays usable
  numeric,         ///< the numbers do not allow it (not definite, not converged): native says more
  stale,           ///< the buffer's contents are gone (freed, or lost with its device host)
  timeout,         ///< a deadline passed
  would_block,     ///< a bounded queue is full
  stopped,         ///< the receiver has ended
  device_lost,     ///< the CUDA context or its process died while the operation was in flight
  device_failed,   ///< the GPU itself is unusable (ECC, fallen off the bus); it is excluded
  world_reformed,  ///< the operation belongs to an epoch that has ended
  peer_lost,       ///< another rank is gone for good
  budget_exhausted,  ///< more restarts than the budget allows
  requeue,           ///< the run was asked to stop, and has; it goes on from disk when run again
  io,                ///< a file or an operating-system call failed
  corrupt,           ///< numbers are wrong that the program has computed right: see verify
  internal           ///< troupe broke its own rules: please report
};

/// The lower-case name of an error class, as it appears in messages and JSON.
std::string_view to_string(Errc code) noexcept;

/// An operating error as a value: class, the native code of the library that failed (0 if none),
/// text.
struct Error {
  Errc code = Errc::internal;
  int native = 0;
  std::string message;
  /// Whether a future has delivered this error, or a copy of it, to the program: see
  /// Device::unread_errors(). None: troupe keeps no account of it.
  std::shared_ptr<std::atomic<bool>> read = nullptr;

  /// "device_lost: cuEventQuery: an illegal memory access was encountered (700)".
  [[nodiscard]] std::string to_string() const;
};

/// Errors that no part of the program was told of, see Device::unread_errors().
struct UnreadErrors {
  std::uint64_t count = 0;
  Error first;  ///< if there is any
};

/// What `Future::get()`, `co_await` and the `Runtime` constructor throw.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error);
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  [[nodiscard]] Errc code() const noexcept { return error_.code; }

 private:
  Error error_;
};

/// An Exception that is thrown on every rank alike: all of them may end in good order.
class CollectiveException : public Exception {
 public:
  using Exception::Exception;
};

namespace detail {
[[noreturn]] void check_failed(std::string_view what, const std::source_location& where);
}

namespace detail {
[[noreturn]] void refuse_argument(std::string_view what);

/// Throws Exception (invalid) if what a program has passed does not hold: a program's mistake is
/// one line and a status, never an abort.
inline void require(bool holds, std::string_view what) {
  if (!holds) [[unlikely]]
    refuse_argument(what);
}
}  // namespace detail

/// Aborts with file and line if an assumption of troupe's own does not hold, in every build type.
inline void check(bool holds, std::string_view what,
                  const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    detail::check_failed(what, where);
}

/// A value or an Error. Access to what is not there aborts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  [[nodiscard]] T& value() & {
    require();
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const T& value() const& {
    require();
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] T&& value() && {
    require();
    return std::move(*std::get_if<0>(&state_));
  }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const {
    check(!ok(), "Result::error() on a value");
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] Errc code() const noexcept {
    return ok() ? Errc::ok : std::get_if<1>(&state_)->code;
  }

  /// The value, or an Exception that carries the error.
  T take() && {
    if (!ok()) throw Exception(error());
    return std::move(*std::get_if<0>(&state_));
  }

 private:
  void require() const {
    if (!ok()) [[unlikely]]
      detail::check_failed(error().to_string(), std::source_location::current());
  }
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  /// Not defaulted: `return {}` would clear all of an error's bytes first.
  Result() noexcept {}
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] const Error& error() const {
    check(!ok(), "Result::error() on a value");
    return *error_;
  }
  [[nodiscard]] Errc code() const noexcept { return error_ ? error_->code : Errc::ok; }
  void take() && {
    if (error_) throw Exception(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace troupe
