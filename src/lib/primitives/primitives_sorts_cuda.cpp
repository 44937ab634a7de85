#include "lib/primitives/primitives_sorts.cuh"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "lib/primitives/primitives_cuda.hpp"

/// Sorts and merges on the cuda engine.
namespace troupe::host::cuda {

using primitives::Order;

namespace {

/// Calls visit(V{}) for the word that values of the size move as.
template <class Visit>
Result<void> with_value(std::uint32_t value_bytes, Visit&& visit) {
  return value_bytes == 8 ? visit(std::uint64_t{}) : visit(std::uint32_t{});
}

}  // namespace

template <class K, bool kDescending>
Result<void> Primitives::sort(const primitives::Sort& op, const Call& call) {
  using Sorter = kernels::Sorter<K, kDescending>;
  const auto stream = services_.stream(call.queue());
  const auto end = op.end_bit == 0 ? 8 * sizeof(K) : op.end_bit;
  const kernels::Bits bits{static_cast<int>(op.begin_bit), static_cast<int>(end)};
  const auto* const keys = call.at<const K>(op.keys);
  auto* const sorted_keys = call.at<K>(op.sorted_keys);
  if (op.value_bytes == 0) {
    return queue_algorithm(call.queue(), "cub::DeviceRadixSort",
                           [&](kernels::Temporary& temporary) {
                             return Sorter::run(temporary, stream, op.n, bits, keys, sorted_keys);
                           });
  }
  return with_value(op.value_bytes, [&]<class V>(V) {
    const auto* const values = call.at<const V>(op.values);
    auto* const sorted_values = call.at<V>(op.sorted_values);
    return queue_algorithm(call.queue(), "cub::DeviceRadixSort",
                           [&](kernels::Temporary& temporary) {
                             return Sorter::run(temporary, stream, op.n, bits, keys, values,
                                                sorted_keys, sorted_values);
                           });
  });
}

Result<void> Primitives::run(const primitives::Sort& op, const Call& call) {
  if (op.n == 0) return {};
  return with_countable(op.dtype, [&]<class K>(K) {
    return op.order == Order::ascending ? sort<K, false>(op, call) : sort<K, true>(op, call);
  });
}

/// All keys are sorted, and the places where they come from with them. Then these places are sorted
/// by their segments: as that sort is stable, each segment's are in the order of their keys.
template <class K, bool kDescending>
Result<void> Primitives::sort_segments(const primitives::SegmentedSort& op, const Call& call) {
  using Places = std::uint32_t;
  const auto launch = services_.launch(call.queue());
  const auto n = static_cast<std::uint64_t>(op.n),
             segments = static_cast<std::uint64_t>(op.segments);
  const kernels::Offsets offsets{call.at<const std::int64_t>(op.offsets), segments};
  const auto* const keys = call.at<const K>(op.keys);
  auto* const sorted_keys = call.at<K>(op.sorted_keys);
  constexpr kernels::Bits kKeyBits{0, 8 * sizeof(K)};
  const kernels::Bits segment_bits{0, static_cast<int>(std::bit_width(segments + 1))};
  Places *from = nullptr, *places = nullptr, *numbers = nullptr, *sorted_numbers = nullptr;
  const auto sort_by_key = [&](kernels::Temporary& temporary) {
    return kernels::Sorter<K, kDescending>::run(temporary, launch.stream, op.n, kKeyBits, keys,
                                                from, sorted_keys, places);
  };
  const auto sort_by_segment = [&](kernels::Temporary& temporary) {
    return kernels::Sorter<Places, false>::run(temporary, launch.stream, op.n, segment_bits,
                                               numbers, places, sorted_numbers, from);
  };

  constexpr std::string_view kName = "cub::DeviceRadixSort";
  (void)cudaGetLastError();  // CUB reports what others left there
  kernels::Temporary by_key, by_segment;
  if (const auto status = sort_by_key(by_key); status != cudaSuccess) return failure(status, kName);
  if (const auto status = sort_by_segment(by_segment); status != cudaSuccess)
    return failure(status, kName);
  constexpr std::uint64_t kAligned = 256;
  const auto range_bytes = (n * sizeof(Places) + kAligned - 1) / kAligned * kAligned;
  auto& own = state(call.queue());
  TROUPE_CUDA_PROPAGATE(own.memory.reserve(
      services_, call.queue(),
      State::kCountBytes + 4 * range_bytes + std::max(by_key.bytes, by_segment.bytes)));
  auto* next = static_cast<std::byte*>(own.temporary());
  for (auto** const range : {&from, &places, &numbers, &sorted_numbers}) {
    *range = reinterpret_cast<Places*>(next);
    next += range_bytes;
  }
  by_key.memory = by_segment.memory = next;

  TROUPE_CUDA_TRY(kernels::number_places(launch, n, from));
  if (const auto status = sort_by_key(by_key); status != cudaSuccess) return failure(status, kName);
  TROUPE_CUDA_TRY(kernels::number_segments(launch, n, places, offsets, numbers));
  if (const auto status = sort_by_segment(by_segment); status != cudaSuccess)
    return failure(status, kName);
  TROUPE_CUDA_PROPAGATE(with_word(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::take(launch, n, from, offsets, call.at<const T>(op.keys),
                                  call.at<T>(op.sorted_keys)));
    return {};
  }));
  if (op.value_bytes == 0) return {};
  return with_value(op.value_bytes, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::take(launch, n, from, offsets, call.at<const T>(op.values),
                                  call.at<T>(op.sorted_values)));
    return {};
  });
}

