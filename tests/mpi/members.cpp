#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "mpi_tests.hpp"
#include "nvml_fake.hpp"

// Worlds that lose ranks for good and get them back (--on-loss shrink), with a result that is known
// exactly and does not depend on who computes which part of it.

namespace troupe::test {
namespace {

using memory::FaultKind;

constexpr std::int64_t kGlobal = 60'000;  ///< elements over all ranks
constexpr std::int64_t kCommitEvery = 10;

/// A rank of the job loses its device for good at a step, once.
struct Loss {
  std::int64_t step;
  int job_rank;
  FaultKind kind = FaultKind::kill;
  std::function<void()> instead = {};  ///< of a fault
};

/// A vector that is dealt out in blocks, and a sum over all of it that every rank has: in step i
/// x[g] += i + g, then total += sum of x.
class Blocks {
 public:
  Blocks(Context& c, std::vector<Loss> plan)
      : c_(&c), me_(c.rank()), plan_(std::move(plan)), checkpoint_(c.device()) {
    share_out();
  }

  /// Until `enough` says so of a step that was done: of all ranks alike.
  void run(const std::function<bool(std::int64_t step)>& enough) {
    const RunOptions options{.commit_every = kCommitEvery,
                             .redistribute = [this](const SavedState& state) { take_over(state); },
                             .resized = [this] { share_out(); },
                             .spectate =
                                 [this] {
                                   ++watched_;
                                   std::this_thread::sleep_for(1ms);
                                 }};
    c_->world().run(
        checkpoint_,
        [&](std::int64_t i) {
          ++executed_;
          steps_ = i + 1;
          one_step(i);
          return enough(i) ? Step::done : Step::again;
        },
        options);
  }

  void check() {
    double total = 0, all = 0;
    const auto n = static_cast<double>(kGlobal);
    for (std::int64_t i = 0; i < steps_; ++i) {
      all += n * static_cast<double>(i) + n * (n - 1) / 2;
      total += all;
    }
    const auto steps = static_cast<double>(steps_);
    const auto x = c_->device().download(x_);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto g = static_cast<double>(first_ + static_cast<std::int64_t>(k));
      const double expected = steps * (steps - 1) / 2 + steps * g;
      c_->expect_equal(
          x[k], expected,
          "an element is " + std::to_string(x[k]) + ", not " + std::to_string(expected));
    }
    const auto has = c_->device().download(total_)[0];
    c_->expect_equal(has, total,
                     "the sum is " + std::to_string(has) + ", not " + std::to_string(total));
  }

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] std::int64_t executed() const { return executed_; }
  [[nodiscard]] std::int64_t watched() const { return watched_; }
  [[nodiscard]] int shares() const { return shares_; }

 private:
  void share_out() {
    ++shares_;
    auto& device = c_->device();
    const std::int64_t n = c_->size(), me = c_->rank();
    first_ = kGlobal * me / n;
    const auto count = kGlobal * (me + 1) / n - first_;
    range_ = {first_, count};
    for (auto* ref : {&x_, &index_, &one_}) *ref = device.alloc<double>(count);
    for (auto* ref : {&part_, &total_}) *ref = device.alloc<double>(1);
    std::vector<double> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), static_cast<double>(first_));
    device.upload(std::span<const double>(numbers), index_).get();
    device.fill(one_, 1.0);
    device.fill(x_, 0.0);
    device.fill(total_, 0.0);
    device.nop().get();
    checkpoint_.add("x", x_);
    checkpoint_.add("total", total_);
    checkpoint_.add_constant<std::int64_t>("range", range_);
    checkpoint_.add_scratch(part_);
  }

  void take_over(const SavedState& state) {
    std::vector<SavedPiece> pieces;
    for (int part = 0; part < state.parts(); ++part) pieces.push_back({part, "range", 0, 2});
    const auto ranges = state.read(pieces).take();
    pieces = {{0, "total", 0, 1}};
    for (int part = 0; part < state.parts(); ++part) {
      const auto range = SavedState::as<std::int64_t>(ranges[static_cast<std::size_t>(part)]);
      const auto from = std::max(range[0], range_[0]),
                 to = std::min(range[0] + range[1], range_[0] + range_[1]);
      if (from >= to) continue;
      pieces.push_back({part, "x", static_cast<std::uint64_t>(from - range[0]),
                        static_cast<std::uint64_t>(to - from)});
    }
    const auto read = state.read(pieces).take();
    std::vector<double> mine;
    for (std::size_t i = 1; i < read.size(); ++i) {
      const auto piece = SavedState::as<double>(read[i]);
      mine.insert(mine.end(), piece.begin(), piece.end());
    }
    const auto total = SavedState::as<double>(read[0]);
    c_->device().upload(std::span<const double>(mine), x_).get();
    c_->device().upload(std::span<const double>(total), total_).get();
  }

  void one_step(std::int64_t i) {
    auto& device = c_->device();
    device.blas().axpy(static_cast<double>(i), one_, x_);
    std::erase_if(plan_, [&](const Loss& loss) {
      if (loss.step != i) return false;
      if (loss.job_rank != me_) return true;
      if (loss.instead) {
        loss.instead();
      } else {
        device.inject(loss.kind);
      }
      return true;
    });
    device.blas().axpy(1.0, index_, x_);
    device.blas().dot(one_, x_, part_);
    c_->world().all_reduce(part_, ReduceOp::sum);
    device.blas().axpy(1.0, part_, total_);
    device.nop().get();
  }

  Context* c_;
  int me_;  ///< in the job
  std::vector<Loss> plan_;
  std::int64_t first_ = 0;
  std::array<std::int64_t, 2> range_{};
  GpuRef<double> x_, index_, one_, part_, total_;
  Checkpoint checkpoint_;
  std::int64_t steps_ = 0, executed_ = 0, watched_ = 0;
  int shares_ = 0;
};

