#include <troupe/lib/vector.hpp>

#include "device_host/engine/cpu/library.hpp"

/// Plain loops: the compiler vectorises them.
namespace troupe::host::cpu {
namespace {

class Vector final : public LibraryHalfOf<Vector, vectors::Operations> {
 public:
  explicit Vector(Services& services) : services_(services) {}
  Result<void> run(const vectors::Multiply& op, const Call& call);
  Result<void> run(const vectors::Divide& op, const Call& call);
  Result<void> run(const vectors::Axpby& op, const Call& call);

 private:
  Services& services_;
};

Result<void> Vector::run(const vectors::Multiply& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(call, [n = op.n, x = call.at<const T>(op.x), y = call.at<const T>(op.y),
                                   z = call.at<T>(op.z)] {
      for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] * y[i];
    });
  });
}

Result<void> Vector::run(const vectors::Divide& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(call, [n = op.n, x = call.at<const T>(op.x), y = call.at<const T>(op.y),
                                   z = call.at<T>(op.z)] {
      for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] / y[i];
    });
  });
}

Result<void> Vector::run(const vectors::Axpby& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(call, [n = op.n, alpha_factor = ScalarValue<T>(op.alpha, call),
                                   beta_factor = ScalarValue<T>(op.beta, call),
                                   x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
      const T alpha = alpha_factor.get();
      const T beta = beta_factor.get();
      if (beta_factor.is_zero_value()) {  // y may be anything, also NaN
        for (std::int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
      } else {
        for (std::int64_t i = 0; i < n; ++i) y[i] = alpha * x[i] + beta * y[i];
      }
    });
  });
}

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Vector, cpu)
