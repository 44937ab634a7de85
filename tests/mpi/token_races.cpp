#include <atomic>
#include <numeric>
#include <thread>

#include "mpi_tests.hpp"

namespace troupe::test {

/// The pieces of a transfer are put where they belong although the source learns in any order that
/// they have been read: threads of the program that takes the answers, and are held up, mix it up.
TROUPE_MPI_CASE(token_pieces) {
  constexpr std::int64_t kLength = 5'000'000;  // 20 pieces
#ifdef TROUPE_BRIEF_TESTS
  constexpr int kRounds = 20;
#else
  constexpr int kRounds = 60;
#endif
  std::vector<std::int64_t> values(kLength);
  std::iota(values.begin(), values.end(), std::int64_t{1});
  const auto source = c.device().alloc<std::int64_t>(kLength);
  c.device().upload<std::int64_t>(values, source).get();
  const auto tokens = c.world().gather_values(source.token());
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  if (c.first()) {
    // Two threads are held up, with all that they took behind their own answer, until a third has
    // been answered several times more.
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        while (!stop) {
          const auto held_up = c.device().nop();
          held_up.on_ready([&](const Result<void>&) {
            const auto before = answered.load();
            const auto end = Clock::now() + 2ms;
            while (answered < before + 20 && Clock::now() < end) std::this_thread::sleep_for(50us);
          });
          held_up.wait();
        }
      });
    }
    threads.emplace_back([&] {
      for (; !stop; ++answered) c.device().nop().wait();
    });
  }
  const auto copy = c.device().alloc<std::int64_t>(kLength);
  for (int round = 0; round < kRounds && !c.first(); ++round) {
    c.device().fill(copy, std::int64_t{0});
    c.world().fetch(tokens[0], copy).get();
    const auto got = c.device().download(copy);
    if (got == values) continue;
    const auto wrong = std::mismatch(got.begin(), got.end(), values.begin()).first - got.begin();
    c.expect(false, "round " + std::to_string(round) + ": element " + std::to_string(wrong) +
                        " is that of another place");
  }
  c.world().barrier();
  stop = true;
  for (auto& thread : threads) thread.join();
}

/// What a rank asked of another before a fault, and is still waiting there when both have gone back
/// to their last commit, is not done any more: the program asks for it again, or does not.
TROUPE_MPI_CASE(token_rollback) {
  constexpr std::int64_t kSteps = 20, kCommitEvery = 5;
  const bool asks = c.rank() == 1;
  auto y = c.device().alloc<double>(1000), beat = c.device().alloc<double>(1000);
  const auto ones = c.device().alloc<double>(1000);
  const auto a = c.device().alloc<double>(1000), mine = c.device().alloc<double>(1000),
             sum = c.device().alloc<double>(1000), box = c.device().alloc<double>(1000);
  for (const auto& buffer : {a, sum, box}) c.device().fill(buffer, 0.0);
  c.device().fill(y, 0.0);
  c.device().fill(ones, 1.0);
  c.device().fill(mine, 1000.0).get();
  struct Tokens {
    GpuToken y, ones, a, box;
  };
  const auto all = c.world().gather_values(Tokens{y.token(), ones.token(), a.token(), box.token()});
  Checkpoint state(c.device());
  state.add("y", y);
  state.add_scratch(beat);
  bool struck = false;
  std::vector<Future<void>> asked;
  const auto ask = [&] {
    // Rank 0 wants what rank 1 has in a, in its own a; its request waits behind a put of what is
    // not there yet. So rank 1 wants the same of rank 0 before it knows, and each waits for the
    // other: what rank 1 asks for behind that waits with rank 0.
    std::vector<Future<void>> done;
    if (c.first()) {
      done = {c.world().all_reduce(sum, ReduceOp::sum), c.world().put(sum, all[1].box)};
      asked.push_back(c.world().fetch(all[1].a, a));
    }
    c.world().barrier();
    if (asks) {
      asked.push_back(c.world().fetch(all[0].a, a));
      asked.push_back(c.world().device(Rank(0)).blas().axpy(100.0, RemoteRef<double>(all[0].ones),
                                                            RemoteRef<double>(all[0].y)));
      asked.push_back(c.world().put(mine, all[0].y));
    }
    c.world().barrier();
    if (!c.first()) done = {c.world().all_reduce(sum, ReduceOp::sum)};
    for (const auto& future : done) future.get();
    std::this_thread::sleep_for(50ms);  // all of it is where it waits
    c.world().barrier();
  };
  c.world().run(state,
                [&](std::int64_t step) {
                  c.device().blas().axpy(1.0, ones, y);
                  if (step == 2 * kCommitEvery + 1 && !struck) {
                    struck = true;
                    ask();
                    if (asks) c.device().inject(memory::FaultKind::kill);
                    c.world().barrier();
                  }
                  c.device().fill(beat, 1.0);
                  c.world().all_reduce(beat, ReduceOp::max).get();
                  return step + 1 == kSteps ? Step::done : Step::again;
                },
                {.commit_every = kCommitEvery});
  c.expect_equal(c.world().recoveries().size(), 1, "there was no recovery");
  for (const auto& future : asked) {
    c.require(future.wait_for(kDeadline), "what was asked for before the fault does not resolve");
    c.expect_equal(future.wait().code(), Errc::world_reformed,
                   "what was asked for before the fault: " +
                       (future.wait().ok() ? "ok" : future.wait().error().to_string()));
  }
  if (asks) c.world().device(Rank(0)).nop().get();  // behind all the others
  c.world().barrier();
  c.expect_equal(
      c.device().download(y)[0], static_cast<double>(kSteps),
      "y is " + std::to_string(c.device().download(y)[0]) + ", not " + std::to_string(kSteps));
  c.expect(c.device().take_error().ok(), "what was rolled back is nobody's error");
  c.world().barrier();
}

