#pragma once

#include <atomic>
#include <complex>
#include <functional>
#include <memory>
#include <string>

#include "device_host/engine/library.hpp"

namespace troupe::host {
class ProductChecks;
}

/// What a library's half for the cpu engine stands on.
namespace troupe::host::cpu {

/// What it may ask of the engine.
class Services {
 public:
  /// Queues work on the call's queue, on whose thread it then executes. What it throws fails the
  /// queue: all marks behind it, until `failure_over` is true; without that, until the failure has
  /// been reported once. Errors: would_block.
  virtual Result<void> submit(const Call& call, std::function<void()> work,
                              std::shared_ptr<std::atomic<bool>> failure_over = {}) = 0;
  /// Host threads that a library may compute with.
  [[nodiscard]] virtual int threads() const noexcept = 0;
  /// The network interface to reach other ranks by; empty: whichever does.
  [[nodiscard]] virtual const std::string& network() const noexcept = 0;
  /// True if this thread records a graph: its submissions are not carried out now.
  [[nodiscard]] virtual bool records() const noexcept = 0;
  [[nodiscard]] virtual ProductChecks& product_checks() noexcept = 0;

 protected:
  ~Services() = default;
};

/// A scalar of an operation: a value, or an element that is read when the operation executes.
template <class T>
struct ScalarValue {
  T value{};
  const T* element = nullptr;

  ScalarValue(const Scalar& scalar, const Call& call)
      : value(scalar.as<T>()),
        element(scalar.device.present() ? call.at<const T>(scalar.device) : nullptr) {}
  [[nodiscard]] T get() const { return element != nullptr ? *element : value; }
  /// Zero, and known to be so from the start.
  [[nodiscard]] bool is_zero_value() const { return element == nullptr && value == T(0); }
};

/// Calls visit(T{}) for f32 or f64; other dtypes are unsupported.
template <class Visit>
Result<void> with_real(DType dtype, Visit&& visit) {
  if (dtype == DType::f32) return visit(float{});
  if (dtype == DType::f64) return visit(double{});
  return Error{Errc::unsupported, 0, "the operation takes f32 and f64 only"};
}
/// Calls visit(T{}) for the number that the dtype names: f32, f64, c64 or c128.
template <class Visit>
Result<void> with_number(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f64: return visit(double{});
    case DType::c64: return visit(std::complex<float>{});
    case DType::c128: return visit(std::complex<double>{});
    default: return Error{Errc::unsupported, 0, "the operation takes f32, f64, c64 and c128 only"};
  }
}

}  // namespace troupe::host::cpu
