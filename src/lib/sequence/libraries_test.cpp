#include <chrono>
#include <functional>

#include <troupe/lib/dnn.hpp>
#include <troupe/lib/function.hpp>
#include <troupe/lib/sequence.hpp>
#include <troupe/lib/solver.hpp>
#include <troupe/sequence.hpp>

#include "bad_arguments.hpp"
#include "common/core/narrow.hpp"

// Recorded sequences of operations that tell of their own failure, that prepare plans when they are
// first called, or that are functions of the program's: each is run often enough to become a graph.

namespace troupe::test {
namespace {

constexpr int kTimes = 8;
constexpr std::int64_t kSide = 24;

/// A matrix with `diagonal` on its diagonal and ones beside it.
std::vector<double> banded(double diagonal) {
  std::vector<double> a(kSide * kSide, 0.0);
  for (std::int64_t i = 0; i < kSide; ++i) {
    for (const auto j : {i - 1, i, i + 1}) {
      if (j >= 0 && j < kSide) a[static_cast<std::size_t>(i + j * kSide)] = i == j ? diagonal : 1;
    }
  }
  return a;
}

TEST(SequencesOfLibraries, Factorise) {
  const auto a = put(banded(4)), direct = device().alloc<double>(kSide * kSide),
             factor = device().alloc<double>(kSide * kSide);
  device().copy(a, direct);
  solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(direct, kSide, kSide));
  const auto expected = device().download(direct);
  const auto sequence = device().record([&] {
    device().copy(a, factor);
    EXPECT_EQ(solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(factor, kSide, kSide)).get(),
              0);
    device().blas().scal(2.0, factor);
  });
  for (int i = 0; i < kTimes; ++i) {
    sequence.run();
    const auto values = device().download(factor);
    for (std::size_t k = 0; k < values.size(); ++k) ASSERT_EQ(values[k], 2 * expected[k]) << i;
  }
}

/// Where runs follow one another at once, each is judged by what it has computed itself.
TEST(SequencesOfLibraries, FailWhereOneOfTheirCommandsDoes) {
  const auto matrices = device().alloc<double>(3 * kSide * kSide),
             bad = matrices.slice(kSide * kSide, kSide * kSide);
  device().upload<double>(banded(4), matrices.slice(0, kSide * kSide));
  device().upload<double>(banded(0.5), bad);
  device().upload<double>(banded(3), matrices.slice(2 * kSide * kSide, kSide * kSide));
  const MovingRef<double> which(matrices, kSide * kSide);
  for (int warm = 0; warm < 2; ++warm) {
    const auto factor = device().alloc<double>(kSide * kSide);
    const auto sequence = device().record([&] {
      device().copy(which, factor);
      solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(factor, kSide, kSide));
    });
    for (int i = 0; i < warm * kTimes; ++i) ASSERT_TRUE(sequence.run().wait().ok());
    const auto first = sequence.run(), second = sequence.run({which(bad)}), third = sequence.run();
    EXPECT_TRUE(first.wait().ok()) << first.wait().error().message;
    ASSERT_EQ(second.wait().code(), Errc::numeric);
    EXPECT_EQ(second.wait().error().native, 2) << "the order of the minor";
    EXPECT_NE(second.wait().error().message.find("command 2 of the sequence: solver.potrf"),
              std::string::npos)
        << second.wait().error().message;
    EXPECT_FALSE(factor.valid());
    // It was queued behind the one that failed, or was cannot_record because of it.
    EXPECT_TRUE(third.wait().ok() || third.wait().code() == Errc::stale);
    EXPECT_EQ(sequence.run().wait().code(), Errc::stale);
  }
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
  while (!device().take_error().ok()) {
  }
}