/// A rank is lost in the middle of its put: its peer meets the contents that this has spoilt,
/// perhaps before it hears of the loss, and goes back with the others all the same.
TROUPE_MPI_CASE(token_spoilt) {
  constexpr std::int64_t kSteps = 36, kLength = 4 << 20;  // several pieces
  const int asks = c.size() - 1, owner = c.size() / 2;
  const bool owns = c.rank() == owner;
  auto box = c.device().alloc<double>(owns ? kLength : 1);
  auto source = c.device().alloc<double>(c.rank() == asks ? kLength : 1);
  c.device().fill(box, 0.0).get();
  const auto tokens = c.world().gather_values(box.token());
  Checkpoint state(c.device());
  state.add_scratch(box), state.add_scratch(source);
  std::int64_t struck = -1;
  c.world().run(state,
                [&](std::int64_t step) {
                  const auto value = static_cast<double>(step + 1);
                  if (c.rank() == asks) {
                    c.device().fill(source, value);
                    const auto put = c.world().put(source, tokens[static_cast<std::size_t>(owner)]);
                    if (step % 2 == 1 && struck < step) {
                      struck = step;
                      std::this_thread::sleep_for(1ms * (step % 7));  // sooner or later in the put
                      c.device().inject(memory::FaultKind::kill);
                    }
                    put.get();
                  }
                  const auto end = Clock::now() + kDeadline;
                  while (owns && c.device().download(box.slice(kLength - 1, 1))[0] != value)
                    c.require(Clock::now() < end, "the put does not arrive");
                  return step + 1 == kSteps ? Step::done : Step::again;
                },
                {.commit_every = 1});
  c.expect(!c.world().recoveries().empty(), "there was no recovery");
  c.expect(c.device().take_error().ok(), "what was rolled back is nobody's error");
  c.world().barrier();
}

