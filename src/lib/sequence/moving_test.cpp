#include <functional>

#include <troupe/lib/kernel.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/sequence.hpp>
#include <troupe/sequence.hpp>

#include "bad_arguments.hpp"

// Recorded sequences whose runs say where operands are: they do what the calls would do with the
// operands there, and each is run often enough to become a graph.

namespace troupe::test {
namespace {

constexpr std::int64_t kMatrixRows = 12, kRowLength = 50;

/// A matrix of rows, and what is done with one of them and with a vector.
struct SomeRows {
  GpuRef<double> rows = put(random_values<double>(kMatrixRows * kRowLength, 1)),
                 x = put(random_values<double>(kRowLength, 2)),
                 sums = device().alloc<double>(kMatrixRows),
                 factors = put(random_values<double>(kMatrixRows, 3));
  GpuRef<std::int64_t> counts = put(std::vector<std::int64_t>(kMatrixRows * kRowLength, 3));

  SomeRows() { device().fill(sums, 0.0); }

  void calls(const GpuRef<double>& row, const GpuRef<double>& sum, const GpuRef<double>& factor,
             const GpuRef<std::int64_t>& count) const {
    auto& d = device();
    d.blas().axpy(0.5, x, row);
    d.blas().dot(row.slice(3, kRowLength - 3), x.slice(3, kRowLength - 3), sum);
    d.blas().scal(factor, row.slice(0, 7));
    d.copy(row.slice(10, 5), x.slice(20, 5));
    d.fill(row.slice(kRowLength - 1, 1), 0.25);
    primitives::on(d).scan(count, count);
    d.vector().multiply(row, row, x);
  }
  void calls(std::int64_t at) const {
    calls(rows.slice(at * kRowLength, kRowLength), sums.slice(at, 1), factors.slice(at, 1),
          counts.slice(at * kRowLength, kRowLength));
  }
  [[nodiscard]] bool same(const SomeRows& other) const {
    const auto equal = [](const auto& a, const auto& b) {
      return device().download(a) == device().download(b);
    };
    return equal(rows, other.rows) && equal(x, other.x) && equal(sums, other.sums) &&
           equal(counts, other.counts);
  }
};

struct MovingRow {
  MovingRef<double> row, sum, factor;
  MovingRef<std::int64_t> count;

