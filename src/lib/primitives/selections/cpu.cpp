#include <algorithm>
#include <numeric>
#include <type_traits>

#include "lib/primitives/common/combine.hpp"
#include "lib/primitives/cpu.hpp"

namespace troupe::host::cpu {

Result<void> run(const primitives::SelectNonzero& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call,
        [n = op.n, capacity = op.capacity, x = call.at<const T>(op.x),
         indices = call.at<std::int64_t>(op.indices), count = call.at<std::int64_t>(op.count)] {
          std::int64_t found = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            if (number(x[i]) == 0) continue;
            if (found < capacity) indices[found] = i;
            ++found;
          }
          if (found < capacity) std::fill_n(indices + found, capacity - found, std::int64_t{-1});
          *count = found;
        });
  });
}

Result<void> run(const primitives::SelectFlagged& op, const Call& call, Primitives& library) {
  return with_word(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [n = op.n, capacity = op.capacity, x = call.at<const T>(op.x),
               flags = call.at<const std::uint8_t>(op.flags), selected = call.at<T>(op.selected),
               count = call.at<std::int64_t>(op.count)] {
          std::int64_t found = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            if (flags[i] == 0) continue;
            if (found < capacity) selected[found] = x[i];
            ++found;
          }
          *count = found;
        });
  });
}

Result<void> run(const primitives::PartitionFlagged& op, const Call& call, Primitives& library) {
  return with_word(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [n = op.n, x = call.at<const T>(op.x), flags = call.at<const std::uint8_t>(op.flags),
               y = call.at<T>(op.y), count = call.at<std::int64_t>(op.count)] {
          std::int64_t found = 0, behind = n;
          for (std::int64_t i = 0; i < n; ++i) y[flags[i] != 0 ? found++ : --behind] = x[i];
          *count = found;
        });
  });
}

Result<void> run(const primitives::Unique& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [n = op.n, capacity = op.capacity, x = call.at<const T>(op.x),
               selected = call.at<T>(op.selected), count = call.at<std::int64_t>(op.count)] {
          std::int64_t found = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            if (i > 0 && equal(x[i - 1], x[i])) continue;
            if (found < capacity) selected[found] = x[i];
            ++found;
          }
          *count = found;
        });
  });
}

namespace {

/// Calls found(run, begin, end) for each run of equal elements; how many there are.
template <class T, class Found>
std::int64_t find_runs(std::int64_t n, const T* x, Found found) {
  std::int64_t runs = 0;
  for (std::int64_t begin = 0, end = 0; begin < n; begin = end, ++runs) {
    for (end = begin + 1; end < n && equal(x[end - 1], x[end]);) ++end;
    found(runs, begin, end);
  }
  return runs;
}

}  // namespace

Result<void> run(const primitives::ReduceByKey& op, const Call& call, Primitives& library) {
  return with_countable(op.dtype, [&]<class K>(K) {
    return with_integer(op.value_dtype, [&]<class V>(V) {
      return library.services.submit(
          call,
          [n = op.n, capacity = op.capacity, keys = call.at<const K>(op.keys),
           values = call.at<const Summand<V>>(op.values),
           combine = Combine<Summand<V>>{op.reduction, std::is_signed_v<V>},
           unique_keys = call.at<K>(op.unique_keys), results = call.at<Summand<V>>(op.results),
           count = call.at<std::int64_t>(op.count)] {
            *count =
                find_runs(n, keys, [=](std::int64_t run, std::int64_t begin, std::int64_t end) {
                  if (run >= capacity) return;
                  unique_keys[run] = keys[end - 1];
                  results[run] =
                      std::accumulate(values + begin + 1, values + end, values[begin], combine);
                });
          });
    });
  });
}

Result<void> run(const primitives::RunLengthEncode& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [n = op.n, capacity = op.capacity, x = call.at<const T>(op.x),
               values = call.at<T>(op.values), lengths = call.at<std::int64_t>(op.lengths),
               count = call.at<std::int64_t>(op.count)] {
          *count = find_runs(n, x, [=](std::int64_t run, std::int64_t begin, std::int64_t end) {
            if (run >= capacity) return;
            values[run] = x[end - 1];
            lengths[run] = end - begin;
          });
        });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
