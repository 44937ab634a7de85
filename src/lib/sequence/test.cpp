#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include <troupe/lib/fft.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/sequence.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/sequence.hpp>

#include "bad_arguments.hpp"

// Recorded sequences do what their calls do one by one, in whatever form a device host runs them:
// each is run often enough to become a graph.

namespace troupe::test {
namespace {

constexpr int kRuns = 12;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Data of several libraries that depend on one another, and overlap in part.
struct Mixture {
  static constexpr std::int64_t kOrder = 64, kLength = kOrder * kOrder;
  GpuRef<double> a = put(random_values<double>(kLength, 1)), b = device().alloc<double>(kLength),
                 c = device().alloc<double>(kLength), sum = put(std::vector<double>(1, 0.0)),
                 factor = put(std::vector<double>(1, 0.5));
  GpuRef<std::complex<double>> spectrum = device().alloc<std::complex<double>>(kLength / 2 + 1);
  GpuRef<std::int64_t> counts = put(std::vector<std::int64_t>(1000, 3)),
                       sums = device().alloc<std::int64_t>(1000);
  CsrMatrix<double, std::int32_t> matrix = tridiagonal();
  std::uint64_t step = 0;

  static CsrMatrix<double, std::int32_t> tridiagonal() {
    std::vector<std::int32_t> begin{0}, column;
    std::vector<double> value;
    for (std::int32_t i = 0; i < kLength; ++i) {
      for (const auto j : {i - 1, i, i + 1}) {
        if (j < 0 || j >= kLength) continue;
        column.push_back(j);
        value.push_back(i == j ? 0.5 : -0.25);
      }
      begin.push_back(static_cast<std::int32_t>(column.size()));
    }
    return {kLength, kLength, put(begin), put(column), put(value)};
  }