TEST(SequencesOfLibraries, JudgeEachCommandOfASequenceOfSequences) {
  const auto good = put(banded(4)), bad = put(banded(0.5));
  const auto factor = device().alloc<double>(kSide * kSide);
  const auto of = [&](const GpuRef<double>& a) {
    return device().record([&] {
      device().copy(a, factor);
      solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(factor, kSide, kSide));
    });
  };
  const auto well = of(good), badly = of(bad);
  const auto both = device().record([&] {
    well.run();
    badly.run();
    well.run();
    well.run();
  });
  const auto outcome = both.run().wait();
  EXPECT_EQ(outcome.code(), Errc::numeric);
  EXPECT_NE(outcome.error().message.find("command 4 of"), std::string::npos)
      << outcome.error().message;
  while (!device().take_error().ok()) {
  }
}

/// The buffers of a run that fails may be freed by then, and their places in the table be others'.
TEST(SequencesOfLibraries, ThatFailSpoilNoBufferThatComesLater) {
  for (int i = 0; i < 100; ++i) {
    const auto bad = put(banded(0.5)), good = put(banded(4));
    (void)device()
        .record([&] {
          (void)solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(bad, kSide, kSide));
        })
        .run();
    (void)solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(good, kSide, kSide));
    EXPECT_TRUE(good.valid()) << i;
    (void)device().download(good);
  }
  device().nop().wait();
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
}

TEST(SequencesOfLibraries, MultiplyMatricesAtOffsets) {
  const auto a = put(random_values<double>(64, 1)), b = put(random_values<double>(64, 2)),
             direct = device().alloc<double>(64), c = device().alloc<double>(64);
  const auto offsets = put(std::vector<std::int64_t>{0, 16, 32, 0, 16, 48, 48, 16, 0});
  device().fill(direct, 0.0), device().fill(c, 0.0);
  const auto multiply = [&](const GpuRef<double>& to) {
    return device().blas().gemm_indexed(a, b, to, offsets, {.m = 4, .n = 4, .k = 4});
  };
  const auto sequence = device().record([&] {
    multiply(c);
    device().blas().scal(2.0, c);
  });
  multiply(direct);
  device().blas().scal(2.0, direct);
  const auto expected = device().download(direct);
  for (int i = 0; i < kTimes; ++i) {
    device().fill(c, 0.0);
    ASSERT_TRUE(sequence.run().wait().ok());
    ASSERT_EQ(device().download(c), expected) << i;
  }
  device().fill(offsets, std::int64_t{61});
  EXPECT_EQ(sequence.run().wait().code(), Errc::invalid);
  EXPECT_FALSE(c.valid());
  while (!device().take_error().ok()) {
  }
}

TEST(SequencesOfLibraries, FactoriseLists) {
  std::vector<GpuRef<double>> lists;
  for (int i = 0; i < 2; ++i) lists.push_back(device().alloc<double>(2 * kSide * kSide));
  const auto a = put(banded(4));
  const auto pivots = device().alloc<std::int32_t>(2 * kSide),
             info = device().alloc<std::int32_t>(2);
  const auto calls = [&](const GpuRef<double>& list) {
    std::vector<MatrixRef<GpuRef<double>>> matrices;
    for (std::int64_t i = 0; i < 2; ++i) {
      const auto one = list.slice(i * kSide * kSide, kSide * kSide);
      device().copy(a, one);
      matrices.push_back({one, kSide, kSide});
    }
    device().blas().getrf_batched(matrices, pivots, info);
  };
  const auto sequence = device().record([&] { calls(lists[1]); });
  calls(lists[0]);
  const auto expected = device().download(lists[0]);
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_TRUE(sequence.run().wait().ok());
    ASSERT_EQ(device().download(lists[1]), expected);
    ASSERT_EQ(device().download(info), (std::vector<std::int32_t>{0, 0}));
  }
}