/// What a rank asks of another before its own commit is part of the other's commit too, however
/// early that one is ready for it: behind it a rollback would take back what nobody asks for again.
TROUPE_MPI_CASE(token_commits) {
  constexpr std::int64_t kSteps = 8, kStruckIn = 4;
  const bool asks = c.first();
  const int owner = c.size() - 1;
  auto y = c.device().alloc<double>(1000), beat = c.device().alloc<double>(1000);
  const auto ones = c.device().alloc<double>(1000), mine = c.device().alloc<double>(1000);
  auto box = c.device().alloc<double>(1000);
  c.device().fill(y, 0.0);
  c.device().fill(box, 0.0);
  c.device().fill(ones, 1.0).get();
  struct Tokens {
    GpuToken y, ones, box;
  };
  const auto all = c.world().gather_values(Tokens{y.token(), ones.token(), box.token()});
  const auto& theirs = all[static_cast<std::size_t>(owner)];
  Checkpoint state(c.device());
  state.add("y", y);
  state.add("box", box);
  state.add_scratch(beat);
  bool struck = false;
  c.world().run(state,
                [&](std::int64_t step) {
                  c.device().fill(beat, 1.0);
                  c.world().all_reduce(beat, ReduceOp::max).get();
                  if (asks) {
                    std::this_thread::sleep_for(20ms);  // the owner is at its commit by then
                    c.device().fill(mine, static_cast<double>(step));
                    c.world().put(mine, theirs.box).get();
                    c.world()
                        .device(Rank(owner))
                        .blas()
                        .axpy(1.0, RemoteRef<double>(theirs.ones), RemoteRef<double>(theirs.y))
                        .get();
                  } else if (c.rank() == owner && step == kStruckIn && !struck) {
                    struck = true;
                    std::this_thread::sleep_for(10ms);  // the commit before is stable by then
                    c.device().inject(memory::FaultKind::kill);
                  }
                  return step + 1 == kSteps ? Step::done : Step::again;
                },
                {.commit_every = 1});
  c.expect_equal(c.world().recoveries().size(), 1, "there was no recovery");
  if (c.rank() == owner) {
    const auto sum = c.device().download(y)[0], put = c.device().download(box)[0];
    c.expect_equal(sum, kSteps, "y is " + std::to_string(sum) + ", not " + std::to_string(kSteps));
    c.expect_equal(put, kSteps - 1, "what was put last is of step " + std::to_string(put));
  }
  c.world().barrier();
}

