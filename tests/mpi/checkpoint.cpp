#include <random>

#include "mpi_tests.hpp"

// World::run with a step whose result is known exactly: whole numbers in f64, none of whose
// operations may run twice or not at all without showing in the result.

namespace troupe::test {
namespace {

using memory::FaultKind;

constexpr std::int64_t kLength = 5000;

/// When and how a rank's device host dies; every rank knows the whole plan.
struct Strike {
  std::int64_t step;
  int rank;
  FaultKind kind;
  std::string phase;  ///< beside the fault at `step`, another one in this phase of the recovery;
                      ///< empty: none
};

/// A state of device buffers and host values, and its step: x += step + rank; total += sum over
/// ranks of x; the left neighbour's x is received and added to seen; host values count and hash the
/// steps.
class Machine {
 public:
  Machine(Context& c, std::vector<Strike> plan)
      : c_(&c), plan_(std::move(plan)), checkpoint_(c.device()) {
    for (auto* ref : {&x_, &total_, &seen_, &sum_, &halo_})
      *ref = c.device().alloc<double>(kLength);
    one_ = c.device().alloc<double>(kLength);
    c.device().fill(one_, 1.0);
    for (auto* ref : {&x_, &total_, &seen_}) c.device().fill(*ref, 0.0);
    checkpoint_.add("x", x_);
    checkpoint_.add("total", total_);
    checkpoint_.add("seen", seen_);
    checkpoint_.add_scratch(sum_);
    checkpoint_.add_scratch(halo_);
    checkpoint_.add_value("count", count_);
    checkpoint_.add_value("hash", hash_);
    c.device().nop().get();
  }

  void run(std::int64_t steps, std::int64_t commit_every) {
    c_->world().run(checkpoint_,
                    [&](std::int64_t i) {
                      ++executed_;
                      one_step(i);
                      return i + 1 < steps ? Step::again : Step::done;
                    },
                    {.first_step = 0, .commit_every = commit_every});
  }

  void check(std::int64_t steps, const std::string& what) {
    const auto n = static_cast<std::int64_t>(c_->size()),
               me = static_cast<std::int64_t>(c_->rank());
    std::int64_t x = 0, neighbour = 0, total = 0, seen = 0, all = 0;
    std::uint64_t hash = 0;
    const auto left = (me + n - 1) % n;
    for (std::int64_t i = 0; i < steps; ++i) {
      x += i + me;
      neighbour += i + left;
      all += n * i + n * (n - 1) / 2;
      total += all;
      seen += neighbour;
      hash = hash * 31 + static_cast<std::uint64_t>(i);
    }
    expect_all(x_, x, what + ": x");
    expect_all(total_, total, what + ": the sum over ranks");
    expect_all(seen_, seen, what + ": what came from the neighbour");
    c_->expect(count_ == steps && hash_ == hash,
               what + ": the host values are of " + std::to_string(count_) + " steps");
  }
  [[nodiscard]] std::int64_t executed() const { return executed_; }

 private:
  void one_step(std::int64_t i) {
    auto& device = c_->device();
    auto& world = c_->world();
    device.blas().axpy(static_cast<double>(i + c_->rank()), one_, x_);
    std::erase_if(plan_, [&](const Strike& strike) {
      if (strike.step != i) return false;
      if (strike.rank == c_->rank()) {
        if (!strike.phase.empty()) world.inject_in_phase(FaultKind::kill, strike.phase);
        device.inject(strike.kind);
      }
      return true;
    });
    world.all_reduce(x_, sum_, ReduceOp::sum);
    device.blas().axpy(1.0, sum_, total_);
    const int n = c_->size();
    const Transfer<double> send{x_, Rank((c_->rank() + 1) % n)},
        receive{halo_, Rank((c_->rank() + n - 1) % n)};
    world.exchange<double>({&send, 1}, {&receive, 1});
    device.blas().axpy(1.0, halo_, seen_);
    ++count_;
    hash_ = hash_ * 31 + static_cast<std::uint64_t>(i);
  }
  void expect_all(const GpuRef<double>& ref, std::int64_t expected, const std::string& what) {
    const auto values = c_->device().download(ref);
    const auto right = std::count(values.begin(), values.end(), static_cast<double>(expected));
    c_->expect_equal(
        right, kLength,
        what + " is " + std::to_string(values[0]) + ", not " + std::to_string(expected));
  }

