#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <numeric>

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
  const int me = c.rank();
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(from_double<T>(contribution(me, i, op)));
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
  const int size = c.size(), me = c.rank();
  constexpr bool kInteger = std::is_integral_v<T>;
  for (std::size_t k = 0; k < collective::kReduceOpCount; ++k) {
    const auto op = static_cast<ReduceOp>(k);
    if (op == ReduceOp::premul_sum) continue;  // see scaled_sums()
    const auto name = std::string(to_string(op)) + " x " + std::to_string(count);
    const auto expected = [&](std::int64_t i) { return reduced(size, i, op, kInteger); };
    const auto source = source_of<T>(c, count, op), destination = c.device().alloc<T>(count);
    c.ranks().all_reduce(source, destination, op);
    expect_values(c, destination, "all_reduce " + name, expected);
    expect_values(c, source, "the source of all_reduce " + name,
                  [&](std::int64_t i) { return contribution(me, i, op); });
    c.ranks().all_reduce(source, op);
    expect_values(c, source, "all_reduce in place " + name, expected);
    for (int root = 0; root < size; ++root) {
      const auto fresh = source_of<T>(c, count, op);
      const auto at_root = root == me ? c.device().alloc<T>(count) : GpuRef<T>();
      c.ranks().reduce(fresh, at_root, op, Rank(root)).get();
      if (root == me) expect_values(c, at_root, "reduce " + name, expected);
    }
    const auto wide = source_of<T>(c, count * size, op);
    c.ranks().reduce_scatter(wide, destination, op);
    expect_values(c, destination, "reduce_scatter " + name,
                  [&](std::int64_t i) { return expected(me * count + i); });
  }
}

/// Sums of what each rank has times a factor of its own, a value or an element of device memory.
template <class T>
void scaled_sums(Context& c, std::int64_t count) {
  const int size = c.size(), me = c.rank();
  const auto factor = [](int rank) { return static_cast<double>(1 + rank % 2); };
  const auto expected = [&](std::int64_t i) {
    double sum = 0;
    for (int rank = 0; rank < size; ++rank)
      sum += factor(rank) * contribution(rank, i, ReduceOp::sum);
    return sum;
  };
  const auto source = source_of<T>(c, count, ReduceOp::sum),
             destination = c.device().alloc<T>(count);
  const auto on_device = c.device().alloc<T>(2);
  c.device().fill(on_device, from_double<T>(factor(me)));
  const auto name = " x " + std::to_string(count);
  c.ranks().all_reduce_scaled(from_double<T>(factor(me)), source, destination);
  expect_values(c, destination, "all_reduce_scaled" + name, expected);
  c.ranks().all_reduce_scaled(on_device.slice(1, 1), source, source);
  expect_values(c, source, "all_reduce_scaled in place" + name, expected);
  const auto fresh = source_of<T>(c, count, ReduceOp::sum);
  c.ranks().reduce_scaled(on_device, fresh, destination, Rank(size - 1)).get();
  if (me == size - 1) expect_values(c, destination, "reduce_scaled" + name, expected);
  const auto wide = source_of<T>(c, count * size, ReduceOp::sum);
  c.ranks().reduce_scatter_scaled(from_double<T>(factor(me)), wide, destination);
  expect_values(c, destination, "reduce_scatter_scaled" + name,
                [&](std::int64_t i) { return expected(me * count + i); });
}

