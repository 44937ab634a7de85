#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include <mpi.h>

#include "mpi_tests.hpp"

// How runs end, and what of them counts: errors, exceptions of the program's own, the last step.

namespace troupe::test {
namespace {

using memory::FaultKind;

constexpr std::int64_t kRunLength = 1000;

std::string told(const Result<void>& outcome) {
  return outcome.ok() ? "success" : outcome.error().to_string();
}

/// x += 1 in every step, behind work that keeps the device busy.
struct Counter {
  explicit Counter(Context& context) : c(&context), checkpoint(context.device()) {
    auto& device = c->device();
    x = device.alloc<double>(kRunLength);
    one = device.alloc<double>(kRunLength);
    busy = device.alloc<double>(400 * kRunLength);
    device.fill(x, 0.0);
    device.fill(one, 1.0);
    checkpoint.add("x", x);
    checkpoint.add_scratch(busy);
  }
  void step() {
    for (int k = 0; k < 10; ++k) c->device().fill(busy, static_cast<double>(k));
    c->device().blas().axpy(1.0, one, x);
  }
  /// The error with which the run ends; success if it ends well.
  Result<void> run(std::int64_t steps, const std::function<void(std::int64_t)>& at,
                   const RunOptions& options = {.commit_every = 10}) {
    try {
      c->world().run(
          checkpoint,
          [&](std::int64_t i) {
            step();
            if (at) at(i);
            return i + 1 < steps ? Step::again : Step::done;
          },
          options);
    } catch (const Exception& e) {
      return e.error();
    }
    return {};
  }
  void expect(std::int64_t steps, const std::string& what) {
    const auto values = c->device().download(x);
    c->expect_equal(std::count(values.begin(), values.end(), static_cast<double>(steps)),
                    kRunLength, what + ": x is " + std::to_string(values[0]));
  }