/// Kernels that may overlap, and some that must not.
TEST(SequencesOfLibraries, LaunchKernelsThatDoNotDependOnOneAnother) {
  constexpr int kChains = 6, kSteps = 5, kLength = 100;
  const auto module = device()
                          .compile(
                              "extern \"C\" __global__ void twice(const int* x, int* y, int plus) {"
                              "  int i = threadIdx.x;"
                              "  y[i] = 2 * x[i] + plus;"
                              "}"
                              "extern \"C\" __global__ void add(const int* x, int* y) {"
                              "  int i = threadIdx.x;"
                              "  y[i] += x[i];"
                              "}",
                              {.names = {"twice", "add"}})
                          .get();
  const auto twice = module.kernel("twice"), add = module.kernel("add");
  std::vector<GpuRef<std::int32_t>> x, y;
  for (int i = 0; i < kChains; ++i) {
    x.push_back(put(std::vector<std::int32_t>(kLength, i)));
    y.push_back(device().alloc<std::int32_t>(kLength));
  }
  const auto sum = put(std::vector<std::int32_t>(kLength, 0));
  const auto sequence = device().record([&] {
    for (int step = 0; step < kSteps; ++step) {
      for (std::size_t i = 0; i < kChains; ++i) {
        device().launch(twice, {.grid = 1, .block = kLength}, read(x[i]), write(y[i]), step);
        device().launch(add, {.grid = 1, .block = kLength}, read(y[i]), update(x[i]));
      }
    }
    for (const auto& one : x)
      device().launch(add, {.grid = 1, .block = kLength}, read(one), update(sum));
    for (std::int32_t i = 0; i < kChains; ++i) device().fill(x[static_cast<std::size_t>(i)], i);
  });
  std::int32_t each = 0;
  for (std::int32_t i = 0; i < kChains; ++i) {
    auto value = i;
    for (std::int32_t step = 0; step < kSteps; ++step) value += 2 * value + step;
    each += value;
  }
  for (std::int32_t i = 1; i <= 3 * kTimes; ++i) {
    const auto run = sequence.run();
    if (i % 2 == 0) run.get();
    if (i % 4 != 0) continue;
    ASSERT_EQ(device().download(sum), std::vector<std::int32_t>(kLength, i * each));
  }
}

/// A new sequence runs as a list, and at once behind it comes one that is a graph by now, with the
/// same libraries.
TEST(SequencesOfLibraries, RunBehindListsOfOthers) {
  const auto x = put(std::vector<double>(100, 1.0)), one = put(std::vector<double>(100, 1.0));
  const auto halve = device().record([&] {
    device().blas().scal(0.5, x);
    device().vector().multiply(x, one, x);
  });
  for (int i = 0; i < 2 * kTimes; ++i) halve.run().get();
  device().fill(x, 1.0);
  for (int i = 0; i < 20; ++i) {
    const auto add = device().record([&] {
      device().blas().axpy(1.0, one, x);
      device().vector().multiply(x, one, x);
    });
    add.run();
    const auto last = halve.run();
    ASSERT_TRUE(last.wait_for(std::chrono::seconds(20))) << "it is never answered";
    ASSERT_EQ(device().download(x), std::vector<double>(100, 1.0));
  }
}

TEST(SequencesOfLibraries, Attend) {
  constexpr std::int64_t kLength = 32 * 64;
  const AttentionOptions shape{.sequence_q = 32, .dim_qk = 64};
  const auto q = device().alloc<Half>(kLength), o = device().alloc<Half>(kLength),
             direct = device().alloc<Half>(kLength);
  std::vector<Half> values;
  for (std::int64_t i = 0; i < kLength; ++i)
    values.push_back(from_float<Half>(static_cast<float>(i * 37 % 101) / 50 - 1));
  device().upload<Half>(values, q);
  if (dnn::on(device()).attention(q, q, q, direct, shape).wait().code() == Errc::unsupported) {
    (void)device().take_error();
    GTEST_SKIP() << "no attention here";
  }
  const auto expected = device().download(direct);
  const auto sequence = device().record([&] {
    device().fill(o, Half{});
    dnn::on(device()).attention(q, q, q, o, shape);
  });
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_TRUE(sequence.run().wait().ok());
    const auto actual = device().download(o);
    ASSERT_EQ(std::memcmp(actual.data(), expected.data(), sizeof(Half) * actual.size()), 0) << i;
  }
}

