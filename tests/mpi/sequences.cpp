#include <complex>
#include <cstring>

#include <troupe/lib/fft.hpp>
#include <troupe/sequence.hpp>

#include "mpi_tests.hpp"

// Recorded sequences with collectives and messages among their commands: all ranks run them
// together, and a fault in one is that of a collective.

namespace troupe::test {
namespace {

constexpr std::int64_t n = 300;

/// Passes a vector on round the ranks, and adds up what it comes to.
struct Ring {
  Context* c;
  GpuRef<double> x, y, sums;

  explicit Ring(Context& context)
      : c(&context),
        x(context.device().alloc<double>(n)),
        y(context.device().alloc<double>(n)),
        sums(context.device().alloc<double>(2)) {
    context.device().fill(x, 1.0 + context.rank());
    context.device().fill(sums, 0.0);
  }
  void step() {
    auto& device = c->device();
    auto& world = c->world();
    const Transfer<double> to{x, Rank((c->rank() + 1) % c->size())},
        from{y, Rank((c->rank() + c->size() - 1) % c->size())};
    world.exchange<double>({&to, 1}, {&from, 1});
    device.vector().axpby(0.25, y, 0.5, x);
    device.blas().dot(x, x, sums.slice(0, 1));
    world.all_reduce(sums, ReduceOp::sum);
    device.blas().scal(1.0 / (2.0 * c->size()), sums);
    device.blas().axpy(sums.slice(0, 1), y, x);
    device.blas().scal(0.125, x);
  }
  [[nodiscard]] bool same(const Ring& other) const {
    const auto mine = c->device().download(x), theirs = c->device().download(other.x);
    return std::memcmp(mine.data(), theirs.data(), sizeof(double) * mine.size()) == 0;
  }
};

/// x += 1, and the sum of it over all ranks.
struct Counted {
  Context* c;
  Checkpoint state;
  GpuRef<double> x, one, total;

