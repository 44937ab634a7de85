#include <cstring>
#include <type_traits>

#include "lib/primitives/cuda.hpp"

namespace troupe::host::cuda {

using primitives::Extreme;
using primitives::ReduceOp;

Result<void> combine(const Combined& combined, const Call& call, Primitives& library) {
  auto& own = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(own.memory.reserve(
      library.services, call.queue(),
      Primitives::State::kCountBytes + kernels::kMostPartialResults * sizeof(std::uint64_t)));
  const auto launch = library.services.launch(call.queue());
  const auto n = static_cast<std::uint64_t>(combined.n);
  const auto how = [&]<class T>(T) {
    return kernels::Reducing<T>{combination(combined.reduction), neutral<T>(combined.reduction),
                                combined.applies, combined.op};
  };
  if (primitives::kNarrowFloats.has(combined.dtype)) {
    TROUPE_CUDA_TRY(kernels::reduce(launch, how(float{}), n, narrow_float(combined.dtype),
                                    call.at<const std::uint16_t>(combined.x),
                                    static_cast<float*>(own.temporary()),
                                    call.at<std::uint16_t>(combined.result)));
    return {};
  }
  return with_countable(combined.dtype, [&]<class T>(T type) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::reduce(launch, how(type), n, call.at<const T>(combined.x),
                                    static_cast<T*>(own.temporary()), call.at<T>(combined.result)));
    return {};
  });
}

/// Sums are CUB's; its kernels for every other reduction and type would be many.
Result<void> run(const primitives::Reduce& op, const Call& call, Primitives& library) {
  if (op.reduction != ReduceOp::sum || primitives::kNarrowFloats.has(op.dtype))
    return combine({op.dtype, op.reduction, op.n, op.x, op.result}, call, library);
  const auto stream = library.services.stream(call.queue());
  return with_countable(op.dtype, [&]<class T>(T) {
    using S = Summand<T>;
    return library.queue_algorithm(
        call.queue(), "cub::DeviceReduce", [&](kernels::Temporary& temporary) {
          return kernels::sum(temporary, stream, op.n, call.at<const S>(op.x),
                              call.at<S>(op.result));
        });
  });
}

Result<void> run(const primitives::ArgReduce& op, const Call& call, Primitives& library) {
  const auto stream = library.services.stream(call.queue());
  const bool largest_wanted = op.extreme == Extreme::max;
  std::uint64_t initial = 0;
  TROUPE_CUDA_PROPAGATE(with_ordered(op.dtype, [&]<class T>(T) -> Result<void> {
    const auto value = neutral<T>(largest_wanted ? ReduceOp::max : ReduceOp::min);
    std::memcpy(&initial, &value, sizeof value);
    return {};
  }));
  return with_word(op.dtype, [&]<class U>(U) {
    return library.queue_algorithm(
        call.queue(), "cub::DeviceReduce", [&](kernels::Temporary& temporary) {
          return kernels::find_extreme(temporary, stream, op.n, call.at<const U>(op.x),
                                       meaning(op.dtype), largest_wanted, static_cast<U>(initial),
                                       call.at<U>(op.value), call.at<std::int64_t>(op.index));
        });
  });
}

Result<void> run(const primitives::SegmentedReduce& op, const Call& call, Primitives& library) {
  if (op.segments == 0) return {};
  const auto stream = library.services.stream(call.queue());
  const kernels::Segments segments{op.n, op.segments, call.at<const std::int64_t>(op.offsets)};
  return with_countable(op.dtype, [&]<class T>(T) {
    using S = Summand<T>;
    const Combine<S> combine_two{op.reduction, std::is_signed_v<T>};
    const auto initial = static_cast<S>(neutral<T>(op.reduction));
    return library.queue_algorithm(
        call.queue(), "cub::DeviceSegmentedReduce", [&](kernels::Temporary& temporary) {
          return kernels::segmented_reduce(temporary, stream, segments, call.at<const S>(op.x),
                                           combine_two, initial, call.at<S>(op.result));
        });
  });
}

Result<void> warm_up_reductions(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library) {
  const auto& [a, b, c, d] = ranges;
  for (const auto reduction : {ReduceOp::sum, ReduceOp::min})
    TROUPE_CUDA_PROPAGATE(
        library.carry_out(primitives::Reduce{dtype, reduction, 0, n, a, c}, call));
  TROUPE_CUDA_PROPAGATE(
      library.carry_out(primitives::ArgReduce{dtype, Extreme::min, 0, n, a, c, d}, call));
  if (primitives::kNarrowFloats.has(dtype)) return {};
  return library.carry_out(primitives::SegmentedReduce{dtype, ReduceOp::sum, 0, n, 1, a, b, c},
                           call);
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