Function function_named(const std::string& name, const FunctionOptions& options = {}) {
  return device()
      .load_functions(on_cuda() ? TROUPE_TEST_FUNCTIONS_CUDA : TROUPE_TEST_FUNCTIONS_CPU)
      .function(name, options);
}

TEST(SequencesOfLibraries, CallFunctions) {
  for (const bool only_queues : {false, true}) {
    SCOPED_TRACE(only_queues);
    const auto increment = function_named("increment", {.only_queues = only_queues}),
               scale = function_named("scale", {.only_queues = only_queues});
    const auto x = put(std::vector<double>(100, 0.0));
    const auto f = put(std::vector<float>{1, 2, 3, 4}), g = device().alloc<float>(2);
    const Parameter<float> factor(2.0f);
    const MovingRef<float> pair(f, 2);
    const auto sequence = device().record([&] {
      device().call(increment, update(x), 100LL);
      device().blas().scal(2.0, x);
      device().call(scale, read(pair), write(g), 2, factor);
    });
    double expected = 0;
    for (int i = 0; i < kTimes; ++i) {
      const auto run = i % 3 == 2 ? sequence.run({factor(0.5f), pair(2)}) : sequence.run();
      ASSERT_TRUE(run.wait().ok()) << run.wait().error().message;
      expected = 2 * (expected + 1);
      ASSERT_EQ(device().download(x), std::vector<double>(100, expected)) << i;
      ASSERT_EQ(device().download(g),
                i % 3 == 2 ? (std::vector<float>{1.5f, 2}) : (std::vector<float>{2, 4}));
    }
  }
}

TEST(SequencesOfLibraries, FailWithTheirFunctions) {
  const auto x = put(std::vector<double>{1}), y = put(std::vector<double>{1});
  const auto sequence = device().record([&] {
    device().call(function_named("fail"), update(x), 7);
    device().fill(y, 2.0);
  });
  const auto outcome = sequence.run().wait();
  EXPECT_EQ(outcome.code(), Errc::library);
  EXPECT_EQ(outcome.error().native, 7);
  EXPECT_FALSE(x.valid());
  while (!device().take_error().ok()) {
  }
}

TEST(SequencesOfLibraries, RefuseWhatHasAValueOrReadsBack) {
  const auto a = put(banded(4)), w = device().alloc<double>(kSide);
  const auto flag = put(std::vector<std::int32_t>{1});
  const auto cannot_record = [](const std::function<void()>& calls, const std::string& why) {
    try {
      (void)device().record(calls);
      ADD_FAILURE() << "it is recorded: " << why;
    } catch (const Exception& e) {
      EXPECT_EQ(e.code(), Errc::unsupported);
      EXPECT_NE(e.error().message.find(why), std::string::npos) << e.error().message;
    }
  };
  cannot_record(
      [&] {
        solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(a, kSide, kSide),
                                   OnFailure::report);
      },
      "solver.potrf: a call with a value cannot be recorded");
  cannot_record(
      [&] {
        solver::on(device()).syevd(solver::Vectors::no, blas::Uplo::lower,
                                   MatrixRef(a, kSide, kSide), w);
      },
      "solver.syevd cannot be recorded");
  cannot_record(
      [&] {
        if_(device(), flag,
            [&] { solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(a, kSide, kSide)); });
      },
      "solver.potrf cannot be recorded: within if_ and while_");
  const auto part = device().record(
      [&] { solver::on(device()).potrf(blas::Uplo::lower, MatrixRef(a, kSide, kSide)); });
  cannot_record([&] { while_(device(), flag, [&] { part.run(); }); },
                "solver.potrf cannot be recorded: within if_ and while_");
  EXPECT_EQ(device().download(a), banded(4)) << "something has run";
}

}  // namespace
}  // namespace troupe::test