  explicit Counted(Context& context)
      : c(&context),
        state(context.device()),
        x(context.device().alloc<double>(n)),
        one(context.device().alloc<double>(n)),
        total(context.device().alloc<double>(n)) {
    context.device().fill(x, 0.0);
    context.device().fill(one, 1.0);
    state.add("x", x);
    state.add_scratch(total);
  }
  void step() {
    c->device().blas().axpy(1.0, one, x);
    c->device().copy(x, total);
    c->world().all_reduce(total, ReduceOp::sum);
  }
  void expect(std::int64_t steps, const std::string& what) {
    const auto mine = c->device().download(x), all = c->device().download(total);
    const auto each = static_cast<double>(steps), sum = each * c->size();
    c->expect_equal(std::count(mine.begin(), mine.end(), each), n,
                    what + ": x is " + std::to_string(mine[0]));
    c->expect_equal(std::count(all.begin(), all.end(), sum), n,
                    what + ": the sum is " + std::to_string(all[0]));
  }
};

}  // namespace

TROUPE_MPI_CASE(sequences) {
  Ring direct(c), recorded(c);
  const auto sequence = c.device().record([&] { recorded.step(); });
  for (int i = 0; i < 20; ++i) {
    direct.step();
    const auto run = sequence.run();
    c.require(run.wait_for(kDeadline), "a run does not resolve");
    c.require(run.wait().ok(),
              "a run fails: " + (run.wait().ok() ? "" : run.wait().error().message));
  }
  c.expect(direct.same(recorded), "the sequence does something else than its calls");
  // Many at once, on ranks that are not in step.
  if (c.first()) std::this_thread::sleep_for(20ms);
  Future<void> last;
  for (int i = 0; i < 50; ++i) {
    direct.step();
    last = sequence.run();
    if (i % 7 == 0) c.world().all_reduce(direct.sums, ReduceOp::max);
    if (i % 7 == 0) c.world().all_reduce(recorded.sums, ReduceOp::max);
  }
  c.require(last.wait_for(kDeadline), "the last run does not resolve");
  c.expect(direct.same(recorded), "sequences and other collectives get out of order");
  try {
    (void)c.device().record([&] {
      for (int i = 0; i < 500; ++i) c.world().all_reduce(direct.sums, ReduceOp::sum);
    });
    c.expect(false, "a sequence of 500 collectives is recorded");
  } catch (const Exception& e) {
    c.expect_equal(e.code(), Errc::unsupported, std::string("too many collectives: ") + e.what());
  }
}

/// What a library has to prepare first stands between collectives: the run goes on all the same.
TROUPE_MPI_CASE(sequence_first_use) {
  auto& device = c.device();
  const auto x = device.alloc<std::complex<float>>(n);
  const auto sums = device.alloc<double>(1);
  device.fill(x, std::complex<float>(0.0f));
  device.fill(sums, 1.0);
  const auto sequence = device.record([&] {
    c.world().all_reduce(sums, ReduceOp::sum);
    fft::on(device).forward(x, x, {.extents = {n}});  // no plan is there yet
    c.world().all_reduce(sums, ReduceOp::max);
  });
  const auto run = sequence.run();
  c.require(run.wait_for(kDeadline), "a run that prepares something does not resolve");
  c.expect(run.wait().ok() && device.download(sums)[0] == c.size(), "the run computes otherwise");
}

/// Collectives from and to one rank, and several as one, whose factors and operands change from run
/// to run.
TROUPE_MPI_CASE(sequence_collectives) {
  constexpr std::int64_t kRows = 4;
  auto& device = c.device();
  auto& world = c.world();
  const auto size = static_cast<double>(c.size());
  const auto mine = device.alloc<double>(n), all = device.alloc<double>(n * c.size()),
             part = device.alloc<double>(n), scaled = device.alloc<double>(n),
             total = device.alloc<double>(n), rows = device.alloc<double>(kRows * n);
  device.fill(mine, 1.0 + c.rank());
  for (std::int64_t i = 0; i < kRows; ++i)
    device.fill(rows.slice(i * n, n), static_cast<double>(i + 1));
  const Parameter<double> factor(0.5);
  const MovingRef<double> row(rows, n);
  const auto sequence = device.record([&] {
    world.gather(mine, all, Rank(0));
    device.fill(part, 0.0);
    world.scatter(all, part, Rank(0));
    auto bundle = world.bundle();
    bundle.all_reduce_scaled(factor, part, scaled);
    bundle.all_reduce(row, total, ReduceOp::sum);
    bundle.submit();
  });
  for (int i = 0; i < 12; ++i) {
    const auto by = i % 5 == 4 ? 0.5 : 0.25 * i;
    const auto which = i % 5 == 4 ? 0 : i % kRows;
    const auto run = i % 5 == 4 ? sequence.run() : sequence.run({factor(by), row(which * n)});
    c.require(run.wait_for(kDeadline), "a run does not resolve");
    c.require(run.wait().ok(),
              "a run fails: " + (run.wait().ok() ? "" : run.wait().error().message));
    c.expect_equal(device.download(scaled), std::vector<double>(n, by * size * (size + 1) / 2),
                   "the scaled sum of run " + std::to_string(i));
    c.expect_equal(device.download(total),
                   std::vector<double>(n, size * static_cast<double>(which + 1)),
                   "the sum of a row in run " + std::to_string(i));
  }
}

/// Ranks whose sequences have other collectives, or run a collective in the place of a sequence.
TROUPE_MPI_CASE(sequence_differences) {
  const auto a = c.device().alloc<double>(n), b = c.device().alloc<double>(n);
  c.device().fill(a, 1.0);
  const bool odd = c.rank() == 1;
  const auto different = c.device().record([&] {
    c.device().fill(b, 7.0);
    c.world().all_reduce(odd ? a.slice(0, 1) : a, odd ? b.slice(0, 1) : b, ReduceOp::sum);
  });
  const auto same = c.device().record([&] { c.world().all_reduce(a, b, ReduceOp::sum); });
  const auto is_refused = [&](const Future<void>& future, const std::string& what) {
    c.require(future.wait_for(kDeadline), what + " does not resolve");
    const auto& outcome = future.wait();
    c.expect(outcome.code() == Errc::invalid &&
                 outcome.error().message.find("different collectives") != std::string::npos,
             what + ": " + (outcome.ok() ? "ok" : outcome.error().message));
  };
  is_refused(different.run(), "a sequence that differs");
  is_refused(odd ? c.world().all_reduce(a, b, ReduceOp::sum) : same.run(),
             "a collective in the place of a sequence");
  same.run().get();
  c.expect_equal(c.device().download(b), std::vector<double>(n, c.size()), "the next run is wrong");
  (void)c.device().take_error();
}

/// Sequences made before a run, in whose steps device hosts die: in the middle of a run of one, and
/// between two.
TROUPE_MPI_CASE(sequence_faults) {
  constexpr std::int64_t kSteps = 60;
  Counted counted(c);
  const auto sequence = c.device().record([&] { counted.step(); });
  std::set<std::int64_t> strikes{11, 30, 47};
  c.world().run(counted.state,
                [&](std::int64_t i) {
                  sequence.run();
                  if (strikes.erase(i) != 0 && c.rank() == i % c.size())
                    c.device().inject(memory::FaultKind::kill);
                  return i + 1 < kSteps ? Step::again : Step::done;
                },
                {.commit_every = 9});
  counted.expect(kSteps, "after the faults");
}

/// World::run() records its steps by itself.
TROUPE_MPI_CASE(recorded_steps) {
  constexpr std::int64_t kSteps = 80;
  Counted counted(c);
  std::set<std::int64_t> strikes{20, 50};
  c.world().run(counted.state,
                [&](std::int64_t i) {
                  counted.step();
                  if (i % 16 == 15)
                    c.device().fill(counted.total.slice(0, 1), 0.0);  // now and then another
                  if (strikes.erase(i) != 0 && c.rank() == i % c.size()) (void)kill_active();
                  return i + 1 < kSteps - 1 ? Step::again : Step::done;
                },
                {.commit_every = 9, .record = true});
  counted.expect(kSteps - 1, "after the run");
  try {
    c.world().run(counted.state,
                  [&](std::int64_t) {
                    counted.step();
                    (void)c.device().download(counted.x);
                    return Step::done;
                  },
                  {.record = true});
    c.expect(false, "a step that reads is recorded");
  } catch (const Exception& e) {
    c.expect_equal(e.code(), Errc::unsupported, std::string("a step that reads: ") + e.what());
  }
}

/// Recorded steps with flags, also where intervals are done twice.
TROUPE_MPI_CASE(recorded_flags) {
  auto& device = c.device();
  auto x = device.alloc<double>(n);
  const auto one = device.alloc<double>(n);
  const auto flags = device.alloc<std::int32_t>(2);
  device.fill(x, 0.0), device.fill(one, 1.0);
  device.upload<std::int32_t>(std::vector<std::int32_t>{1, 0}, flags).get();
  Checkpoint state(device);
  state.add("x", x);
  std::set<std::int64_t> strikes{7, 15};
  c.world().run(state,
                [&](std::int64_t i) {
                  const auto taken = i % 3 == 0 ? 1 : 0;  // of three steps two
                  if_(device, flags.slice(taken, 1), [&] { device.blas().axpy(1.0, one, x); });
                  if (strikes.erase(i) != 0 && c.rank() == i % c.size()) (void)kill_active();
                  return i < 29 ? Step::again : Step::done;
                },
                {.commit_every = 5, .record = true});
  c.expect_equal(device.download(x), std::vector<double>(n, 20), "what flags have let through");
}

}  // namespace troupe::test
