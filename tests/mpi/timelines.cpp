#include <atomic>
#include <optional>
#include <thread>

#include <troupe/actor.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/solver.hpp>

#include "mpi_tests.hpp"

// Work that functions of futures, threads and actors do for the steps of a run, and errors that
// occur when nobody waits for them any more.

namespace troupe::test {
namespace {

using memory::FaultKind;

constexpr std::int64_t kLength = 1000;

/// x += 1 in every step, by whatever the case has do it.
struct StepSum {
  explicit StepSum(Context& context) : c(&context), state(context.device()) {
    auto& device = c->device();
    x = device.alloc<double>(kLength, "x");
    one = device.alloc<double>(kLength);
    scratch = device.alloc<double>(kLength);
    device.fill(x, 0.0);
    device.fill(one, 1.0);
    state.add("x", x);
    state.add_scratch(scratch);
  }
  Future<void> add() { return c->device().blas().axpy(1.0, one, x); }
  Result<void> run(std::int64_t steps, const std::function<void(std::int64_t)>& step,
                   std::int64_t commit_every = 5) {
    try {
      c->world().run(state,
                     [&](std::int64_t i) {
                       step(i);
                       return i + 1 < steps ? Step::again : Step::done;
                     },
                     {.commit_every = commit_every});
    } catch (const Exception& e) {
      return e.error();
    }
    return {};
  }
  void expect(double value, const std::string& what) {
    for (const auto is : c->device().download(x)) {
      if (is == value) continue;
      return c->expect(false,
                       what + ": x is " + std::to_string(is) + " for " + std::to_string(value));
    }
  }
  /// Rank 0's device host is lost, and nobody comes beyond it.
  void lose_and_wait() {
    c->world().barrier();  // all ranks are here, and know it when they come again
    if (c->first()) c->device().inject(FaultKind::kill);
    for (;;) c->world().all_reduce(scratch, ReduceOp::max).get();
  }