Result<void> Primitives::run(const primitives::SegmentedSort& op, const Call& call) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (op.n >= kMost || op.segments >= kMost)
    return Error{Errc::unsupported, 0, "2^32 - 1 keys or segments"};
  if (op.n == 0) return {};
  return with_countable(op.dtype, [&]<class K>(K) {
    return op.order == Order::ascending ? sort_segments<K, false>(op, call)
                                        : sort_segments<K, true>(op, call);
  });
}

Result<void> Primitives::run(const primitives::Merge& op, const Call& call) {
  return with_countable(op.dtype, [&]<class T>(T) {
    const kernels::KeyOrder order{std::is_floating_point_v<T>, std::is_signed_v<T>,
                                  op.order == Order::descending};
    return with_word(op.dtype, [&]<class K>(K) {
      return with_value(op.value_bytes, [&]<class V>(V) -> Result<void> {
        const kernels::Pairs<K, V> a{static_cast<std::uint64_t>(op.n_a), call.at<const K>(op.a),
                                     call.at<const V>(op.values_a)};
        const kernels::Pairs<K, V> b{static_cast<std::uint64_t>(op.n_b), call.at<const K>(op.b),
                                     call.at<const V>(op.values_b)};
        TROUPE_CUDA_TRY(kernels::merge(services_.launch(call.queue()), order, a, b,
                                       call.at<K>(op.merged), call.at<V>(op.merged_values)));
        return {};
      });
    });
  });
}

Result<void> Primitives::warm_up_sorts(DType dtype, std::int64_t n,
                                       const std::array<Operand, 4>& ranges, const Call& call) {
  const auto& [a, b, c, d] = ranges;
  for (const auto order : {Order::ascending, Order::descending}) {
    for (const std::uint32_t value_bytes : {0, 4, 8}) {
      TROUPE_CUDA_PROPAGATE(run(primitives::Sort{dtype, order, value_bytes, n, a, b, c, d}, call));
      TROUPE_CUDA_PROPAGATE(
          run(primitives::SegmentedSort{dtype, order, value_bytes, n, 1, a, b, a, c, d}, call));
      TROUPE_CUDA_PROPAGATE(
          run(primitives::Merge{dtype, order, value_bytes, n / 2, n / 2, a, a, b, b, c, d}, call));
    }
  }
  return {};
}

}  // namespace troupe::host::cuda
