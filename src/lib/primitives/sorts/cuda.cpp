#include "lib/primitives/sorts/kernels.cuh"

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>

#include "lib/primitives/cuda.hpp"

/// Sorts and merges on the cuda engine.
namespace troupe::host::cuda {

using primitives::Order;

namespace {

constexpr std::string_view kSortName = "cub::DeviceRadixSort";

kernels::KeyOrder key_order(DType dtype, Order order) {
  const auto bits = meaning(dtype);
  return {bits.floating, bits.is_signed, order == Order::descending};
}

/// Calls visit(V{}) for the word that values of the size move as.
template <class Visit>
Result<void> with_value(std::uint32_t value_bytes, Visit&& visit) {
  return value_bytes == 8 ? visit(std::uint64_t{}) : visit(std::uint32_t{});
}

}  // namespace

Result<void> run(const primitives::Sort& op, const Call& call, Primitives& library) {
  if (op.n == 0) return {};
  const auto stream = library.services.stream(call.queue());
  const auto end = op.end_bit == 0 ? 8 * size_of(op.dtype) : op.end_bit;
  const kernels::Bits bits{static_cast<int>(op.begin_bit), static_cast<int>(end)};
  const auto order = key_order(op.dtype, op.order);
  return with_word(op.dtype, [&]<class K>(K) {
    const auto* const keys = call.at<const K>(op.keys);
    auto* const sorted_keys = call.at<K>(op.sorted_keys);
    if (op.value_bytes == 0) {
      return library.queue_algorithm(call.queue(), kSortName, [&](kernels::Temporary& temporary) {
        return kernels::sort_keys(temporary, stream, op.n, bits, order, keys, sorted_keys);
      });
    }
    return with_value(op.value_bytes, [&]<class V>(V) {
      return library.queue_algorithm(call.queue(), kSortName, [&](kernels::Temporary& temporary) {
        return kernels::sort_pairs(temporary, stream, op.n, bits, order, keys, sorted_keys,
                                   call.at<const V>(op.values), call.at<V>(op.sorted_values));
      });
    });
  });
}

/// All keys are sorted, and the places where they come from with them. Then these places are sorted
/// by their segments: as that sort is stable, each segment's are in the order of their keys.
template <class K>
Result<void> sort_segments(const primitives::SegmentedSort& op, const Call& call,
                           Primitives& library) {
  using Places = std::uint32_t;
  const auto launch = library.services.launch(call.queue());
  const auto n = static_cast<std::uint64_t>(op.n),
             segments = static_cast<std::uint64_t>(op.segments);
  const kernels::Offsets offsets{call.at<const std::int64_t>(op.offsets), segments};
  const auto* const keys = call.at<const K>(op.keys);
  auto* const sorted_keys = call.at<K>(op.sorted_keys);
  constexpr kernels::Bits kKeyBits{0, 8 * sizeof(K)};
  const kernels::Bits segment_bits{0, static_cast<int>(std::bit_width(segments + 1))};
  Places *from = nullptr, *places = nullptr, *numbers = nullptr, *sorted_numbers = nullptr;
  const auto sort_by_key = [&](kernels::Temporary& temporary) {
    return kernels::sort_pairs(temporary, launch.stream, op.n, kKeyBits,
                               key_order(op.dtype, op.order), keys, sorted_keys,
                               static_cast<const Places*>(from), places);
  };
  const auto sort_by_segment = [&](kernels::Temporary& temporary) {
    return kernels::sort_pairs(temporary, launch.stream, op.n, segment_bits, kernels::KeyOrder{},
                               static_cast<const Places*>(numbers), sorted_numbers,
                               static_cast<const Places*>(places), from);
  };

  (void)cudaGetLastError();  // CUB reports what others left there
  kernels::Temporary by_key, by_segment;
  if (const auto status = sort_by_key(by_key); status != cudaSuccess)
    return failure(status, kSortName);
  if (const auto status = sort_by_segment(by_segment); status != cudaSuccess)
    return failure(status, kSortName);
  constexpr std::uint64_t kAligned = 256;
  const auto range_bytes = (n * sizeof(Places) + kAligned - 1) / kAligned * kAligned;
  auto& own = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(own.memory.reserve(
      library.services, call.queue(),
      Primitives::State::kCountBytes + 4 * range_bytes + std::max(by_key.bytes, by_segment.bytes)));
  auto* next = static_cast<std::byte*>(own.temporary());
  for (auto** const range : {&from, &places, &numbers, &sorted_numbers}) {
    *range = reinterpret_cast<Places*>(next);
    next += range_bytes;
  }
  by_key.memory = by_segment.memory = next;

  TROUPE_CUDA_TRY(kernels::number_places(launch, n, from));
  if (const auto status = sort_by_key(by_key); status != cudaSuccess)
    return failure(status, kSortName);
  TROUPE_CUDA_TRY(kernels::number_segments(launch, n, places, offsets, numbers));
  if (const auto status = sort_by_segment(by_segment); status != cudaSuccess)
    return failure(status, kSortName);
  TROUPE_CUDA_TRY(kernels::take(launch, n, from, offsets, keys, sorted_keys));
  if (op.value_bytes == 0) return {};
  return with_value(op.value_bytes, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::take(launch, n, from, offsets, call.at<const T>(op.values),
                                  call.at<T>(op.sorted_values)));
    return {};
  });
}

Result<void> run(const primitives::SegmentedSort& op, const Call& call, Primitives& library) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (op.n >= kMost || op.segments >= kMost)
    return Error{Errc::unsupported, 0, "2^32 - 1 keys or segments"};
  if (op.n == 0) return {};
  return with_word(op.dtype, [&]<class K>(K) { return sort_segments<K>(op, call, library); });
}

Result<void> run(const primitives::Merge& op, const Call& call, Primitives& library) {
  return with_word(op.dtype, [&]<class K>(K) {
    return with_value(op.value_bytes, [&]<class V>(V) -> Result<void> {
      const kernels::Pairs<K, V> a{static_cast<std::uint64_t>(op.n_a), call.at<const K>(op.a),
                                   call.at<const V>(op.values_a)};
      const kernels::Pairs<K, V> b{static_cast<std::uint64_t>(op.n_b), call.at<const K>(op.b),
                                   call.at<const V>(op.values_b)};
      TROUPE_CUDA_TRY(kernels::merge(library.services.launch(call.queue()),
                                     key_order(op.dtype, op.order), a, b, call.at<K>(op.merged),
                                     call.at<V>(op.merged_values)));
      return {};
    });
  });
}

Result<void> warm_up_sorts(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                           const Call& call, Primitives& library) {
  const auto& [a, b, c, d] = ranges;
  for (const auto order : {Order::ascending, Order::descending}) {
    for (const std::uint32_t value_bytes : {0, 4, 8}) {
      TROUPE_CUDA_PROPAGATE(
          library.carry_out(primitives::Sort{dtype, order, value_bytes, n, a, b, c, d}, call));
      TROUPE_CUDA_PROPAGATE(library.carry_out(
          primitives::SegmentedSort{dtype, order, value_bytes, n, 1, a, b, a, c, d}, call));
      TROUPE_CUDA_PROPAGATE(library.carry_out(
          primitives::Merge{dtype, order, value_bytes, n / 2, n / 2, a, a, b, b, c, d}, call));
    }
  }
  return {};
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