  Context* c;
  Checkpoint state;
  GpuRef<double> x, one, scratch;
};

std::string outcome_text(const Result<void>& outcome) {
  return outcome.ok() ? "success" : outcome.error().to_string();
}

struct AddTo {
  StepSum* sum;
  std::shared_ptr<Promise<void>> until;
  std::shared_ptr<std::atomic<Errc>> outcome;
};
/// Adds once it may.
class Adder : public Actor<Adder, AddTo> {
 public:
  void on(AddTo add) {
    if (add.until) add.until->future().wait_ready();
    *add.outcome = add.sum->add().wait().code();
    add.outcome->notify_all();
  }
};

Future<void> add_behind(Future<void> until, StepSum* sum,
                        std::shared_ptr<std::atomic<Errc>> outcome) {
  co_await until;
  *outcome = sum->add().wait().code();
}

/// A step begins work, and the run goes back to before that step. Commands that the work submits
/// afterwards are refused, and the refusals do not count as unread errors.
void undone(Context& c) {
  StepSum sum(c);
  const auto adder = c.runtime().actors().spawn<Adder>({.name = "adder"});
  const auto go = std::make_shared<Promise<void>>();
  std::vector<std::shared_ptr<std::atomic<Errc>>> outcomes;
  for (int i = 0; i < 4; ++i)
    outcomes.push_back(std::make_shared<std::atomic<Errc>>(Errc::internal));
  std::optional<Timeline> kept;
  Future<void> function, coroutine;
  bool again = false;
  const auto ended = sum.run(20, [&](std::int64_t i) {
    if (i == 7 && !std::exchange(again, true)) {
      function =
          go->future().then([&, outcome = outcomes[0]] { *outcome = sum.add().wait().code(); });
      coroutine = add_behind(go->future(), &sum, outcomes[1]);
      adder.tell(AddTo{&sum, go, outcomes[2]}).take();
      kept = c.world().timeline();
      c.expect(kept->current(), "a step has no timeline");
      sum.lose_and_wait();
    } else if (i == 7) {
      c.expect(!kept->current(), "the timeline of a step that is undone still counts");
      std::thread([&] {
        go->resolve({});
        const Timeline::Scope scope(*kept);
        *outcomes[3] = sum.add().wait().code();
      }).join();
      function.wait_ready(), coroutine.wait_ready();
      outcomes[2]->wait(Errc::internal);
    }
    sum.add();
  });
  c.expect(ended.ok(), "a run whose old steps were refused ends with " + outcome_text(ended));
  const char* const names[] = {"a function", "a coroutine", "an actor", "a thread"};
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    c.expect_equal(*outcomes[i], Errc::world_reformed,
                   std::string(names[i]) + " of a step that is undone gets " +
                       std::string(to_string(*outcomes[i])));
  sum.expect(20, "with work for steps that are undone");
  c.expect_equal(c.device().unread_errors().count, 0, "what is undone counts as unread");
}

/// A commit has what the steps before it have begun, whoever does it.
void awaited(Context& c) {
  StepSum sum(c);
  const auto adder = c.runtime().actors().spawn<Adder>({.name = "adder"});
  std::atomic<std::int64_t> ran{0};
  std::thread helper;
  std::atomic<bool> bound{false};
  bool again = false;
  const auto ended = sum.run(30, [&](std::int64_t i) {
    if (i % 5 == 0 && !again)
      c.expect_equal(ran, 3 * i,
                     "behind a commit " + std::to_string(ran) + " of " + std::to_string(3 * i) +
                         " functions have run");
    if (helper.joinable()) helper.join();
    if (i == 17 && !std::exchange(again, true)) sum.lose_and_wait();
    c.device().fill(sum.scratch, 2.0).then([&] { (void)sum.add().then([&] { ++ran; }); });
    const auto outcome = std::make_shared<std::atomic<Errc>>(Errc::internal);
    adder.tell(AddTo{&sum, nullptr, outcome}).take();
    bound = false;
    helper = std::thread([&, timeline = c.world().timeline()] {
      const Timeline::Scope scope(timeline);
      bound = true;
      bound.notify_all();
      for (int yields = 0; yields < 10; ++yields) std::this_thread::yield();
      (void)sum.add();
      ran += 2;
    });
    bound.wait(false);  // from then on a commit waits for it
  });
  if (helper.joinable()) helper.join();
  c.expect(ended.ok(), "a run with helpers ends with " + outcome_text(ended));
  sum.expect(90, "with a function, a message and a thread in each step");
}

/// Who works for no step may not touch the run's memory, and hears so; other memory is free.
void outsiders(Context& c) {
  StepSum sum(c);
  auto other = c.device().alloc<double>(kLength);
  Errc inside = Errc::ok, outside = Errc::internal;
  const auto ended = sum.run(10, [&](std::int64_t i) {
    sum.add();
    if (i != 3) return;
    c.world().barrier();
    std::thread([&] {
      outside = c.device().fill(other, 3.0).wait().code();
      inside = sum.add().wait().code();
    }).join();
    c.world().barrier();  // before any rank leaves the run
  });
  c.expect_equal(outside, Errc::ok, "a thread without a timeline may not use memory of its own");
  c.expect_equal(inside, Errc::invalid, "a thread without a timeline uses the checkpoint's memory");
  c.expect_equal(ended.code(), Errc::invalid, "the run ends with " + outcome_text(ended));
  c.expect(outcome_text(ended).find("Timeline::Scope") != std::string::npos,
           "it does not say how: " + outcome_text(ended));
  (void)c.device().take_error();
  // A function whose future only the program resolves is not waited for, and is no part of a
  // commit.
  StepSum next(c);
  Promise<void> late;
  Errc behind = Errc::ok;
  const auto cut = next.run(10, [&](std::int64_t i) {
    next.add();
    if (i == 3) late.future().then([&] { behind = next.add().wait().code(); });
    if (i != 7) return;
    c.world().barrier();
    late.resolve({});
    c.world().barrier();
  });
  c.expect(behind == Errc::invalid && cut.code() == Errc::invalid,
           "behind a commit the run ends with " + outcome_text(cut));
  (void)c.device().take_error();
}

/// Errors by which faults are known, without a fault: the step is repeated once, and no more.
void doubtful_errors(Context& c) {
  const Error lost{Errc::device_lost, 0, "as another rank's actor says"};
  StepSum sum(c);
  const auto before = c.world().recoveries().size();
  bool thrown = false;
  const auto ended = sum.run(10, [&](std::int64_t i) {
    sum.add();
    if (i == 7 && c.first() && !std::exchange(thrown, true)) throw Exception(lost);
  });
  c.expect(ended.ok(), "a run that met an error once ends with " + outcome_text(ended));
  sum.expect(10, "after an error that no fault explains");
  const auto recoveries = c.world().recoveries();
  c.expect(recoveries.size() == before + 1 && recoveries.back().kind == "error",
           "an error without a fault is no recovery of that kind");
  StepSum next(c);
  const auto stuck = next.run(10, [&](std::int64_t i) {
    next.add();
    if (i == 7 && c.first()) throw Exception(lost);
  });
  c.expect_equal(stuck.code(), Errc::device_lost,
                 "a run that meets it for ever: " + outcome_text(stuck));
  c.world().wait_active().take();
}

/// A sequence keeps the groups of its collectives.
void kept_groups(Context& c) {
  auto x = c.device().alloc<double>(4);
  c.device().fill(x, 1.0);
  Sequence sequence;
  {
    auto group = c.world().split(0);
    sequence = c.device().record([&] { group.all_reduce(x, ReduceOp::sum); });
  }
  { const auto other = c.world().split(0); }  // frees what all have let go of
  const auto run = sequence.run();
  c.require(run.wait_for(kDeadline), "a sequence waits for a group that is gone");
  c.expect(run.wait().ok(), "a sequence whose group was let go: " + outcome_text(run.wait()));
  c.expect_equal(c.device().download(x)[0], c.size(),
                 "a sequence whose group was let go sums wrongly");
}

}  // namespace

TROUPE_MPI_CASE(timelines) {
  undone(c);
  awaited(c);
  outsiders(c);
  doubtful_errors(c);
  kept_groups(c);
}

/// A step that costs a device host each time ends the job, however long it takes.
TROUPE_MPI_CASE(standing_still) {
  StepSum sum(c);
  c.world().run(sum.state,
                [&](std::int64_t i) {
                  sum.add();
                  if (i == 7 && c.first()) c.device().inject(FaultKind::kill);
                  return Step::again;
                },
                {.commit_every = 5});
}

namespace {

struct Work {};
class Late : public Actor<Late, Work> {
 public:
  Result<void> on(Work) {
    std::this_thread::sleep_for(kLate);
    return Error{Errc::io, 0, "the loader has met a broken file"};
  }
  static constexpr auto kLate = 300ms;  ///< the body has returned by then
};

}  // namespace

/// Each rank leaves an error that comes once its body has returned: the job ends with status 1, and
/// the line counts all of them.
TROUPE_MPI_CASE(late_errors) {
  auto a = c.device().alloc<double>(4);
  c.device().upload<double>(std::vector<double>{-1, 0, 0, -1}, a).get();  // not definite
  switch (c.rank()) {
    case 0: c.world().actor<Late>("nobody", Rank(1)).tell(Work{}).take(); break;
    case 1:
      (void)c.device().fill(a.slice(1, 1), 0.0).then([device = c.device(), a]() mutable {
        std::this_thread::sleep_for(Late::kLate);
        (void)solver::on(device).potrf(blas::Uplo::lower, MatrixRef{a, 2, 2, 2});
      });
      break;
    case 2: c.runtime().actors().spawn<Late>({.name = "late"}).tell(Work{}).take(); break;
    default: (void)c.device().compile("__global__ void k(int* x) { garbage }", {.names = {"k"}});
  }
}

}  // namespace troupe::test
