#include "lib/primitives/primitives_cuda.hpp"

namespace troupe::host::cuda {

using primitives::Extreme;
using primitives::Reduction;

Result<void> Primitives::run(const primitives::Reduce& op, const Call& call) {
  const auto stream = services_.stream(call.queue());
  return with_countable(op.dtype, [&]<class T>(T) {
    return queue_algorithm(call.queue(), "cub::DeviceReduce", [&](kernels::Temporary& temporary) {
      const auto* const x = call.at<const T>(op.x);
      auto* const result = call.at<T>(op.result);
      using S = Summand<T>;
      const auto* const bits = call.at<const S>(op.x);
      auto* const result_bits = call.at<S>(op.result);
      switch (op.reduction) {
        case Reduction::sum: return kernels::sum(temporary, stream, op.n, bits, result_bits);
        case Reduction::product:
          return kernels::product(temporary, stream, op.n, bits, result_bits);
        case Reduction::min:
          return kernels::minimum(temporary, stream, op.n, x, neutral<T>(Reduction::min), result);
        case Reduction::max:
          return kernels::maximum(temporary, stream, op.n, x, neutral<T>(Reduction::max), result);
        default: break;
      }
      if constexpr (std::is_integral_v<T>) {
        return kernels::reduce(temporary, stream, op.n, bits, Combine<S>{op.reduction, false},
                               neutral<S>(op.reduction), result_bits);
      } else {
        return cudaErrorInvalidValue;  // the check has refused it
      }
    });
  });
}

Result<void> Primitives::run(const primitives::ArgReduce& op, const Call& call) {
  const auto stream = services_.stream(call.queue());
  const bool largest_wanted = op.extreme == Extreme::max;
  return with_countable(op.dtype, [&]<class T>(T) {
    return queue_algorithm(call.queue(), "cub::DeviceReduce", [&](kernels::Temporary& temporary) {
      return kernels::find_extreme(
          temporary, stream, op.n, call.at<const T>(op.x), largest_wanted,
          largest_wanted ? neutral<T>(Reduction::max) : neutral<T>(Reduction::min),
          call.at<T>(op.value), call.at<std::int64_t>(op.index));
    });
  });
}

Result<void> Primitives::run(const primitives::SegmentedReduce& op, const Call& call) {
  if (op.segments == 0) return {};
  const auto stream = services_.stream(call.queue());
  const kernels::Segments segments{op.n, op.segments, call.at<const std::int64_t>(op.offsets)};
  return with_countable(op.dtype, [&]<class T>(T) {
    return queue_algorithm(
        call.queue(), "cub::DeviceSegmentedReduce", [&](kernels::Temporary& temporary) {
          if (op.reduction == Reduction::sum) {
            using S = Summand<T>;
            return kernels::segmented_sum(temporary, stream, segments, call.at<const S>(op.x),
                                          call.at<S>(op.result));
          }
          return kernels::segmented_extreme(temporary, stream, segments, call.at<const T>(op.x),
                                            op.reduction == Reduction::max,
                                            neutral<T>(op.reduction), call.at<T>(op.result));
        });
  });
}

Result<void> Primitives::warm_up_reductions(DType dtype, std::int64_t n,
                                            const std::array<Operand, 4>& ranges,
                                            const Call& call) {
  const auto& [a, b, c, d] = ranges;
  for (const auto reduction : {Reduction::sum, Reduction::min, Reduction::max, Reduction::product})
    TROUPE_CUDA_PROPAGATE(run(primitives::Reduce{dtype, reduction, 0, n, a, c}, call));
  if (primitives::kIntegers.has(dtype))
    TROUPE_CUDA_PROPAGATE(run(primitives::Reduce{dtype, Reduction::bit_or, 0, n, a, c}, call));
  TROUPE_CUDA_PROPAGATE(run(primitives::ArgReduce{dtype, Extreme::min, 0, n, a, c, d}, call));
  for (const auto reduction : {Reduction::sum, Reduction::min})
    TROUPE_CUDA_PROPAGATE(
        run(primitives::SegmentedReduce{dtype, reduction, 0, n, 1, a, b, c}, call));
  return {};
}

}  // namespace troupe::host::cuda