/// One rank alone: its numbers times the factor, rounded once to the nearest; beyond the range f8
/// saturates, f16 and bf16 become infinite, and integers wrap around.
void scaled_alone(Context& c) {
  if (c.size() != 1) return;
  const auto holds = [&]<class T>(const T& factor, const std::vector<T>& values,
                                  const std::vector<T>& expected) {
    const auto count = std::ssize(values);
    const auto source = c.device().alloc<T>(count), destination = c.device().alloc<T>(count),
               on_device = c.device().alloc<T>(1);
    c.device().fill(on_device, factor);
    const auto check = [&](const GpuRef<T>& result, const std::string& what) {
      const auto got = c.device().download(result);
      for (std::size_t i = 0; i < got.size(); ++i)
        c.expect(same(got[i], expected[i]), what + " alone of " +
                                                std::string(to_string(dtype_of<T>)) + ": element " +
                                                std::to_string(i));
    };
    c.device().upload<T>(values, source).get();
    c.ranks().reduce_scaled(factor, source, destination, Rank(0)).get();
    check(destination, "reduce_scaled");
    c.ranks().reduce_scatter_scaled(on_device, source, destination).get();
    check(destination, "reduce_scatter_scaled");
    c.ranks().all_reduce_scaled(on_device, source, source).get();
    check(source, "all_reduce_scaled in place");
  };
  holds(Float8E4M3{0x39}, {{0x39}, {0x7e}}, {{0x3a}, {0x7e}});  // 1.125, 448
  holds(Float8E5M2{0x3d}, {{0x3d}, {0x7b}}, {{0x3e}, {0x7b}});  // 1.25, 57344
  holds(Half{0x3c01}, {{0x3c01}, {0x7bff}}, {{0x3c02}, {0x7c00}});
  holds(BFloat16{0x3f81}, {{0x3f81}, {0x7f7f}}, {{0x3f82}, {0x7f80}});
  holds(std::int8_t{3}, {100, -100}, {44, -44});
  holds(std::uint64_t{3}, {~0ull, 7}, {~0ull - 2, 21});
  holds(1.5f, {2.0f, -3.0f}, {3.0f, -4.5f});
}

/// What has a root and is only moved, in place too.
template <class T>
void rooted_movements(Context& c, std::int64_t count) {
  const int size = c.size(), me = c.rank();
  const auto value = [](int rank, std::int64_t i) { return contribution(rank, i, ReduceOp::sum); };
  const auto name = " x " + std::to_string(count);
  const auto all = [&](std::int64_t i) { return value(static_cast<int>(i / count), i % count); };
  for (int root = 0; root < size; ++root) {
    const bool here = root == me;
    const auto source = source_of<T>(c, count, ReduceOp::sum);
    const auto one = c.device().alloc<T>(count);
    c.ranks().broadcast(here ? source : GpuRef<T>(), one, Rank(root));
    expect_values(c, one, "broadcast out of place" + name,
                  [&](std::int64_t i) { return value(root, i); });
    expect_values(c, source, "the source of a broadcast" + name,
                  [&](std::int64_t i) { return value(me, i); });
    const auto whole = here ? c.device().alloc<T>(count * size) : GpuRef<T>();
    c.ranks().gather(source, whole, Rank(root)).get();
    if (here) expect_values(c, whole, "gather" + name, all);
    c.ranks().scatter(whole, one, Rank(root)).get();
    expect_values(c, one, "scatter" + name, [&](std::int64_t i) { return value(me, i); });
    if (here) {
      const auto part = whole.slice(me * count, count);
      c.ranks().gather(part, whole, Rank(root));
      expect_values(c, whole, "gather in place" + name, all);
      c.ranks().scatter(whole, part, Rank(root));
      expect_values(c, whole, "scatter in place" + name, all);
    } else {
      c.ranks().gather(source, whole, Rank(root));
      c.ranks().scatter(whole, one, Rank(root));
      expect_values(c, one, "scatter" + name, [&](std::int64_t i) { return value(me, i); });
    }
  }
  // Parts of different lengths: rank r gives rank p as many elements as r + 2 p.
  const auto length = [](int from, int to) { return std::int64_t{from} + 2 * to; };
  std::vector<std::int64_t> sent, received;
  for (int peer = 0; peer < size; ++peer) {
    sent.push_back(length(me, peer));
    received.push_back(length(peer, me));
  }
  const auto sum = [](const std::vector<std::int64_t>& list) {
    return std::accumulate(list.begin(), list.end(), std::int64_t{0});
  };
  if (sum(sent) == 0 || sum(received) == 0) return;  // of one rank
  const auto out = source_of<T>(c, sum(sent), ReduceOp::sum),
             in = c.device().alloc<T>(sum(received));
  c.ranks().all_to_all<T>(out, sent, in, received);
  std::vector<double> expected;
  for (int peer = 0; peer < size; ++peer) {
    std::int64_t first = 0;
    for (int before = 0; before < me; ++before) first += length(peer, before);
    for (std::int64_t i = 0; i < length(peer, me); ++i) expected.push_back(value(peer, first + i));
  }
  expect_values(c, in, "all_to_all with counts",
                [&](std::int64_t i) { return expected[static_cast<std::size_t>(i)]; });
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
    c.expect_equal(value, me, "a token that went round is another");
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
    c.expect_equal(value, expected, "a stream of collectives went wrong");
}

