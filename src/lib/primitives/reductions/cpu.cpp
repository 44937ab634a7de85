#include <algorithm>
#include <concepts>
#include <functional>
#include <numeric>
#include <type_traits>

#include "common/core/extremes.hpp"
#include "lib/primitives/cpu.hpp"

namespace troupe::host::cpu {
namespace {

using primitives::Extreme;
using primitives::ReduceOp;

template <class T>
T reduce_range(ReduceOp reduction, const T* begin, const T* end) {
  using Number = NumberOf<T>;
  using Wide = typename std::conditional_t<std::floating_point<Number>, std::type_identity<double>,
                                           std::type_identity<Summand<Number>>>::type;
  const auto fold = [=](auto combine) {
    return rounded<T>(std::accumulate(
        begin, end, static_cast<Wide>(neutral<Number>(reduction)), [combine](Wide a, T b) {
          return static_cast<Wide>(combine(a, static_cast<Wide>(number(b))));
        }));
  };
  switch (reduction) {
    case ReduceOp::sum: return fold(std::plus<>{});
    case ReduceOp::prod: return fold(std::multiplies<>{});
    case ReduceOp::min:
      return std::accumulate(begin, end, neutral<T>(ReduceOp::min), [](T a, T b) {
        return number(b) < number(a) || is_nan(number(b)) ? b : a;
      });
    case ReduceOp::max:
      return std::accumulate(begin, end, neutral<T>(ReduceOp::max), [](T a, T b) {
        return number(a) < number(b) || is_nan(number(b)) ? b : a;
      });
    default: break;
  }
  if constexpr (std::integral<T>) {
    if (reduction == ReduceOp::bit_and) return fold(std::bit_and<>{});
    if (reduction == ReduceOp::bit_or) return fold(std::bit_or<>{});
    return fold(std::bit_xor<>{});
  } else {
    return T{};  // the check has refused it
  }
}

/// Where the first of the smallest or largest elements stands; n > 0.
template <class T>
std::int64_t place_of(Extreme extreme, std::int64_t n, const T* x) {
  if constexpr (!std::integral<T>) {
    const auto* const nan =
        std::find_if(x, x + n, [](T element) { return is_nan(number(element)); });
    if (nan != x + n) return nan - x;
  }
  const auto less = [](T a, T b) { return number(a) < number(b); };
  return (extreme == Extreme::min ? std::min_element(x, x + n, less)
                                  : std::max_element(x, x + n, less)) -
         x;
}

}  // namespace

Result<void> run(const primitives::Reduce& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [n = op.n, reduction = op.reduction, x = call.at<const T>(op.x),
               result = call.at<T>(op.result)] { *result = reduce_range(reduction, x, x + n); });
  });
}

Result<void> run(const primitives::ArgReduce& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [n = op.n, extreme = op.extreme,
                                          x = call.at<const T>(op.x), value = call.at<T>(op.value),
                                          index = call.at<std::int64_t>(op.index)] {
      *index = n == 0 ? -1 : place_of(extreme, n, x);
      if (n != 0) {
        *value = x[*index];
      } else {
        *value = extreme == Extreme::min ? neutral<T>(ReduceOp::min) : neutral<T>(ReduceOp::max);
      }
    });
  });
}

Result<void> run(const primitives::SegmentedReduce& op, const Call& call, Primitives& library) {
  return with_countable(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call,
        [n = op.n, segments = op.segments, reduction = op.reduction, x = call.at<const T>(op.x),
         offsets = call.at<const std::int64_t>(op.offsets), result = call.at<T>(op.result)] {
          for (std::int64_t s = 0; s < segments; ++s) {
            const auto begin = std::clamp<std::int64_t>(offsets[s], 0, n);
            const auto end = std::max(begin, std::clamp<std::int64_t>(offsets[s + 1], 0, n));
            result[s] = reduce_range(reduction, x + begin, x + end);
          }
        });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
