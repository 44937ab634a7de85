#include <cmath>

#include "mpi_tests.hpp"

// Runs that are rehearsed (--rehearse): what a fault would spoil is found before there is one.

namespace troupe::test {
namespace {

constexpr std::int64_t kLength = 500, kSteps = 12, kCommitEvery = 4;

/// What is wrong with a program.
struct Case {
  bool adds_total = true;        ///< else the checkpoint lacks a part of the state
  bool adds_scratch = true;      ///< else the checkpoint does not name the room for sums
  bool makes_room_late = false;  ///< a buffer is made by the first step, and used by all
  bool counts_on_host = false;   ///< the result depends on a host value that the checkpoint lacks
  double noise = 0;              ///< by how much the result changes from one time to the next
};

class Rehearsed {
 public:
  Rehearsed(Context& c, const Case& how) : c_(&c), how_(how), checkpoint_(c.device()) {
    for (auto* ref : {&x_, &total_}) *ref = c.device().alloc<double>(kLength, "a vector");
    sum_ = c.device().alloc<double>(kLength);
    c.device().fill(x_, 1.0);
    c.device().fill(total_, 0.0);
    checkpoint_.add("x", x_);
    if (how.adds_total) checkpoint_.add("total", total_);
    if (how.adds_scratch) checkpoint_.add_scratch(sum_);
    checkpoint_.add_value("count", count_);
    c.device().nop().get();
  }

  /// What the run throws; success if it does not.
  Result<void> run() {
    try {
      c_->world().run(checkpoint_, [&](std::int64_t i) { return step(i); },
                      {.commit_every = kCommitEvery});
    } catch (const CollectiveException& e) {
      return e.error();
    }
    return {};
  }
  void expect_right(const std::string& what) {
    double x = 1, total = 0;
    for (std::int64_t i = 0; i < kSteps; ++i) {
      total += c_->size() * x;
      x += 1 + x * 0.5;
    }
    const auto values = c_->device().download(total_);
    c_->expect_equal(std::count(values.begin(), values.end(), total), kLength,
                     what + ": " + std::to_string(values[0]) + ", not " + std::to_string(total));
    c_->expect_equal(count_, kSteps, what + ": the value on the host");
  }
  [[nodiscard]] std::int64_t executed() const { return executed_; }
  [[nodiscard]] std::uint32_t total_index() const { return total_.operand().buffer; }
  [[nodiscard]] std::uint32_t late_index() const { return late_.operand().buffer; }
  [[nodiscard]] std::uint32_t scratch_index() const { return sum_.operand().buffer; }

 private:
  /// total = total + the sum of x over ranks; x = 1.5 x + 1
  Step step(std::int64_t i) {
    auto& device = c_->device();
    ++executed_;
    ++count_;
    c_->world().all_reduce(x_, sum_, ReduceOp::sum);
    device.blas().axpy(1.0, sum_, total_);
    // Buffers that come and go within the interval need not be in the checkpoint.
    const auto next = device.alloc<double>(kLength);
    device.fill(next, 1.0);
    device.blas().axpy(1.5, x_, next);
    device.copy(next, x_);
    if (how_.makes_room_late) {
      if (!late_) late_ = device.alloc<double>(kLength);
      device.copy(x_, late_);
    }
    if (how_.counts_on_host) device.fill(x_.slice(17, 1), static_cast<double>(executed_));
    if (how_.noise != 0)
      device.fill(x_.slice(3, 1), 100 + how_.noise * static_cast<double>(executed_));
    return i + 1 < kSteps ? Step::again : Step::done;
  }

