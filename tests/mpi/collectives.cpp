#include <cmath>
#include <complex>
#include <limits>

#include "mpi_tests.hpp"

// Every collective, dtype and reduction against the answer computed here. Values are such that
// every dtype holds them, their partial sums and products exactly.

namespace troupe::test {
namespace {

/// A small non-negative number as a float of these widths (the value must be exact in them); and
/// back.
template <int kExponent, int kMantissa>
std::uint32_t narrow(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  const auto mantissa = static_cast<std::uint32_t>((2 * fraction - 1) * (1 << kMantissa));
  const auto biased = static_cast<std::uint32_t>(exponent - 1 + (1 << (kExponent - 1)) - 1);
  return biased << kMantissa | mantissa;
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return {static_cast<std::uint16_t>(narrow<5, 10>(value))};
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return {static_cast<std::uint16_t>(narrow<8, 7>(value))};
  } else if constexpr (std::is_same_v<T, Float8E4M3>) {
    return {static_cast<std::uint8_t>(narrow<4, 3>(value))};
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    return {static_cast<std::uint8_t>(narrow<5, 2>(value))};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<typename T::value_type>(value));
  }
}

template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Element `i` of rank `rank`'s source.
double contribution(int rank, std::int64_t i, ReduceOp op) {
  const auto mixed = static_cast<std::int64_t>(rank) + i;
  return op == ReduceOp::prod ? static_cast<double>(1 + mixed % 2) : static_cast<double>(mixed % 3);
}

double reduced(int size, std::int64_t i, ReduceOp op, bool integer) {
  double value = contribution(0, i, op);
  for (int rank = 1; rank < size; ++rank) {
    const auto next = contribution(rank, i, op);
    switch (op) {
      case ReduceOp::prod: value *= next; break;
      case ReduceOp::min: value = std::min(value, next); break;
      case ReduceOp::max: value = std::max(value, next); break;
      default: value += next; break;
    }
  }
  if (op == ReduceOp::avg) value = integer ? std::trunc(value / size) : value / size;
  return value;
}

template <class T>
GpuRef<T> source_of(Context& c, std::int64_t count, ReduceOp op) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(from_double<T>(contribution(c.rank(), i, op)));
  auto ref = c.device().alloc<T>(count);
  c.device().upload<T>(values, ref).get();
  return ref;
}

template <class T>
void expect_values(Context& c, const GpuRef<T>& ref, const std::string& what,
                   const std::function<double(std::int64_t)>& expected) {
  const auto values = c.device().download(ref);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (same(values[i], from_double<T>(expected(static_cast<std::int64_t>(i))))) continue;
    return c.expect(false, what + " of " + std::string(to_string(dtype_of<T>)) + ": element " +
                               std::to_string(i));
  }
}

template <class T>
void reductions(Context& c, std::int64_t count) {
  const int size = c.size();
  constexpr bool kInteger = std::is_integral_v<T>;
  for (std::size_t k = 0; k < collective::kReduceOpCount; ++k) {
    const auto op = static_cast<ReduceOp>(k);
    const auto name = std::string(to_string(op)) + " x " + std::to_string(count);
    const auto expected = [&](std::int64_t i) { return reduced(size, i, op, kInteger); };
    const auto source = source_of<T>(c, count, op), destination = c.device().alloc<T>(count);
    c.ranks().all_reduce(source, destination, op);
    expect_values(c, destination, "all_reduce " + name, expected);
    expect_values(c, source, "the source of all_reduce " + name,
                  [&](std::int64_t i) { return contribution(c.rank(), i, op); });
    c.ranks().all_reduce(source, op);
    expect_values(c, source, "all_reduce in place " + name, expected);
    for (int root = 0; root < size; ++root) {
      const auto fresh = source_of<T>(c, count, op);
      const auto at_root = root == c.rank() ? c.device().alloc<T>(count) : GpuRef<T>();
      c.ranks().reduce(fresh, at_root, op, Rank(root)).get();
      if (root == c.rank()) expect_values(c, at_root, "reduce " + name, expected);
    }
    const auto wide = source_of<T>(c, count * size, op);
    c.ranks().reduce_scatter(wide, destination, op);
    expect_values(c, destination, "reduce_scatter " + name,
                  [&](std::int64_t i) { return expected(c.rank() * count + i); });
  }
}