  Context* c_;
  std::vector<Strike> plan_;
  Checkpoint checkpoint_;
  GpuRef<double> x_, total_, seen_, sum_, halo_, one_;
  std::int64_t count_ = 0;
  std::uint64_t hash_ = 0;
  std::int64_t executed_ = 0;
};

void run_round(Context& c, const std::vector<Strike>& plan, std::int64_t steps,
               std::int64_t commit_every, const std::string& what) {
  const auto before = c.world().recoveries().size();
  Machine machine(c, plan);
  machine.run(steps, commit_every);
  machine.check(steps, what);
  const auto recovered = c.world().recoveries().size() - before;
  c.expect_equal((recovered > 0), !plan.empty(),
                 what + ": " + std::to_string(recovered) + " recoveries");
  // A rollback goes back one or two commits at most, whatever the number of faults.
  const auto limit = steps + static_cast<std::int64_t>(recovered + 1) * (2 * commit_every + 2) +
                     static_cast<std::int64_t>(recovered) * 300;
  c.expect(machine.executed() >= steps && machine.executed() <= limit,
           what + ": " + std::to_string(machine.executed()) + " steps were executed for " +
               std::to_string(steps));
}

}  // namespace

/// Without faults, then with faults at random: which steps, ranks, kinds and commit distances a
/// seed decides.
TROUPE_MPI_CASE(checkpoint) {
  run_round(c, {}, 50, 7, "without faults");
  run_round(c, {}, 3, 100, "without a commit but the first");
  const auto kinds = c.device().info().engine == "cuda"
                         ? std::vector{FaultKind::kill, FaultKind::exit, FaultKind::illegal_address,
                                       FaultKind::trap}
                         : std::vector{FaultKind::kill, FaultKind::exit, FaultKind::segv};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    std::mt19937_64 random(seed);
    const auto steps = static_cast<std::int64_t>(40 + random() % 160);
    const auto commit_every = static_cast<std::int64_t>(1 + random() % 30);
    std::vector<Strike> plan;
    for (std::uint64_t i = 0, count = 1 + random() % 2; i < count; ++i) {
      plan.push_back({static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(steps)),
                      static_cast<int>(random() % static_cast<std::uint64_t>(c.size())),
                      kinds[random() % kinds.size()],
                      seed % 2 == 0 && i == 0
                          ? std::string(kRecoveryPhases[random() % std::size(kRecoveryPhases)])
                          : ""});
    }
    std::string what = "seed " + std::to_string(seed) + " (" + std::to_string(steps) +
                       " steps, commits every " + std::to_string(commit_every) + ":";
    for (const auto& s : plan) {
      what += " " + std::string(to_string(s.kind)) + "@" + std::to_string(s.step) + ":" +
              std::to_string(s.rank) + (s.phase.empty() ? "" : "+" + s.phase);
    }
    run_round(c, plan, steps, commit_every, what + ")");
  }
}

/// The corners of a run: the first step, the step after the first commit, the very last step, every
/// rank at once.
TROUPE_MPI_CASE(last_step) {
  const int last = c.size() - 1;
  run_round(c, {{0, 0, FaultKind::kill, ""}}, 20, 5, "a fault in the first step");
  run_round(c, {{5, last, FaultKind::kill, ""}}, 20, 5, "a fault right after the first commit");
  run_round(c, {{19, last, FaultKind::kill, ""}}, 20, 5, "a fault in the very last step");
  run_round(c, {{19, 0, FaultKind::exit, ""}}, 20, 100,
            "a fault in the very last step, nothing committed but the start");
  std::vector<Strike> all;
  for (int rank = 0; rank < c.size(); ++rank) all.push_back({10, rank, FaultKind::kill, ""});
  run_round(c, all, 20, 3, "all ranks in the same step");
  run_round(c, {{0, 0, FaultKind::kill, ""}}, 1, 1, "a run of one step");
}

/// One loss more than the budget allows ends the program; run_program() turns that into its status.
TROUPE_MPI_CASE(budget) {
  Machine machine(c, {{3, 0, FaultKind::kill, ""}, {6, 0, FaultKind::kill, ""}});
  machine.run(20, 2);
  c.expect(false, "the run outlived its budget");
}

}  // namespace troupe::test
