#include "lib/primitives/cpu.hpp"

namespace troupe::host::cpu {
namespace {

/// Of x[0, n), the end of the run of equal elements that begins at `begin`.
template <class T>
std::int64_t end_of_run(const T* x, std::int64_t n, std::int64_t begin) {
  auto end = begin + 1;
  while (end < n && equal(x[end - 1], x[end])) ++end;
  return end;
}

}  // namespace

Result<void> run(const primitives::NonTrivialRuns& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call,
        [n = op.n, capacity = op.capacity, x = call.at<const T>(op.x),
         offsets = call.at<std::int64_t>(op.offsets), lengths = call.at<std::int64_t>(op.lengths),
         count = call.at<std::int64_t>(op.count)] {
          std::int64_t found = 0;
          for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
            end = end_of_run(x, n, begin);
            if (end - begin < 2) continue;
            if (found < capacity) {
              offsets[found] = begin;
              lengths[found] = end - begin;
            }
            ++found;
          }
          *count = found;
        });
  });
}

Result<void> run(const primitives::UniqueByKey& op, const Call& call, Primitives& library) {
  const auto with_values = [&]<class K, class V>(K, V) {
    return library.services.submit(
        call,
        [n = op.n, capacity = op.capacity, keys = call.at<const K>(op.keys),
         values = call.at<const V>(op.values), unique_keys = call.at<K>(op.unique_keys),
         first_values = call.at<V>(op.first_values), count = call.at<std::int64_t>(op.count)] {
          std::int64_t found = 0;
          for (std::int64_t begin = 0; begin < n; begin = end_of_run(keys, n, begin), ++found) {
            if (found >= capacity) continue;
            unique_keys[found] = keys[begin];
            first_values[found] = values[begin];
          }
          *count = found;
        });
  };
  return with_ordered(op.dtype, [&]<class K>(K key) {
    return op.value_bytes == 4 ? with_values(key, std::uint32_t{})
                               : with_values(key, std::uint64_t{});
  });
}

Result<void> run(const primitives::PartitionThreeWay& op, const Call& call, Primitives& library) {
  return with_word(op.dtype, [&]<class T>(T) {
    struct Range {
      T* elements;
      std::int64_t capacity, found;

      void add(T element) {
        if (found < capacity) elements[found] = element;
        ++found;
      }
    };
    return library.services.submit(
        call, [n = op.n, x = call.at<const T>(op.x),
               first_flags = call.at<const std::uint8_t>(op.first_flags),
               second_flags = call.at<const std::uint8_t>(op.second_flags),
               ranges = std::array{Range{call.at<T>(op.first), op.first_capacity, 0},
                                   Range{call.at<T>(op.second), op.second_capacity, 0},
                                   Range{call.at<T>(op.rest), op.rest_capacity, 0}},
               counts = call.at<primitives::ThreeWayCounts>(op.counts)] {
          auto [first, second, rest] = ranges;
          for (std::int64_t i = 0; i < n; ++i) {
            auto& range = first_flags[i] != 0 ? first : second_flags[i] != 0 ? second : rest;
            range.add(x[i]);
          }
          *counts = {first.found, second.found};
        });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
