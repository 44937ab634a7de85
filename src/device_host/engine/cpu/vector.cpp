#include "device_host/engine/cpu/cpu_engine.hpp"

/// Plain loops: the compiler vectorises them.
namespace troupe::host::cpu {

Result<void> CpuEngine::run(const vector::Multiply& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return submit(call, [n = op.n, x = call.at<const T>(op.x), y = call.at<const T>(op.y),
                         z = call.at<T>(op.z)] {
      for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] * y[i];
    });
  });
}

Result<void> CpuEngine::run(const vector::Divide& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return submit(call, [n = op.n, x = call.at<const T>(op.x), y = call.at<const T>(op.y),
                         z = call.at<T>(op.z)] {
      for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] / y[i];
    });
  });
}

Result<void> CpuEngine::run(const vector::Axpby& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return submit(call, [n = op.n, alpha_factor = Factor<T>(op.alpha, call),
                         beta_factor = Factor<T>(op.beta, call), x = call.at<const T>(op.x),
                         y = call.at<T>(op.y)] {
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

}  // namespace troupe::host::cpu