  Mixture() {
    device().fill(b, 0.25);
    device().fill(c, 0.0);
  }
  void calls() {
    auto& d = device();
    d.rng().uniform(c, {.seed = 3});
    d.blas().gemm(a, b, c, {.m = kOrder, .n = kOrder, .k = kOrder}, 0.125, 0.5);
    d.sparse().spmv(matrix, c, b, 0.5, 0.25);
    d.vector().multiply(b, c, a);
    fft::on(d).real_to_complex(a, spectrum, {.extents = {kLength}});
    d.blas().dot(a.slice(0, 100), b.slice(50, 100), sum);
    d.blas().axpy(sum, a.slice(0, 1000), b.slice(100, 1000));
    d.blas().scal(factor, b);
    primitives::on(d).scan(counts, sums);
    d.copy(sums, counts);
    d.fill(counts.slice(0, 1), std::int64_t{3});
    d.copy(b.slice(0, 64), a.slice(64, 64));
  }
  [[nodiscard]] std::string difference(const Mixture& other) const {
    const auto differ = [](const auto& x, const auto& y) {
      return !same_bits(device().download(x), device().download(y));
    };
    if (differ(a, other.a)) return "a";
    if (differ(b, other.b)) return "b";
    if (differ(c, other.c)) return "c";
    if (differ(sum, other.sum)) return "sum";
    if (differ(spectrum, other.spectrum)) return "spectrum";
    return differ(counts, other.counts) || differ(sums, other.sums) ? "sums" : "";
  }
};

TEST(Sequences, EqualTheirCallsOneByOne) {
  Mixture direct, recorded;
  const auto sequence = device().record([&] { recorded.calls(); });
  EXPECT_EQ(sequence.commands(), 12u);
  for (int i = 0; i < kRuns; ++i) {
    direct.calls();
    sequence.run();
    ASSERT_EQ(direct.difference(recorded), "") << "run " << i;
  }
}

TEST(Sequences, RunInOrderWithWhatElseIsSubmitted) {
  Mixture direct, recorded;
  const auto sequence = device().record([&] { recorded.calls(); });
  const auto between = [](const Mixture& one, int i) {
    device().blas().axpy(0.5, one.c, one.b);
    device().fill(one.a.slice(i, 10), static_cast<double>(i));
    device().blas().dot(one.a, one.b, one.sum);
  };
  for (int i = 0; i < kRuns; ++i) {
    direct.calls(), between(direct, i);
    const auto run = sequence.run();
    if (i < kRuns / 2) run.get();  // the others come while this one is a list, or a graph
    between(recorded, i);
  }
  EXPECT_EQ(direct.difference(recorded), "");
}

TEST(Sequences, NothingRunsWhileItIsRecorded) {
  const auto x = put(std::vector<double>{1, 2, 3});
  const auto sequence = device().record([&] {
    EXPECT_TRUE(device().fill(x, 7.0).ready());
    device().blas().scal(2.0, x).get();
  });
  EXPECT_EQ(device().download(x), (std::vector<double>{1, 2, 3}));
  sequence.run().get();
  EXPECT_EQ(device().download(x), (std::vector<double>{14, 14, 14}));
}

/// An object of a library does the same wherever it was made, and on a const Device.
TEST(Sequences, HaveWhatKeptObjectsOfLibrariesSubmit) {
  const Device& d = device();
  const auto x = put(std::vector<double>(100, 1.0)), sum = put(std::vector<double>(1, 0.0));
  const auto counts = put(std::vector<std::int64_t>(100, 1)), sums = d.alloc<std::int64_t>(100);
  const auto two = put(std::vector<double>(100, 2.0));
  const auto blas = d.blas();
  const auto vector = d.vector();
  const auto rng = d.rng();
  const auto algorithms = primitives::on(d);
  std::optional<BasicBlas<LocalRefs>> inside;
  const auto sequence = d.record([&] {
    inside.emplace(d.blas());
    blas.scal(2.0, x);
    vector.multiply(two, x, x);
    inside->dot(x, two, sum);
    algorithms.scan(counts, sums);
  });
  EXPECT_EQ(sequence.commands(), 4u);
  EXPECT_EQ(d.download(x)[0], 1.0) << "a call ran while it was recorded";
  for (int i = 1; i <= 3; ++i) {
    sequence.run();
    EXPECT_EQ(d.download(x)[99], std::pow(4.0, i));
    EXPECT_EQ(d.download(sums)[99], 100);
  }
  inside->scal(0.5, x);  // one that was made within, used without
  EXPECT_EQ(d.download(x)[0], 32.0);
  const auto another = d.record([&] { inside->scal(0.5, x); });
  EXPECT_EQ(d.download(x)[0], 32.0);
  another.run();
  EXPECT_EQ(d.download(x)[0], 16.0);
  rng.uniform(x, {.seed = 1});
  EXPECT_LT(d.download(x)[0], 1.0);
}

/// A thread that does not record is not concerned by one that does.
TEST(Sequences, AreOfTheirThreadAlone) {
  const auto x = put(std::vector<double>(4, 1.0)), y = put(std::vector<double>(4, 1.0));
  const auto blas = device().blas();
  const auto sequence = device().record([&] {
    blas.scal(2.0, x);
    std::thread([&] { blas.scal(3.0, y).get(); }).join();
  });
  EXPECT_EQ(sequence.commands(), 1u);
  EXPECT_EQ(device().download(y)[0], 3.0);
  EXPECT_EQ(device().download(x)[0], 1.0);
}

TEST(Sequences, TakeTurnsOnTheSameLibraries) {
  std::vector<GpuRef<double>> x;
  std::vector<Sequence> all;
  for (int i = 0; i < 8; ++i) {
    x.push_back(put(std::vector<double>(1000, 1.0)));
    all.push_back(device().record([&] {
      device().blas().scal(2.0, x.back());
      device().vector().multiply(x.back(), x.back(), x.back());
      device().fill(x.back().slice(0, 1), static_cast<double>(i));
    }));
  }
  for (int i = 0; i < 4; ++i) {
    for (const auto& one : all) one.run();
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto values = device().download(x[i]);
    EXPECT_EQ(values[0], static_cast<double>(i));
    EXPECT_EQ(values[1], std::ldexp(1.0, 30));  // e = 2 (e + 1), four times from 0
  }
}

TEST(Sequences, ParametersChangeForOneRun) {
  const auto x = put(std::vector<double>(100, 1.0)), y = put(std::vector<double>(100, 0.0));
  const Parameter<double> alpha(1.0), beta(0.0);
  const auto sequence = device().record([&] {
    device().vector().axpby(alpha, x, beta, y);  // y is read, should beta not be 0
    device().blas().axpy(alpha, x, y);
  });
  double expected = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto a = static_cast<double>(i), b = i % 3 == 0 ? 0.0 : 0.5;
    if (i % 4 == 3) {
      sequence.run();  // the initial ones again
      expected = 2;
    } else {
      sequence.run({alpha(a), beta(b)});
      expected = 2 * a + b * expected;
    }
    ASSERT_EQ(device().download(y), std::vector<double>(100, expected)) << i;
  }
}

TEST(Sequences, AParameterOutsideOfARecordingIsItsInitialValue) {
  const auto x = put(std::vector<float>(10, 3.0f));
  device().blas().scal(Parameter<float>(2.0f), x);
  EXPECT_EQ(device().download(x), std::vector<float>(10, 6.0f));
}

TEST(Sequences, OfSequencesAreTheCommandsOfAll) {
  const auto x = put(std::vector<double>(10, 1.0));
  const Parameter<double> factor(2.0);
  const auto twice = device().record([&] { device().blas().scal(factor, x); });
  const auto all = device().record([&] {
    twice.run();
    twice.run({factor(3.0)});
    device().blas().scal(0.5, x);
  });
  EXPECT_EQ(all.commands(), 3u);
  double expected = 1;
  for (int i = 0; i < kRuns; ++i) {
    all.run();
    expected *= 3;
  }
  EXPECT_EQ(device().download(x), std::vector<double>(10, expected));
  // What a run within has been given stays; the other is still a parameter.
  all.run({factor(1.0)});
  EXPECT_EQ(device().download(x), std::vector<double>(10, expected * 1.5));
}

TEST(Sequences, KeepTheirBuffers) {
  const auto result = device().alloc<double>(1000);
  Sequence sequence;
  {
    const auto scratch = device().alloc<double>(1000);
    sequence = device().record([&] {
      device().fill(scratch, 4.0);
      device().copy(scratch, result);
    });
  }
  const auto others = put(std::vector<double>(1000, 1.0));  // would lie where scratch was
  for (int i = 0; i < kRuns; ++i) sequence.run();
  EXPECT_EQ(device().download(result), std::vector<double>(1000, 4.0));
  EXPECT_EQ(device().download(others), std::vector<double>(1000, 1.0));
}

TEST(Sequences, OfManyCommandsKeepTheirOrder) {
  const auto x = put(std::vector<double>(64, 1.0)), y = put(std::vector<double>(64, 0.0));
  const auto sequence = device().record([&] {
    for (int i = 0; i < 500; ++i) {
      device().blas().axpy(1.0, x, y);          // y += x
      device().vector().axpby(0.5, y, 0.5, x);  // x = (x + y) / 2
      device().copy(x.slice(0, 32), y.slice(32, 32));
    }
    device().fill(x, 1.0), device().fill(y, 0.0);
    device().blas().axpy(3.0, x, y);
  });
  EXPECT_EQ(sequence.commands(), 1503u);
  for (int i = 0; i < 4; ++i) sequence.run().get();
  EXPECT_EQ(device().download(y), std::vector<double>(64, 3.0));
}

TEST(Sequences, LaunchKernelsWithParameters) {
  const auto module = device()
                          .compile(
                              "extern \"C\" __global__ void add(double* x, double what, int n) {"
                              "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
                              "  if (i < n) x[i] += what;"
                              "}",
                              {.names = {"add"}})
                          .get();
  const auto add = module.kernel("add");
  const auto x = put(std::vector<double>(100, 0.0));
  const Parameter<double> what(1.0);
  Sequence sequence = device().record([&] {
    device().launch(add, {.grid = 1, .block = 128}, update(x), what, 100);
    device().launch(add, {.grid = 1, .block = 128}, update(x), 10.0, 50);
  });
  double expected = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto run = sequence.run({what(static_cast<double>(i))});
    if (i < kRuns / 2) run.get();
    expected += i;
  }
  const auto values = device().download(x);
  EXPECT_EQ(values[99], expected);
  EXPECT_EQ(values[0], expected + 10 * kRuns);
}