  explicit MovingRow(const SomeRows& all)
      : row(all.rows, kRowLength),
        sum(all.sums, 1),
        factor(all.factors, 1),
        count(all.counts, kRowLength) {}
};

TEST(MovingRefs, AreWhereTheRunSays) {
  const SomeRows direct, recorded;
  const MovingRow moving(recorded);
  const auto sequence =
      device().record([&] { recorded.calls(moving.row, moving.sum, moving.factor, moving.count); });
  for (std::int64_t i = 0; i < 3 * kMatrixRows; ++i) {
    const auto at = i * 5 % kMatrixRows;
    direct.calls(at);
    sequence.run({moving.row(at * kRowLength), moving.sum(at), moving.factor(at),
                  moving.count(at * kRowLength)});
    if (i % 7 == 3) {  // at its first place again
      direct.calls(0);
      sequence.run();
    }
    ASSERT_TRUE(direct.same(recorded)) << "run " << i;
  }
}

TEST(MovingRefs, AreInOrderWithWhatElseNamesThatPlace) {
  const auto rows = put(std::vector<double>(kMatrixRows * kRowLength, 0.0)),
             ones = put(std::vector<double>(kRowLength, 1.0));
  const MovingRef<double> row(rows, kRowLength);
  const auto sequence = device().record([&] {
    device().blas().axpy(1.0, ones, row);
    device().blas().scal(2.0, row);
  });
  for (int round = 0; round < 4; ++round) {
    for (std::int64_t at = 0; at < kMatrixRows; ++at) {
      const auto there = rows.slice(at * kRowLength, kRowLength);
      device().fill(there, static_cast<double>(at));
      sequence.run({row(there)});
      device().blas().axpy(0.5, ones, there);
    }
  }
  const auto values = device().download(rows);
  for (std::int64_t i = 0; i < kMatrixRows * kRowLength; ++i)
    ASSERT_EQ(values[static_cast<std::size_t>(i)],
              2.0 * (static_cast<double>(i / kRowLength) + 1) + 0.5);
}

TEST(MovingRefs, AreArgumentsOfKernels) {
  const auto module = device()
                          .compile(
                              "extern \"C\" __global__ void add(double* x, const double* what) {"
                              "  int i = threadIdx.x;"
                              "  x[i] += *what;"
                              "}",
                              {.names = {"add"}})
                          .get();
  const auto add = module.kernel("add");
  const auto rows = put(std::vector<double>(kMatrixRows * kRowLength, 0.0)),
             what = put(std::vector<double>{1, 2, 3, 4, 5});
  const MovingRef<double> row(rows, kRowLength, 3 * kRowLength), one(what, 1);
  const auto sequence = device().record([&] {
    device().launch(add, {.grid = 1, .block = kRowLength}, update(row), read(one));
    device().launch(add, {.grid = 1, .block = kRowLength - 1}, update(row.slice(1, kRowLength - 1)),
                    read(what.slice(4, 1)));
  });
  std::vector<double> expected(kMatrixRows * kRowLength, 0.0);
  for (std::int64_t i = 0; i < 20; ++i) {
    const auto at = i % 5 == 4 ? 3 : i * 7 % kMatrixRows, from = i % 5 == 4 ? 0 : i % 4;
    if (i % 5 == 4) {
      sequence.run();
    } else {
      sequence.run({row(at * kRowLength), one(from)});
    }
    for (std::int64_t k = 0; k < kRowLength; ++k)
      expected[static_cast<std::size_t>(at * kRowLength + k)] +=
          static_cast<double>(from + 1) + (k == 0 ? 0 : 5);
    ASSERT_EQ(device().download(rows), expected) << i;
  }
}

TEST(MovingRefs, MayBeSetInASequenceOfSequences) {
  const auto x = put(std::vector<double>{1, 2, 3, 4, 5, 6});
  const MovingRef<double> pair(x, 2);
  const auto twice = device().record([&] { device().blas().scal(2.0, pair); });
  const auto all = device().record([&] {
    twice.run({pair(4)});
    twice.run();
  });
  for (int i = 0; i < 3; ++i) all.run();
  EXPECT_EQ(device().download(x), (std::vector<double>{8, 16, 3, 4, 40, 48}));
  all.run({pair(2)});
  EXPECT_EQ(device().download(x), (std::vector<double>{8, 16, 6, 8, 80, 96}));
}

TEST(MovingRefs, OutsideOfARecordingAreWhereTheyBegan) {
  const auto x = put(std::vector<float>{1, 2, 3});
  const MovingRef<float> last(x, 1, 2);
  device().blas().scal(2.0f, last);
  EXPECT_EQ(device().download(last), std::vector<float>{6});
  EXPECT_EQ(device().download(x), (std::vector<float>{1, 2, 6}));
}

TEST(MovingRefsRefuse, PlacesThatAreNotThere) {
  const auto x = put(std::vector<double>(16, 1.0)), y = put(std::vector<double>(16, 1.0));
  const MovingRef<double> part(x.slice(0, 8), 4);
  const auto sequence = device().record([&] { device().blas().scal(2.0, part); });
  const auto does_not_run = [&](const ParameterValue& value, const std::string& why) {
    const auto outcome = sequence.run({value}).wait();
    ASSERT_EQ(outcome.code(), Errc::invalid);
    EXPECT_NE(outcome.error().message.find(why), std::string::npos) << outcome.error().message;
  };
  does_not_run(part(5), "4 elements from 5 on are not all within 8");
  does_not_run(part(-1), "4 elements from -1 on");
  does_not_run(part(std::numeric_limits<std::int64_t>::max()), "not all within 8");
  does_not_run(part(std::numeric_limits<std::int64_t>::min()), "not all within 8");
  does_not_run(part(y.slice(0, 4)), "another buffer");
  does_not_run(part(x.slice(0, 5)), "another length");
  does_not_run(part(x.slice(8, 4)), "not all within 8");
  EXPECT_EQ(device().download(x), std::vector<double>(16, 1.0)) << "something has run";
  sequence.run({part(4)}).get();
  EXPECT_EQ(device().download(x.slice(3, 6)), (std::vector<double>{1, 2, 2, 2, 2, 1}));
  (void)device().take_error();
}

TEST(MovingRefsRefuse, PlacesThatACommandDoesNotTake) {
  const auto x = put(std::vector<double>(16, 1.0));
  const MovingRef<double> to(x, 4, 8);
  const auto sequence = device().record([&] {
    device().fill(x.slice(0, 4), 3.0);
    device().copy(x.slice(0, 4), to);
  });
  const auto outcome = sequence.run({to(2)}).wait();
  EXPECT_EQ(outcome.code(), Errc::invalid);
  EXPECT_NE(outcome.error().message.find("command 2 of the sequence"), std::string::npos)
      << outcome.error().message;
  EXPECT_EQ(device().download(x), std::vector<double>(16, 1.0)) << "something has run";
  sequence.run({to(12)}).get();
  EXPECT_EQ(device().download(x.slice(11, 5)), (std::vector<double>{1, 3, 3, 3, 3}));
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