  Context* c_;
  Case how_;
  Checkpoint checkpoint_;
  GpuRef<double> x_, total_, sum_, late_;
  std::int64_t count_ = 0, executed_ = 0;
};

void expect_found(Context& c, const Result<void>& outcome, const std::vector<std::string>& words,
                  const std::string& what) {
  c.expect_equal(outcome.code(), Errc::stopped, what + ": something is found");
  if (outcome.ok()) return;
  for (const auto& word : words) {
    c.expect(outcome.error().message.find(word) != std::string::npos,
             what + ": no \"" + word + "\" in: " + outcome.error().message);
  }
}

/// What is found is told by rank 0 for all, with the numbers that its buffers have.
std::string of_rank_0(Context& c, std::uint32_t buffer) {
  return std::to_string(c.world().gather_values(buffer)[0]);
}

}  // namespace

TROUPE_MPI_CASE(rehearsal) {
  const auto intervals = static_cast<std::size_t>(kSteps / kCommitEvery);
  {
    const auto before = c.world().recoveries().size();
    Rehearsed right(c, {});
    const auto outcome = right.run();
    c.expect(outcome.ok(), "nothing is found where nothing is wrong");
    right.expect_right("rehearsed");
    c.expect(right.executed() >= 2 * kSteps, "every step is done twice");
    c.expect_equal(c.world().recoveries().size() - before, 2 * intervals,
                   "two device hosts are lost in each interval");
  }
  {
    const auto before = c.world().recoveries().size();
    Rehearsed forgets(c, {.adds_total = false});
    const auto outcome = forgets.run();
    expect_found(
        c, outcome,
        {"rank 0: buffer " + of_rank_0(c, forgets.total_index()) + " (a vector, 500 of f64)",
         "steps 0 to 3", "is no part of the checkpoint"},
        "a buffer of the state is left out");
    c.expect(forgets.executed() == kCommitEvery && c.world().recoveries().size() == before,
             "it is found before the first fault");
  }
  {
    Rehearsed forgets(c, {.adds_scratch = false});
    expect_found(c, forgets.run(),
                 {"buffer " + of_rank_0(c, forgets.scratch_index()) + " (500 of f64)"},
                 "scratch is left out");
  }
  {
    Rehearsed late(c, {.makes_room_late = true});
    const auto outcome = late.run();
    expect_found(c, outcome, {"buffer " + of_rank_0(c, late.late_index()) + " (500 of f64)"},
                 "room that a step makes is left out");
  }
  {
    Rehearsed counts(c, {.counts_on_host = true});
    expect_found(c, counts.run(),
                 {"entry x differs after steps 0 to 3", "element 17 was 4 and is ",
                  "(1 of 500 elements differ)", "lost at step "},
                 "a value on the host is left out");
  }
}

/// Steps that are done several at once: the device host is lost in one that there is.
TROUPE_MPI_CASE(rehearsal_of_strides) {
  constexpr std::int64_t kStride = 4, kCalls = 12;
  const auto before = c.world().recoveries().size();
  auto x = c.device().alloc<double>(kLength);
  c.device().fill(x, 1.0).get();
  Checkpoint state(c.device());
  state.add("x", x);
  c.world().run(state,
                [&](std::int64_t i) {
                  c.device().blas().scal(1.5, x);
                  return i + kStride < kCalls * kStride ? Step::again : Step::done;
                },
                {.commit_every = 2 * kStride, .stride = kStride});
  c.expect_equal(c.world().recoveries().size() - before, kCalls,
                 "two device hosts are lost in each interval of two calls");
  c.expect_equal(c.device().download(x)[0], std::pow(1.5, kCalls), "the state");
}

/// With a tolerance of 1e-3.
TROUPE_MPI_CASE(rehearsal_within) {
  Rehearsed slightly(c, {.noise = 1e-4});
  const auto outcome = slightly.run();
  c.expect(outcome.ok(), "noise within the tolerance: " +
                             (outcome.ok() ? std::string() : outcome.error().message));
  Rehearsed more(c, {.noise = 10});
  expect_found(c, more.run(), {"entry x differs", "element 3 was 140 and is "},
               "noise beyond the tolerance");
}

}  // namespace troupe::test
