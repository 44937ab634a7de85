#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/core/narrow_float.hpp"
#include "mpi_tests.hpp"

// Reductions over ranks of numbers that are not finite or very large, as docs/libraries.md has
// them.

namespace troupe::test {
namespace {

template <class T>
T stored(float value) {
  if constexpr (std::is_floating_point_v<T>)
    return T{value};
  else
    return narrow<T>(value);
}
template <class T>
bool is_not_a_number(const T& x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(x);
  else
    return std::isnan(widen(x));
}
template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// NaN is the largest and the smallest of numbers, whichever rank has it.
template <class T>
void reduce_nan(Context& c, ReduceOp op) {
  const int size = c.size(), me = c.rank();
  const std::int64_t length = 100'000 / size;  // several segments for each rank
  std::vector<T> values(static_cast<std::size_t>(length * size), stored<T>(float(me + 1)));
  for (std::int64_t i = me; i < std::ssize(values); i += 3 * size)
    values[static_cast<std::size_t>(i)] = stored<T>(std::numeric_limits<float>::quiet_NaN());
  const auto x = c.device().alloc<T>(length * size), y = c.device().alloc<T>(length * size),
             part = c.device().alloc<T>(length);
  c.device().upload<T>(values, x).get();
  const auto check = [&](const GpuRef<T>& result, std::int64_t first, const std::string& what) {
    const auto got = c.device().download(result);
    const auto expected = stored<T>(op == ReduceOp::min ? 1.0f : float(size));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const bool spoilt = (first + static_cast<std::int64_t>(i)) % (3 * size) < size;
      if (spoilt ? is_not_a_number(got[i]) : same_bits(got[i], expected)) continue;
      return c.expect(false, what + " of NaN of " + std::string(to_string(dtype_of<T>)) +
                                 ": element " + std::to_string(i));
    }
  };
  c.ranks().all_reduce(x, y, op);
  check(y, 0, "all_reduce");
  c.ranks().reduce_scatter(x, part, op);
  check(part, me * length, "reduce_scatter");
  c.ranks().reduce(x, me == size - 1 ? y : GpuRef<T>(), op, Rank(size - 1)).get();
  if (me == size - 1) check(y, 0, "reduce");
}

/// A mean is finite where the exact one is, though the sum is not.
template <class T>
void average_largest(Context& c, T most, T least) {
  const int me = c.rank();
  const auto name = " of " + std::string(to_string(dtype_of<T>));
  const auto x = c.device().alloc<T>(3), y = c.device().alloc<T>(3);
  c.device().upload<T>(std::vector<T>{most, least, me % 2 == 0 ? most : least}, x).get();
  c.ranks().all_reduce(x, y, ReduceOp::avg);
  const auto means = c.device().download(y);
  c.expect(same_bits(means[0], most) && same_bits(means[1], least),
           "the mean of the largest numbers" + name);
  c.expect(!is_not_a_number(means[2]), "the mean of the largest numbers of both signs" + name);
  c.ranks().reduce(x, me == 0 ? y : GpuRef<T>(), ReduceOp::avg, Rank(0)).get();
  if (me == 0) c.expect(same_bits(c.device().download(y)[0], most), "reduce to the mean" + name);
}

template <class T>
void limits_of(Context& c, T most, T least) {
  reduce_nan<T>(c, ReduceOp::min);
  reduce_nan<T>(c, ReduceOp::max);
  average_largest(c, most, least);
}

}  // namespace

void collective_limits(Context& c) {
  if (c.device().info().engine != "cpu") return;  // NCCL promises none of this
  limits_of(c, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest());
  limits_of(c, std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest());
  limits_of(c, Half{0x7bff}, Half{0xfbff});
  limits_of(c, BFloat16{0x7f7f}, BFloat16{0xff7f});
  limits_of(c, Float8E5M2{0x7b}, Float8E5M2{0xfb});
}

}  // namespace troupe::test