void mismatches(Context& c) {
  const auto a = c.device().alloc<float>(8 * c.size() + 1), b = c.device().alloc<float>(8);
  c.expect_equal(c.ranks().all_gather(b, a).wait().code(), Errc::invalid,
                 "all_gather of unequal lengths");
  c.expect_equal(c.ranks().reduce_scatter(a, b, ReduceOp::sum).wait().code(), Errc::invalid,
                 "reduce_scatter of unequal lengths");
  c.expect_equal(c.ranks().all_to_all(a, b).wait().code(), Errc::invalid,
                 "all_to_all of unequal lengths");
  const std::vector<std::int64_t> few(static_cast<std::size_t>(c.size()), 1);
  c.expect_equal(c.ranks().all_to_all<float>(a, few, b, few).wait().code(), Errc::invalid,
                 "all_to_all with counts that do not fit");
  if (c.size() == 1) {
    c.expect_equal(c.ranks().gather(b, a, Rank(0)).wait().code(), Errc::invalid,
                   "gather of unequal lengths");
    c.expect_equal(c.ranks().scatter(a, b, Rank(0)).wait().code(), Errc::invalid,
                   "scatter of unequal lengths");
  }
  (void)c.device().take_error();
}

/// Several collectives as one operation: the same numbers, one end, and one error.
void bundles(Context& c) {
  const int size = c.size(), me = c.rank();
  const std::int64_t n = 500;
  const auto a = source_of<float>(c, n, ReduceOp::sum), b = source_of<float>(c, n, ReduceOp::sum),
             sum = c.device().alloc<float>(n), sent = source_of<float>(c, n, ReduceOp::sum),
             all = c.device().alloc<float>(n * size),
             wide = source_of<float>(c, n * size, ReduceOp::sum), part = c.device().alloc<float>(n),
             dealt = c.device().alloc<float>(n * size);
  const auto value = [](int rank, std::int64_t i) { return contribution(rank, i, ReduceOp::sum); };
  auto bundle = c.ranks().bundle();
  const auto first = bundle.all_reduce(a, ReduceOp::max);
  bundle.all_reduce(b, sum, ReduceOp::sum);
  bundle.all_reduce_scaled(2.0f, b, dealt.slice(0, n));
  bundle.broadcast(sent, Rank(size - 1));
  bundle.all_gather(b, all);
  bundle.reduce_scatter(wide, part, ReduceOp::sum);
  c.expect(!first.ready(), "a collective of a bundle ends before it is submitted");
  bundle.submit().get();
  c.expect(first.wait().ok(), "a collective of a bundle: its own future");
  expect_values(c, a, "bundled all_reduce in place",
                [&](std::int64_t i) { return reduced(size, i, ReduceOp::max, false); });
  expect_values(c, sum, "bundled all_reduce",
                [&](std::int64_t i) { return reduced(size, i, ReduceOp::sum, false); });
  expect_values(c, dealt.slice(0, n), "bundled all_reduce_scaled",
                [&](std::int64_t i) { return 2 * reduced(size, i, ReduceOp::sum, false); });
  expect_values(c, sent, "bundled broadcast", [&](std::int64_t i) { return value(size - 1, i); });
  expect_values(c, all, "bundled all_gather",
                [&](std::int64_t i) { return value(static_cast<int>(i / n), i % n); });
  expect_values(c, part, "bundled reduce_scatter",
                [&](std::int64_t i) { return reduced(size, me * n + i, ReduceOp::sum, false); });
  // Movements that consist of messages, and a bundle that is used again.
  const auto gathered = c.device().alloc<float>(n * size);
  bundle.all_to_all(wide, dealt);
  bundle.gather(b, gathered, Rank(0));
  bundle.submit().get();
  expect_values(c, dealt, "bundled all_to_all",
                [&](std::int64_t i) { return value(static_cast<int>(i / n), me * n + i % n); });
  if (me == 0)
    expect_values(c, gathered, "bundled gather",
                  [&](std::int64_t i) { return value(static_cast<int>(i / n), i % n); });
  // Wrong ones change nothing.
  c.expect_equal(bundle.submit().wait().code(), Errc::invalid, "an empty bundle");
  const auto refused = bundle.all_reduce(a, part.slice(0, 1), ReduceOp::sum);
  bundle.all_reduce(b, ReduceOp::sum);
  c.expect(bundle.submit().wait().code() == Errc::invalid && refused.wait().code() == Errc::invalid,
           "a bundle with a call that is refused");
  bundle.all_reduce(b, sum, ReduceOp::sum);
  bundle.broadcast(sum, Rank(0));
  c.expect_equal(bundle.submit().wait().code(), Errc::invalid,
                 "a bundle that reads what it writes");
  c.expect_equal(bundle.send(b, Rank(0)).wait().code(), Errc::unsupported, "a message in a bundle");
  (void)c.device().take_error();
  // Ranks of one host, and of one for NCCL, compare what they call.
  if (c.world().local_size() != c.world().size() || std::getenv("NCCL_HOSTID") != nullptr) return;
  bundle.all_reduce(c.rank() == 0 ? b.slice(0, 4) : b, ReduceOp::sum);
  const auto different = bundle.submit();
  c.require(different.wait_for(kDeadline), "bundles that differ do not resolve");
  c.expect(size == 1 || different.wait().code() == Errc::invalid, "bundles that differ");
  (void)c.device().take_error();
}