/// Slices, copies and tokens that were made before a run are as good behind its rollback as the
/// references in the checkpoint, although what they name was lost at the fault.
TROUPE_MPI_CASE(kept_references) {
  constexpr std::int64_t kSteps = 6, kStruckIn = 3;
  constexpr int kInFlight = 200;
  const auto next = static_cast<std::size_t>((c.rank() + 1) % c.size());
  auto y = c.device().alloc<double>(200'000), room = c.device().alloc<double>(100);
  const auto ones = c.device().alloc<double>(200'000);
  c.device().fill(y, 0.0);
  c.device().fill(room, 0.0);
  c.device().fill(ones, 1.0).get();
  const auto copy = y, end = y.slice(199'900, 100);
  struct Tokens {
    GpuToken y, room;
  };
  const auto all = c.world().gather_values(Tokens{y.token(), room.slice(10, 20).token()});
  Checkpoint state(c.device());
  state.add("y", y);
  state.add_scratch(room);
  bool struck = false;
  c.world().run(state,
                [&](std::int64_t step) {
                  if (step == kStruckIn && c.first() && !struck) {
                    struck = true;
                    // In place, so that they cannot run again; those in flight lose y and room.
                    for (int i = 0; i < kInFlight; ++i) {
                      c.device().blas().axpy(1.0, ones, y);
                      c.device().blas().axpy(1.0, ones.slice(0, 100), room);
                    }
                    c.device().inject(memory::FaultKind::kill);
                  }
                  c.device().blas().axpy(1.0, ones, copy);
                  c.device().fill(room, static_cast<double>(step));
                  c.device().blas().axpy(1.0, ones.slice(0, 100), end);
                  const auto met = c.device().alloc<double>(1);
                  c.device().fill(met, 1.0);
                  c.world().all_reduce(met, ReduceOp::sum).get();
                  c.world().put(ones.slice(0, 20), all[next].room).get();
                  c.world()
                      .device(Rank(static_cast<int>(next)))
                      .blas()
                      .scal(2.0, RemoteRef<double>(all[next].room))
                      .get();
                  c.world().all_reduce(met, ReduceOp::sum).get();
                  c.expect_equal(c.device().download(room.slice(9, 2)),
                                 std::vector<double>{static_cast<double>(step), 2.0},
                                 "what came by a token");
                  return step + 1 == kSteps ? Step::done : Step::again;
                },
                {.commit_every = 2});
  c.expect_equal(c.world().recoveries().size(), 1, "there was no recovery");
  const auto result = c.device().download(y);
  c.expect(result.front() == kSteps && result.back() == 2 * kSteps,
           "y is " + std::to_string(result.front()) + " and " + std::to_string(result.back()));
  c.world().barrier();
}

/// Programs that handle faults themselves: what is asked of a rank waits until its program has
/// turned to the asking one's epoch, and is refused, and told, once it has left that epoch.
TROUPE_MPI_CASE(token_epochs) {
  const auto y = c.device().alloc<double>(1000);
  c.device().fill(y, 0.0).get();
  const auto tokens = c.world().gather_values(y.token());
  const auto before = c.world().recoveries().size();
  auto remote = c.world().device(Rank(0));
  const RemoteRef<double> there(tokens[0]);
  if (c.rank() == c.size() - 1) c.device().inject(memory::FaultKind::kill);
  c.require(eventually([&] { return c.world().recoveries().size() > before; }),
            "the world does not come back");
  // Rank 0 has not turned to the new epoch, and sets y back to where it wants to go on from.
  c.world().barrier();
  Future<void> early;
  if (c.rank() == 1) {
    c.require(c.world().wait_active().ok(), "the world has ended");
    early = remote.fill(there, 5.0);
    std::this_thread::sleep_for(50ms);  // it is at the owner
    c.expect(!early.ready(), "an epoch is served that its owner has not turned to");
  }
  c.world().barrier();
  if (c.rank() == 0) c.device().fill(y, 0.0).get();
  if (c.rank() != 1) c.require(c.world().wait_active().ok(), "the world has ended");
  if (c.rank() == 1) {
    c.require(early.wait_for(kDeadline), "what came early does not resolve");
    c.expect(early.wait().ok(), "what came early is not done");
  }
  c.world().barrier();
  if (c.rank() == 0)
    c.expect_equal(c.device().download(y)[0], 5.0, "what came early was done too early");

  // Another fault; rank 1 does not turn to the next epoch, the others do.
  if (c.rank() == c.size() - 1) c.device().inject(memory::FaultKind::kill);
  c.require(eventually([&] { return c.world().recoveries().size() > before + 1; }),
            "the world does not come back a second time");
  if (c.rank() != 1) c.require(c.world().wait_active().ok(), "the world has ended");
  c.world().barrier();
  (void)c.device().take_error();
  if (c.rank() == 1) {
    const auto mine = c.device().alloc<double>(1000);
    c.device().fill(mine, 6.0).get();
    std::vector<Future<void>> late = {remote.fill(there, 6.0), c.world().put(mine, tokens[0]),
                                      c.world().fetch(tokens[0], mine)};
    for (const auto& future : late) {
      c.require(future.wait_for(kDeadline), "what comes late does not resolve");
      c.expect_equal(future.wait().code(), Errc::world_reformed, "what comes late is not refused");
    }
    c.expect_equal(c.device().take_error().code(), Errc::peer_lost, "nobody is told of it");
    c.expect(mine.valid(), "nothing came, and what was there is lost");
    (void)remote.fill(there, 6.0);  // nobody keeps the future
    c.expect(eventually([&] { return !c.device().take_error().ok(); }),
             "a failure whose future is dropped is told to nobody");
    c.require(c.world().wait_active().ok(), "the world has ended");
    remote.nop().get();
  }
  c.world().barrier();
  if (c.rank() == 0) c.expect_equal(c.device().download(y)[0], 5.0, "what came late was done");
  (void)c.device().take_error();
  c.world().barrier();
}

}  // namespace troupe::test
