#include "device_host/engine/cpu/cpu_engine.hpp"

namespace troupe::host::cpu {
namespace {

template <class Op>
RandomRange range_of(const Op& op) {
  return {op.seed, op.subsequence * rng::kSubsequenceStride + op.offset, op.n};
}

}  // namespace

Result<void> CpuEngine::run(const rng::Uniform& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    return submit(
        call, [this, range = range_of(op), destination = call.at<decltype(zero)>(op.destination)] {
          random_.uniform(range, destination);
        });
  });
}

Result<void> CpuEngine::run(const rng::Normal& op, const Call& call) {
  if (op.n % 2 != 0 || op.offset % 2 != 0) {
    return Error{Errc::invalid, 0, "normal numbers come in pairs: length and offset must be even"};
  }
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return submit(
        call, [this, range = range_of(op), mean = static_cast<T>(op.mean),
               deviation = static_cast<T>(op.deviation), destination = call.at<T>(op.destination)] {
          random_.normal(range, mean, deviation, destination);
        });
  });
}

}  // namespace troupe::host::cpu