template <class... T>
void for_types(Context& c, void (*)(T...), bool reducible) {
  for (const std::int64_t count : {1, 251}) {
    if (reducible) (..., reductions<T>(c, count));
    if (reducible) (..., scaled_sums<T>(c, count));
    (..., movements<T>(c, count));
    (..., rooted_movements<T>(c, count));
  }
}

/// Values of the host, over MPI: also bool, whose std::vector is no array.
void host_values(Context& c) {
  const auto odd = c.ranks().gather_values(c.rank() % 2 == 1);
  const auto squares = c.ranks().gather_values(std::int64_t{c.rank()} * c.rank());
  c.require(std::ssize(odd) == c.size() && std::ssize(squares) == c.size(), "values are missing");
  for (int rank = 0; rank < c.size(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    c.expect_equal(odd[i], (rank % 2 == 1), "gather_values of bool");
    c.expect_equal(squares[i], std::int64_t{rank} * rank, "gather_values of std::int64_t");
  }
}

}  // namespace

TROUPE_MPI_CASE(collectives) {
  using Reducible =
      void (*)(Half, BFloat16, float, double, Float8E4M3, Float8E5M2, std::int8_t, std::uint8_t,
               std::int32_t, std::uint32_t, std::int64_t, std::uint64_t);
  using Complex = void (*)(std::complex<float>, std::complex<double>);
  for_types(c, Reducible{}, true);
  for_types(c, Complex{}, false);
  scaled_alone(c);
  collective_limits(c);
  // GPUs take other ways with long arrays; the CPU engine takes the same with all of several
  // pieces.
  const bool gpus = c.device().info().engine == "cuda";
  reductions<float>(c, gpus ? 1'000'003 : 300'007);
  movements<double>(c, gpus ? 500'000 : 150'000);
  ring(c);
  stream(c);
  bundles(c);
  mismatches(c);
  host_values(c);
}

/// The same in groups that work side by side, in one of all ranks in another order, and in one of
/// one rank.
TROUPE_MPI_CASE(group_collectives) {
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