std::vector<int> job_ranks(Context& c) {
  std::vector<int> ranks;
  for (int rank = 0; rank < c.size(); ++rank) ranks.push_back(c.world().job_rank(rank));
  return ranks;
}

}  // namespace

/// One rank after another is lost for good, rank 0 of the job too: the others go on from the last
/// commit with all of the data.
TROUPE_MPI_CASE(shrink) {
  const int me = c.rank(), all = c.size();
  const auto token = c.device().alloc<double>(8).token();
  const auto tokens = c.world().gather_values(token);
  Blocks blocks(c, {{37, all - 1}, {63, 0, FaultKind::device_failure}});
  blocks.run([](std::int64_t step) { return step + 1 == 100; });
  const bool out = me == 0 || me == all - 1;
  c.expect_equal(c.world().spectator(), out, "the wrong ranks are spectators");
  if (out) {
    c.expect(c.size() == 0 && c.rank() == -1, "a spectator has a rank");
    c.expect(blocks.watched() > 0, "a spectator has had no time of its own");
    return;
  }
  std::vector<int> left(static_cast<std::size_t>(all) - 2);
  std::iota(left.begin(), left.end(), 1);
  c.expect_equal(job_ranks(c), left, "the members are not those that are left");
  c.expect_equal(c.rank(), me - 1, "the members are not numbered anew");
  c.expect_equal(blocks.steps(), 100, "not all steps were done");
  c.expect(blocks.executed() >= 100 && blocks.executed() <= 100 + 2 * (2 * kCommitEvery + 1),
           std::to_string(blocks.executed()) + " steps for 100: not from the last commit on");
  c.expect_equal(blocks.shares(), 3, std::to_string(blocks.shares()) + " shares were made");
  blocks.check();
  const auto list = c.world().recoveries();
  const auto failed =
      std::count_if(list.begin(), list.end(), [](const auto& r) { return r.kind == "failed"; });
  c.expect_equal(failed, 2, std::to_string(failed) + " losses are reported");

  // Names of what the lost ranks had, and of what is not in the world any more.
  const auto mine = c.device().alloc<double>(8);
  c.expect_equal(c.world().fetch(tokens.back(), mine).wait().code(), Errc::peer_lost,
                 "a token of an excluded rank does not say so");
  c.expect_equal(c.world().hold(tokens.front()).wait().code(), Errc::peer_lost,
                 "a token of an excluded rank can be held");
  c.expect_equal(c.world().device(Rank(c.size())).nop().wait().code(), Errc::peer_lost,
                 "there is a device of a rank that there is not");
  c.expect(c.world().device(Rank(0)).nop().wait().ok(),
           "the device of the new rank 0 is not there");
  (void)c.device().take_error();
}

/// A program that handles faults itself sees the members change when it acknowledges an epoch.
TROUPE_MPI_CASE(shrink_by_hand) {
  const int me = c.rank(), all = c.size();
  const auto ones = c.device().alloc<std::int64_t>(16);
  c.device().fill<std::int64_t>(ones, 1).get();
  c.world().barrier();
  if (me == 1) c.device().inject(FaultKind::kill);
  const auto end = Clock::now() + kDeadline;
  const auto epoch = c.world().epoch();
  while (c.world().epoch() == epoch && Clock::now() < end) {
    (void)c.world().wait_active();
    std::this_thread::sleep_for(1ms);
  }
  c.require(c.world().epoch() != epoch, "the loss goes unnoticed");
  c.expect_equal(c.world().spectator(), (me == 1), "the wrong rank is a spectator");
  (void)c.device().take_error();
  if (c.world().spectator()) {
    c.expect_equal(c.device().nop().wait().code(), Errc::budget_exhausted,
                   "a lost device does not say why");
    return;
  }
  c.expect(c.size() == all - 1 && c.rank() == (me == 0 ? 0 : me - 1), "rank and size are not new");
  for (int i = 0; i < 3; ++i) {
    auto sum = c.device().alloc<std::int64_t>(16);
    c.world().all_reduce(ones, sum, ReduceOp::sum).get();
    for (const auto value : c.device().download(sum))
      c.expect_equal(value, all - 1, "a sum over " + std::to_string(value) + " ranks");
  }
  c.expect_equal(c.world().gather_values(me).size(), static_cast<std::size_t>(all) - 1,
                 "the host collectives have other members");
}