/// Flags that are looked at one after another: each turn moves them on by one.
struct Flags {
  GpuRef<std::int32_t> all, moved;

  explicit Flags(const std::vector<std::int32_t>& values)
      : all(put(values)), moved(device().alloc<std::int32_t>(all.length() - 1)) {}
  void next() const {
    device().copy(all.slice(1, moved.length()), moved);
    device().copy(moved, all.slice(0, moved.length()));
  }
};

TEST(Sequences, DoSomethingAsLongAsAFlagIsSet) {
  const auto x = put(std::vector<double>(10, 0.0)), one = put(std::vector<double>(10, 1.0));
  const Flags flags(std::vector<std::int32_t>(20, 0));
  const auto sequence = device().record([&] {
    device().blas().axpy(100.0, one, x);
    while_(device(), flags.all, [&] {
      device().blas().axpy(1.0, one, x);
      flags.next();
    });
    device().blas().axpy(1000.0, one, x);
  });
  double expected = 0;
  for (const int turns : {0, 1, 2, 7, 0, 19, 3, 1, 0, 11, 2}) {
    std::vector<std::int32_t> values(20, 0);
    std::fill_n(values.begin(), turns, turns % 2 == 0 ? 1 : -5);
    device().upload<std::int32_t>(values, flags.all);
    sequence.run();
    expected += 1100 + turns;
    ASSERT_EQ(device().download(x), std::vector<double>(10, expected)) << turns << " turns";
  }
}