template <class T>
void movements(Context& c, std::int64_t count) {
  const int size = c.size(), me = c.rank();
  const auto value = [](int rank, std::int64_t i) { return contribution(rank, i, ReduceOp::sum); };
  const auto source = source_of<T>(c, count, ReduceOp::sum);
  const auto gathered = c.device().alloc<T>(count * size);
  const auto name = " x " + std::to_string(count);
  c.ranks().all_gather(source, gathered);
  expect_values(c, gathered, "all_gather" + name,
                [&](std::int64_t i) { return value(static_cast<int>(i / count), i % count); });
  for (int root = 0; root < size; ++root) {
    const auto data = source_of<T>(c, count, ReduceOp::sum);
    c.ranks().broadcast(data, Rank(root));
    expect_values(c, data, "broadcast" + name, [&](std::int64_t i) { return value(root, i); });
  }
  const auto wide = source_of<T>(c, count * size, ReduceOp::sum);
  const auto dealt = c.device().alloc<T>(count * size);
  c.ranks().all_to_all(wide, dealt);
  expect_values(c, dealt, "all_to_all" + name, [&](std::int64_t i) {
    return value(static_cast<int>(i / count), me * count + i % count);
  });
  // Everybody with everybody, itself too, two messages to each, of different lengths.
  std::vector<Transfer<T>> sends, receives;
  const auto arrived = c.device().alloc<T>(2 * count * size);
  c.device().fill(arrived, from_double<T>(0)).get();
  for (int peer = 0; peer < size; ++peer) {
    const auto second = std::max<std::int64_t>(1, count / 2);
    sends.push_back({wide.slice(peer * count, count), Rank(peer)});
    sends.push_back({wide.slice(peer * count, second), Rank(peer)});
    receives.push_back({arrived.slice(2 * peer * count, count), Rank(peer)});
    receives.push_back({arrived.slice((2 * peer + 1) * count, second), Rank(peer)});
  }
  c.ranks().exchange<T>(sends, receives);
  expect_values(c, arrived, "exchange" + name, [&](std::int64_t i) {
    const auto at = i % (2 * count);
    if (at >= count + std::max<std::int64_t>(1, count / 2)) return 0.0;
    return value(static_cast<int>(i / (2 * count)), me * count + at % count);
  });
}

/// A ring of single sends and receives: each rank passes on what it got, size times round.
void ring(Context& c) {
  const int size = c.size(), me = c.rank();
  if (size < 2) return;
  const Rank right((me + 1) % size), left((me + size - 1) % size);
  const auto token = c.device().alloc<std::int64_t>(1000),
             next = c.device().alloc<std::int64_t>(1000);
  c.device().fill<std::int64_t>(token, me);
  for (int hop = 0; hop < size; ++hop) {
    if (me == 0) {
      c.ranks().send(token, right);
      c.ranks().receive(next, left);
    } else {
      c.ranks().receive(next, left);
      c.ranks().send(token, right);
    }
    c.device().copy(next, token);
  }
  for (const auto value : c.device().download(token))
    c.expect(value == me, "a token that went round is another");
}

/// Many collectives in a row without waiting: their order is the program's.
void stream(Context& c) {
  const auto x = c.device().alloc<double>(16), y = c.device().alloc<double>(16);
  c.device().fill(x, 1.0);
  double expected = 1;
  for (int i = 0; i < 200; ++i) {
    c.ranks().all_reduce(x, y, ReduceOp::sum);             // y = size * x
    c.device().vector().axpby(1.0 / c.size(), y, 0.0, x);  // x = x
    c.device().vector().axpby(0.0, y, 1.0, x);
    if (i % 50 == 0) c.device().blas().scal(2.0, x), expected *= 2;
  }
  for (const double value : c.device().download(x))
    c.expect(value == expected, "a stream of collectives went wrong");
}

void mismatches(Context& c) {
  const auto a = c.device().alloc<float>(8 * c.size() + 1), b = c.device().alloc<float>(8);
  c.expect(c.ranks().all_gather(b, a).wait().code() == Errc::invalid,
           "all_gather of unequal lengths");
  c.expect(c.ranks().reduce_scatter(a, b, ReduceOp::sum).wait().code() == Errc::invalid,
           "reduce_scatter of unequal lengths");
  c.expect(c.ranks().all_to_all(a, b).wait().code() == Errc::invalid,
           "all_to_all of unequal lengths");
  (void)c.device().take_error();
}

template <class... T>
void for_types(Context& c, void (*)(T...), bool reducible) {
  for (const std::int64_t count : {1, 1003}) {
    if (reducible) (..., reductions<T>(c, count));
    (..., movements<T>(c, count));
  }
}

/// Values of the host, over MPI: also bool, whose std::vector is no array.
void host_values(Context& c) {
  const auto odd = c.ranks().gather_values(c.rank() % 2 == 1);
  const auto squares = c.ranks().gather_values(std::int64_t{c.rank()} * c.rank());
  c.require(std::ssize(odd) == c.size() && std::ssize(squares) == c.size(), "values are missing");
  for (int rank = 0; rank < c.size(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    c.expect(odd[i] == (rank % 2 == 1), "gather_values of bool");
    c.expect(squares[i] == std::int64_t{rank} * rank, "gather_values of std::int64_t");
  }
}

}  // namespace

void collectives(Context& c) {
  using Reducible =
      void (*)(Half, BFloat16, float, double, Float8E4M3, Float8E5M2, std::int8_t, std::uint8_t,
               std::int32_t, std::uint32_t, std::int64_t, std::uint64_t);
  using Complex = void (*)(std::complex<float>, std::complex<double>);
  for_types(c, Reducible{}, true);
  for_types(c, Complex{}, false);
  reductions<float>(c, 1'000'003);
  movements<double>(c, 500'000);
  ring(c);
  stream(c);
  mismatches(c);
  host_values(c);
}

/// The same in groups that work side by side, in one of all ranks in another order, and in one of
/// one rank.
void group_collectives(Context& c) {
  const int me = c.world().rank();
  auto halves = c.world().split(me % 2), backwards = c.world().split(0, -me),
       alone = c.world().split(me);
  for (auto* group : {&halves, &backwards, &alone}) {
    c.set_ranks(*group);
    collectives(c);
  }
  c.set_ranks(c.world());
}

}  // namespace troupe::test