/// A GPU says that it is failing: with --on-health shrink the world goes on without it, and loses
/// nothing; else all is as before. All ranks hear of it.
TROUPE_MPI_CASE(failing_gpu) {
  const int me = c.rank(), all = c.size();
  const bool leaves = c.runtime().config().text("on-health") == "shrink";
  void* const module = ::dlopen(c.runtime().config().text("nvml").c_str(), RTLD_NOW);
  c.require(module != nullptr, "--nvml names no library");
  auto& gpu = *reinterpret_cast<FakeNvmlOf>(::dlsym(module, kFakeNvmlOf))();
  constexpr unsigned long long kXid = 8;
  const auto says = [&] {
    gpu.raise(kXid, 31);  // which is nobody else's business
    gpu.raise(kXid, 64);
  };
  Blocks blocks(c, {{37, 1, FaultKind::kill, says}});
  blocks.run([&](std::int64_t step) { return step >= 60 && (!leaves || c.size() == all - 1); });
  const auto end = Clock::now() + kDeadline;
  while (c.world().health_events().empty() && Clock::now() < end) std::this_thread::sleep_for(1ms);
  const auto events = c.world().health_events();
  c.require_equal(events.size(), 1, std::to_string(events.size()) + " events are told, not one");
  c.expect(events[0].rank == 1 && events[0].kind == HealthKind::remapping && events[0].failing &&
               events[0].text == "Xid 64: a row of memory cannot be replaced",
           "rank " + std::to_string(events[0].rank) + " has said: " + events[0].text);
  c.expect_equal(c.world().spectator(), (leaves && me == 1), "the wrong ranks are spectators");
  const auto recoveries = c.world().recoveries();
  c.expect_equal(recoveries.size(), (leaves ? 1u : 0u),
                 std::to_string(recoveries.size()) + " recoveries");
  if (leaves)
    c.expect(recoveries[0].kind == "withdrawn" && recoveries[0].rank == 1, "it was another loss");
  if (c.world().spectator()) {
    c.expect_equal(c.device().nop().wait().code(), Errc::device_failed,
                   "a GPU that was left works");
    return;
  }
  c.expect_equal(c.size(), (leaves ? all - 1 : all), "the world has another size");
  blocks.check();
}

/// A rank that is lost late in a job tries its device as late as one that is lost early.
TROUPE_MPI_CASE(rejoin_after) {
  const auto after = c.runtime().config().duration("rejoin-after");
  std::this_thread::sleep_for(after);
  c.world().barrier();
  const auto lost = Clock::now();
  if (c.rank() == 1) c.device().inject(FaultKind::kill);
  const auto is_back = [&] {
    const auto list = c.world().recoveries();
    return std::any_of(list.begin(), list.end(), [](const auto& r) { return r.kind == "rejoin"; });
  };
  while (!is_back() && Clock::now() - lost < after + kDeadline) {
    std::this_thread::sleep_for(1ms);
    (void)c.world().wait_active();
  }
  c.expect(is_back(), "the lost rank does not come back");
  c.expect(Clock::now() - lost >= after, "the lost rank has not waited with its return");
  c.require(settle(c, 2), "the world is not whole again");
  (void)c.device().take_error();
}

/// Ranks that were lost come back: the world grows again, with the data.
TROUPE_MPI_CASE(grow) {
  const int me = c.rank(), all = c.size();
  std::vector<Loss> losses{{37, all - 1}};
  if (all > 2) losses.push_back({38, 1, FaultKind::device_failure});
  Blocks blocks(c, losses);
  blocks.run([&](std::int64_t step) { return step >= 60 && c.size() == all; });
  c.expect(!c.world().spectator() && c.size() == all && c.rank() == me,
           "the world is not what it was");
  blocks.check();
  const auto list = c.world().recoveries();
  const auto of_kind = [&](const std::string& kind) {
    return std::count_if(list.begin(), list.end(), [&](const auto& r) { return r.kind == kind; });
  };
  c.expect(of_kind("failed") >= std::ssize(losses) && of_kind("rejoin") == of_kind("failed"),
           std::to_string(of_kind("failed")) + " ranks were lost, " +
               std::to_string(of_kind("rejoin")) + " came back");
  for (const auto steps : c.world().gather_values(blocks.steps()))
    c.expect_equal(steps, blocks.steps(), "the ranks have done different steps");
}

}  // namespace troupe::test