TEST(Sequences, DoSomethingIfAFlagIsSet) {
  const auto x = put(std::vector<double>(10, 0.0)), y = put(std::vector<double>(10, 1.0));
  const auto flag = put(std::vector<std::int32_t>{0});
  const auto twice = device().record([&] { device().blas().scal(2.0, y); });
  const auto sequence = device().record([&] {
    device().fill(x, 5.0);
    if_(device(), flag, [&] {
      twice.run();
      device().copy(y, x);
    });
    device().blas().axpy(1.0, x, y);  // waits for whichever came before
  });
  double expected = 1;
  for (const std::int32_t set : {0, 1, 1, 0, 7, 0, 0, 1, 2, 0}) {
    device().fill(flag, set);
    sequence.run();
    expected = set != 0 ? 4 * expected : expected + 5;
    ASSERT_EQ(device().download(y), std::vector<double>(10, expected)) << set;
    ASSERT_EQ(device().download(x), std::vector<double>(10, set != 0 ? expected / 2 : 5));
  }
}

TEST(Sequences, BranchWithinBranches) {
  const auto x = put(std::vector<double>(10, 0.0)), one = put(std::vector<double>(10, 1.0));
  const Flags turns({1, 1, 1, 1, 1, 0, 0}), odd({1, 0, 1, 0, 1, 0, 0});
  const auto part = device().record([&] {
    while_(device(), turns.all, [&] {
      if_(device(), odd.all, [&] { device().blas().axpy(10.0, one, x); });
      device().blas().axpy(1.0, one, x);
      turns.next(), odd.next();
    });
  });
  const auto whole = device().record([&] {
    part.run();
    device().blas().axpy(100.0, one, x);
  });
  double expected = 0;
  for (int i = 0; i < kRuns; ++i) {
    whole.run();
    expected += 135;
    ASSERT_EQ(device().download(x), std::vector<double>(10, expected)) << i;
    whole.run();  // no flag is set any more
    expected += 100;
    ASSERT_EQ(device().download(x), std::vector<double>(10, expected)) << i;
    device().upload<std::int32_t>(std::vector<std::int32_t>{1, 1, 1, 1, 1, 0, 0}, turns.all);
    device().upload<std::int32_t>(std::vector<std::int32_t>{1, 0, 1, 0, 1, 0, 0}, odd.all);
  }
}

}  // namespace
}  // namespace troupe::test