  Context* c;
  Checkpoint checkpoint;
  GpuRef<double> x, one, busy;
};

}  // namespace

/// A command that fails and whose future nobody keeps, right before a commit: the commit does not
/// count, whether or not a fault follows, and the error is told.
TROUPE_MPI_CASE(failed_commit) {
  const SharedFolder folder(c);
  for (const bool fault : {false, true}) {
    const std::string what = fault ? "fault" : "no-fault";
    Counter counter(c);
    bool struck = false;  // the run may end before
    const auto before = c.world().recoveries().size();
    const auto save = SaveOptions{.directory = folder.path(), .name = what, .every = 10};
    const auto outcome = counter.run(30,
                                     [&](std::int64_t i) {
                                       if (i == 19) (void)c.world().broadcast(counter.x, Rank(99));
                                       if (fault && i == 20 && c.first()) {
                                         struck = true;
                                         c.device().inject(FaultKind::kill);
                                       }
                                     },
                                     {.commit_every = 10, .save = save});
    c.expect(!outcome.ok(), what + ": the run ends well");
    c.expect(outcome.code() != Errc::device_lost && outcome.code() != Errc::world_reformed,
             what + ": it ends with " + told(outcome));
    if (c.world().gather_values(struck)[0])
      c.require(settle(c, before + 1), what + ": the world does not come back");
    // Afterwards the next run begins anew, and takes nothing of this one for its own.
    (void)c.device().take_error();
    Counter next(c);
    const auto ended = next.run(12, {}, {.commit_every = 5, .save = SaveOptions{}});
    c.expect(ended.ok(), what + ": the next run ends with " + told(ended));
    next.expect(12, what + ": the next run");
    const auto found = c.world().find_state(save);
    c.require(found.ok(), what + ": the folder of states cannot be read");
    c.expect(!*found || (*found)->step() <= 10,
             what + ": the state of a commit that failed is on disk");
  }
}

/// A fault before run() undoes some of what the run begins with, and nobody looks at a future: the
/// run does not begin with the rest.
TROUPE_MPI_CASE(lost_before_run) {
  auto& device = c.device();
  const std::int64_t ranks = c.size(), all = ranks * (ranks + 1) / 2;
  Checkpoint checkpoint(device);
  auto x = device.alloc<std::int64_t>(kRunLength);
  checkpoint.add("x", x);
  const auto make = [&] {
    device.fill<std::int64_t>(x, c.rank() + 1);
    c.world().all_reduce(x, ReduceOp::sum);
  };
  const auto run = [&]() -> Result<void> {
    try {
      c.world().run(checkpoint,
                    [&](std::int64_t i) {
                      c.world().all_reduce(x, ReduceOp::max);
                      return i < 5 ? Step::again : Step::done;
                    },
                    {.commit_every = 2});
    } catch (const Exception& e) {
      return e.error();
    }
    return {};
  };
  const auto strike = [&] {
    const auto before = c.world().recoveries().size();
    c.world().barrier();
    if (c.first()) (void)device.inject(FaultKind::kill).wait();
    while (c.world().recoveries().size() == before)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    c.world().barrier();
  };
  const auto expect_sums = [&](const std::string& what) {
    const auto values = device.download(x);
    c.expect_equal(std::count(values.begin(), values.end(), all), kRunLength,
                   what + ": x is " + std::to_string(values[0]));
  };
  // The collective is of an epoch that has ended: it is refused.
  strike();
  make();
  auto outcome = run();
  c.expect(outcome.code() == Errc::device_lost || outcome.code() == Errc::world_reformed,
           "a run begins with what a fault has spoilt, and ends with " + told(outcome));
  c.expect(outcome.ok() || outcome.error().message.find("wait_active") != std::string::npos,
           "the error does not say what to do: " + told(outcome));
  outcome = run();
  c.expect(outcome.code() == Errc::device_lost || outcome.code() == Errc::world_reformed,
           "the next run begins with it, and ends with " + told(outcome));
  // Who has acknowledged the fault makes it again.
  c.require(settle(c, c.world().recoveries().size()), "the world does not come back");
  if (!x.valid()) x.renew();
  make();
  outcome = run();
  c.expect(outcome.ok(), "a run after wait_active() ends with " + told(outcome));
  expect_sums("after wait_active()");
  // An error is no fault, and ends the run on all ranks.
  if (c.first()) (void)c.world().send(x, Rank(99));
  outcome = run();
  c.expect_equal(outcome.code(), Errc::invalid, "a run behind an error ends with " + told(outcome));
  outcome = run();
  c.expect(outcome.ok(), "the run after the error was told ends with " + told(outcome));
}

/// Faults while the program makes what the run begins with: it makes it again.
TROUPE_MPI_CASE(fault_in_prepare) {
  auto& device = c.device();
  const std::int64_t ranks = c.size(), all = ranks * (ranks + 1) / 2;
  Checkpoint checkpoint(device);
  GpuRef<std::int64_t> x;
  auto kept = device.alloc<std::int64_t>(kRunLength);  // there before, and written by each call
  const auto before = c.world().recoveries().size();
  int tries = 0;
  c.world().run(checkpoint,
                [&](std::int64_t i) {
                  c.world().all_reduce(x, ReduceOp::max);
                  return i < 5 ? Step::again : Step::done;
                },
                {.commit_every = 2, .prepare = [&] {
                   const int number = tries++;
                   x = device.alloc<std::int64_t>(kRunLength);
                   checkpoint.add("x", x);
                   kept.restore();
                   device.fill<std::int64_t>(kept, c.rank() + 1);
                   c.world().all_reduce(kept, ReduceOp::sum);
                   if (number == 0 && c.first()) device.inject(FaultKind::kill);
                   device.fill<std::int64_t>(x, c.rank() + 1);
                   if (number == 1 && c.rank() == c.size() - 1) device.inject(FaultKind::kill);
                   c.world().all_reduce(x, ReduceOp::sum);
                 }});
  c.expect(tries >= 3, "two faults, and it is made " + std::to_string(tries) + " times");
  c.expect_equal(c.world().recoveries().size(), before + 2, "not two recoveries");
  const auto values = device.download(x);
  c.expect_equal(std::count(values.begin(), values.end(), all), kRunLength,
                 "x is " + std::to_string(values[0]));
  const auto others = device.download(kept);
  c.expect_equal(std::count(others.begin(), others.end(), all), kRunLength,
                 "what was there before is " + std::to_string(others[0]));
  // What it throws of its own ends the run on all ranks.
  try {
    c.world().run(checkpoint, [](std::int64_t) { return Step::done; }, {.prepare = [&] {
                    if (c.first())
                      throw Exception({Errc::invalid, 0, "the first does not want to"});
                  }});
    c.expect(false, "an exception in prepare does not end the run");
  } catch (const CollectiveException& e) {
    c.expect_equal(e.code(), Errc::invalid, std::string("an exception in prepare: ") + e.what());
  }
}

/// Two runs with one checkpoint: the second goes back to commits of its own.
TROUPE_MPI_CASE(run_twice) {
  Counter counter(c);
  auto outcome = counter.run(14, {}, {.commit_every = 5});
  c.expect(outcome.ok(), "the first run ends with " + told(outcome));
  counter.expect(14, "after the first run");
  for (const std::int64_t at : {0, 2, 8}) {
    bool struck = false;
    outcome = counter.run(12,
                          [&](std::int64_t i) {
                            if (i == at && !std::exchange(struck, true) && c.first())
                              c.device().inject(FaultKind::kill);
                          },
                          {.commit_every = 5});
    c.expect(outcome.ok(), "a run with its checkpoint ends with " + told(outcome));
    c.require(settle(c, c.world().recoveries().size()), "the world does not come back");
  }
  counter.expect(14 + 3 * 12, "after the other runs");
}

/// The last rank alone leaves run() by an error of its own, while the others wait for its commits,
/// or, with a fault behind the error, are taken back: theirs ends at once.
TROUPE_MPI_CASE(left_alone) {
  for (const bool fault : {false, true}) {
    const std::string what = fault ? "fault" : "no-fault";
    const bool last = c.rank() == c.size() - 1;
    const auto before = c.world().recoveries().size();
    Counter counter(c);
    const auto outcome = counter.run(1000, [&](std::int64_t i) {
      if (i != 15 || !last) return;
      if (fault) c.device().inject(FaultKind::kill);
      throw Exception({Errc::unsupported, 0, "of its own"});
    });
    c.expect_equal(outcome.code(), Errc::unsupported, what + ": it ends with " + told(outcome));
    const auto by = "rank " + std::to_string(c.size() - 1) + " has left the run: of its own";
    c.expect(last || outcome.error().message == by, what + ": it ends with " + told(outcome));
    const auto list = c.world().recoveries();
    const auto is_left = [](const Recovery& recovery) { return recovery.kind == "left"; };
    c.expect_equal(
        std::count_if(list.begin() + static_cast<std::ptrdiff_t>(before), list.end(), is_left), 1,
        what + ": not one recovery is of the kind left");
    (void)c.device().take_error();
    Counter next(c);
    const auto ended = next.run(25, {});
    c.expect(ended.ok(), what + ": the next run ends with " + told(ended));
    next.expect(25, what + ": the next run");
  }
}

/// An exception of the program's own leaves run() on all ranks while the world is re-formed.
TROUPE_MPI_CASE(left_run) {
  struct Mine {};
  Counter counter(c);
  const auto before = c.world().recoveries().size();
  bool left = false;
  try {
    // Whoever hears of another rank's exception before it has thrown its own ends with that.
    left = !counter
                .run(100,
                     [&](std::int64_t i) {
                       // A rank that was between two steps is taken back first: no other is there
                       // any more.
                       if (c.world().recoveries().size() > before) throw Mine();
                       if (i == 15 && c.first()) c.device().inject(FaultKind::kill);
                       if (i >= 15 && !c.world().all_reduce(counter.one, ReduceOp::max).wait().ok())
                         throw Mine();
                     })
                .ok();
  } catch (const Mine&) {
    left = true;
  }
  c.expect(left, "the program's own exception does not come out of the run");
  c.require(settle(c, before + 1), "the world does not come back");
  if (!counter.x.valid()) counter.x.renew();
  if (!counter.one.valid()) counter.one.renew();
  (void)c.device().take_error();
  const auto filled = c.device().fill(counter.x, 0.0);
  c.expect(filled.wait().ok(), "nothing can be submitted any more");
  c.device().fill(counter.one, 1.0);
  Counter next(c);
  // The second run has fewer commits than the first had: those must not be taken for its own.
  const auto outcome = next.run(25, [&, struck = false](std::int64_t i) mutable {
    if (i == 3 && !std::exchange(struck, true) && c.first()) c.device().inject(FaultKind::kill);
  });
  c.expect(outcome.ok(), "the next run ends with " + told(outcome));
  next.expect(25, "the next run");
}

/// What fails in the very last step is told by run().
TROUPE_MPI_CASE(last_error) {
  Counter counter(c);
  const auto outcome = counter.run(15, [&](std::int64_t i) {
    if (i == 14) (void)c.world().send(counter.x, Rank(99));
  });
  c.expect(!outcome.ok(), "a run whose last step fails ends well");
  (void)c.device().take_error();
}

/// Losses right at the end and right behind a run: its result is there all the same.
TROUPE_MPI_CASE(last_read) {
  for (int round = 0; round < 6; ++round) {
    const auto what = "round " + std::to_string(round);
    Counter counter(c);
    // Two device hosts die in the last step, with its work still to come.
    const auto outcome = counter.run(15, [&, struck = false](std::int64_t i) mutable {
      if (i != 14 || std::exchange(struck, true) || round % 2 != 0) return;
      if (c.rank() < 2) c.device().inject(FaultKind::kill);
      counter.c->device().fill(counter.busy, 1.0);
    });
    c.expect(outcome.ok(), what + ": " + told(outcome));
    if (c.rank() == round % c.size()) c.device().inject(FaultKind::kill);
    try {
      counter.expect(15, what);
    } catch (const Exception& e) {
      c.expect(false, what + ": a download behind the run fails with " + e.error().to_string());
    }
    c.require(settle(c, c.world().recoveries().size()), what + ": the world does not come back");
    (void)c.device().take_error();
    c.world().barrier();
  }
}

namespace {
/// The last rank ends with this status, and the others wait for it in a barrier.
void leave_the_others(Context& c, int status) {
  if (c.rank() != c.size() - 1) c.world().barrier();
  c.end_with(status);
}
}  // namespace

/// A rank that leaves with a status of its own while the others wait for it ends the job with it.
TROUPE_MPI_CASE(early_return) {
  leave_the_others(c, 3);
}

/// One that ends well does not let them wait for ever either.
TROUPE_MPI_CASE(ended_program) {
  leave_the_others(c, kExitSuccess);
}

/// The last rank ends its run before the others, in the same interval between two commits: that can
/// never end well, and is said.
TROUPE_MPI_CASE(disagreement) {
  Counter counter(c);
  const auto outcome = counter.run(c.rank() == c.size() - 1 ? 10 : 40, {}, {.commit_every = 1000});
  // The world has ended: on all ranks alike.
  throw CollectiveException(outcome.ok() ? Error{Errc::internal, 0, "the run ends well"}
                                         : outcome.error());
}

/// The last rank comes to a host collective when all have said where they are, and the line that
/// tells of it is written: then the next report is under way. It keeps the dumps of the first one,
/// in the folder "kept".
TROUPE_MPI_CASE(late_to_barrier) {
  namespace fs = std::filesystem;
  const fs::path dumps = c.runtime().config().text("flight-dir");
  c.world().barrier();
  if (c.rank() == c.size() - 1) {
    const auto contents = [](const fs::path& path) {
      std::ifstream file(path);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    std::map<fs::path, std::string> first;
    c.require(eventually([&] {
                for (const auto& entry : fs::directory_iterator(dumps)) {
                  if (entry.path().extension() != ".json") continue;  // it is being written
                  const auto text = contents(entry.path());
                  for (const auto* where :
                       {"waiting in barrier (host collective 2)", "at work outside"}) {
                    if (text.find(where) != std::string::npos) first.emplace(entry.path(), text);
                  }
                }
                return std::ssize(first) == c.size();
              }),
              "not all ranks say where they are");
    fs::create_directory(dumps / "kept");
    for (const auto& [path, text] : first) std::ofstream(dumps / "kept" / path.filename()) << text;
    c.require(eventually([&] {
                return std::all_of(first.begin(), first.end(), [&](const auto& dump) {
                  return contents(dump.first) != dump.second;
                });
              }),
              "there is no second report");
  }
  c.world().barrier();
}

/// Rank 0's program does not turn to a recovery, whatever it does meanwhile, before the log says
/// so.
TROUPE_MPI_CASE(late_to_recovery) {
  const char* const log = std::getenv("LOG_OF_TEST");
  c.require(log != nullptr, "where is the log?");
  const auto said = [&] {
    std::ifstream file(log);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.find("a recovery has waited for") != std::string::npos;
  };
  // In MPI of its own: until another of its threads has read what the log says of that.
  const auto wait_in_mpi = [&] {
    bool heard = false;
    std::thread reader([&] {
      heard = eventually(said);
      MPI_Send(&heard, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF);
    });
    MPI_Recv(&heard, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    reader.join();
    c.require(heard, "nobody says whom the recovery waits for");
  };
  Counter counter(c);
  const auto outcome = counter.run(20, [&, struck = false, waited = false](std::int64_t i) mutable {
    if (i == 7 && c.rank() == c.size() - 1 && !std::exchange(struck, true))
      c.device().inject(FaultKind::kill);
    if (i == 7 && c.first() && !std::exchange(waited, true)) wait_in_mpi();
  });
  c.expect(outcome.ok(), "the run ends with " + told(outcome));
  counter.expect(20, "a rank that was late");
}

/// A full command ring keeps no recovery from going on, nor a second fault in it from being met.
TROUPE_MPI_CASE(full_ring) {
  const auto y = c.device().alloc<float>(1 << 20);
  std::atomic<bool> stop{false};
  std::thread busy;
  if (c.first()) {
    busy = std::thread([&] {
      auto mine = y;
      while (!stop) {
        if (!mine.valid()) mine.renew();
        (void)c.device().fill(mine, 1.0f);
      }
    });
  }
  const auto before = c.world().recoveries().size();
  c.world().barrier();
  if (c.first()) {
    c.world().inject_in_phase(FaultKind::kill, "verify");
    c.device().inject(FaultKind::kill);
  }
  const bool back = eventually([&] { return c.world().recoveries().size() >= before + 1; });
  stop = true;
  if (!back) {
    std::fprintf(stderr, "[rank %d] FAILED: the world does not come back\n", c.rank());
    std::_Exit(1);  // the ring stays full
  }
  if (busy.joinable()) busy.join();
  c.require(settle(c, before + 1), "the world does not work");
  (void)c.device().take_error();
}

}  // namespace troupe::test
