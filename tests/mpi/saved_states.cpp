#include <cstdlib>
#include <filesystem>

#include "mpi_tests.hpp"

// States beside GPU memory, through the library: what the applications' tests do not reach.

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSavedLength = 3000;

/// x += step + rank in every step, whole numbers in f64; counts its steps on the host.
struct Sum {
  explicit Sum(Context& context) : c(&context), checkpoint(context.device()) {
    x = c->device().alloc<double>(kSavedLength);
    one = c->device().alloc<double>(kSavedLength);
    c->device().fill(one, 1.0);
    c->device().fill(x, 0.0);
    checkpoint.add("x", x);
    checkpoint.add_value("count", count);
    c->device().nop().get();
  }
  /// The steps it ran through; `at` may do something at each.
  std::int64_t run(std::int64_t steps, const SaveOptions& save, std::int64_t commit_every,
                   const std::function<void(std::int64_t)>& at = {}) {
    std::int64_t executed = 0;
    c->world().run(checkpoint,
                   [&](std::int64_t i) {
                     ++executed;
                     ++count;
                     if (at) at(i);
                     c->device().blas().axpy(static_cast<double>(i + c->rank()), one, x);
                     if (i + 1 < steps) return Step::again;
                     c->device().nop().get();
                     return Step::done;
                   },
                   {.commit_every = commit_every, .save = save});
    return executed;
  }
  static double value(std::int64_t steps, int rank) {
    return static_cast<double>(steps * (steps - 1) / 2 + steps * rank);
  }
  void expect(std::int64_t steps, const std::string& what) {
    const auto values = c->device().download(x);
    const auto expected = value(steps, c->rank());
    c->expect_equal(
        std::count(values.begin(), values.end(), expected), kSavedLength,
        what + ": x is " + std::to_string(values[0]) + ", not " + std::to_string(expected));
    c->expect_equal(count, steps, what + ": " + std::to_string(count) + " steps were counted");
  }

  Context* c;
  Checkpoint checkpoint;
  GpuRef<double> x, one;
  std::int64_t count = 0;
};

void expect_pieces(Context& c, const SavedState& state, std::int64_t step,
                   const std::string& what) {
  c.require(state.step() == step && state.parts() == c.size(),
            what + ": it is of step " + std::to_string(state.step()));
  // Every rank wants something else: of all parts, of its right neighbour's, and the last nothing.
  std::vector<SavedPiece> pieces;
  const int next = (c.rank() + 1) % c.size();
  if (c.rank() == 0) {
    for (int part = 0; part < state.parts(); ++part) pieces.push_back({part, "x", 17, 5});
    for (int part = 0; part < state.parts(); ++part) pieces.push_back({part, "count", 0, 1});
  } else if (c.rank() + 1 < c.size()) {
    pieces = {{next, "x", 0, kSavedLength}, {next, "x", kSavedLength, 0}};
  }
  const auto read = state.read(pieces);
  c.require(read.ok(), what + ": " + (read.ok() ? "" : read.error().to_string()));
  c.require_equal(read->size(), pieces.size(), what + ": pieces read");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].entry == "count") {
      c.expect_equal(SavedState::as<std::int64_t>((*read)[i]), std::vector{step}, what + ": count");
      continue;
    }
    const auto values = SavedState::as<double>((*read)[i]);
    c.expect_equal(values.size(), pieces[i].count, what + ": a piece's length");
    for (const double value : values)
      c.expect_equal(value, Sum::value(step, pieces[i].part), what + ": a piece's values");
  }
  // An error of one rank alone leaves the others undisturbed.
  const SavedPiece bad{0, "x", kSavedLength, 1};
  const auto refused = state.read(std::span(&bad, c.first() ? 1u : 0u));
  c.expect(refused.ok() != c.first(), what + ": a piece beyond the end");
}

/// To disk and to partners in one run; read back from both, whole and in pieces; gone on from.
void states_of_one_run(Context& c) {
  const SharedFolder folder(c);
  const SaveOptions save{.directory = folder.path(), .name = "sum", .every = 6, .partner = true};
  Sum first(c);
  first.run(20, save, 4);
  first.expect(20, "the first run");
  const auto list = c.world().saved_checkpoints();
  c.expect(list.size() == 3 && list[2].step == 18, "states of steps 6, 12 and 18 are saved");
  c.expect_equal(c.world().restarted_from(), -1, "nothing to go on from");

  const auto on_disk = c.world().find_state(save).take();
  c.require(on_disk.has_value(), "a state is on disk");
  expect_pieces(c, *on_disk, 18, "the state on disk");
  if (c.size() > 1) {
    // Commits are made after every 4th and every 6th step: the newest is that of step 18.
    expect_pieces(c, c.world().partner_state().take(), 18, "the partners' state");
  } else {
    c.expect_equal(c.world().partner_state().code(), Errc::invalid, "one rank has no partner");
  }

  Sum by_hand(c);
  c.world().load(*on_disk, by_hand.checkpoint);
  by_hand.expect(18, "loaded by hand");

  // The name has been looked for in this process: a run of that name begins anew.
  Sum anew(c);
  c.expect_equal(anew.run(9, save, 4), 9, "a second run of the same name begins anew");
  anew.expect(9, "the second run");

  // As another program would: a state of another folder's name, gone on from. It was the second
  // run's, before which those of the first have made way.
  if (c.first()) {
    c.expect(!fs::exists(fs::path(folder.path()) / "sum" / "step-18"), "the first run's states");
    fs::rename(fs::path(folder.path()) / "sum" / "run-2", fs::path(folder.path()) / "other");
  }
  c.world().barrier();
  // Under the name "other", the states that the second run saved count as those of a first run.
  Sum other(c);
  const SaveOptions elsewhere{.directory = folder.path(), .name = "other", .every = 6};
  c.expect_equal(other.run(20, elsewhere, 4), 14,
                 "the steps before the saved state are not done again");
  c.expect_equal(c.world().restarted_from(), 6, "it went on from step 6");
  other.expect(20, "gone on from step 6");
}

/// A program of two runs is started again and again, each time under another name for the same
/// folder of states: each run takes up its own states, and leaves those of the other.
void states_of_several_runs(Context& c) {
  const SharedFolder folder(c);
  const auto named = [&](const std::string& name, std::int64_t restart = SaveOptions::kNewest) {
    return SaveOptions{.directory = folder.path(), .name = name, .every = 6, .restart = restart};
  };
  const auto rename = [&](const std::string& from, const std::string& to) {
    if (c.first()) fs::rename(fs::path(folder.path()) / from, fs::path(folder.path()) / to);
    c.world().barrier();
  };
  const auto saved_step = [&](const SaveOptions& save) {
    (void)Sum(c).run(1, {}, 5);  // once it has begun, what the run before saves is on disk
    const auto state = c.world().find_state(save).take();
    c.require(state.has_value(), "no state is on disk");
    return state->step();
  };
  struct Killed {};
  const auto dies_at = [](std::int64_t step) {
    return [step](std::int64_t i) {
      if (i == step) throw Killed();
    };
  };
  const auto dies = [&](const std::function<void()>& run, const std::string& what) {
    bool died = false;
    try {
      run();
    } catch (const Killed&) {
      died = true;
    } catch (const CollectiveException&) {  // another rank was the first to die
      died = true;
    }
    c.expect(died, what + " ends well");
    (void)c.world().wait_active();
    (void)c.device().take_error();
  };
  {
    Sum start(c);
    c.expect_equal(start.run(20, named("a"), 4), 20, "the first run, the first time");
    dies([&] { start.run(20, named("a"), 4, dies_at(14)); }, "a run whose ranks die");
  }
  const auto left = saved_step(named("a"));
  c.expect(left == 6 || left == 12, "the second run has saved step " + std::to_string(left));
  rename("a", "b");
  {
    Sum start(c);
    c.expect_equal(start.run(20, named("b"), 4), 20,
                   "the first run takes up the second one's state");
    start.expect(20, "the first run of the second start");
    c.expect_equal(c.world().restarted_from(), -1, "the first run goes on from somewhere");
    c.expect_equal(start.run(20, named("b"), 4), 20 - left, "the second run begins anew");
    c.expect_equal(c.world().restarted_from(), left, "it goes on from another step");
    const auto twice = 2 * Sum::value(20, c.rank());
    c.expect(c.device().download(start.x) == std::vector<double>(kSavedLength, twice) &&
                 start.count == 40,
             "two runs are another sum");
  }
  // It dies in the first run again, whose own states are taken up then, before the second one's.
  rename("b", "c");
  {
    Sum start(c);  // until what it saves is on disk
    dies([&] { start.run(20, named("c"), 4, dies_at(14)); }, "a first run whose ranks die");
    (void)Sum(c).run(1, {}, 5);
  }
  rename("c", "d");
  {
    Sum start(c);
    const auto again = start.run(20, named("d", 12), 4);
    c.expect(again == 14 || again == 8, "the first run goes on from a state of its own");
    c.expect_equal(start.run(20, named("d", 12), 4), 8,
                   "the step that is wanted is the second run's");
  }
  // A first run that has ended with another step leads to another second run.
  rename("d", "e");
  {
    Sum start(c);
    (void)start.run(15, named("e"), 4);
    std::string refused;
    try {
      (void)start.run(20, named("e"), 4);
    } catch (const CollectiveException& e) {
      refused = e.what();
    }
    c.expect(refused.find("run 1 of the program had ended with step 19, and not with step 14") !=
                 std::string::npos,
             "the second run is taken up though the first is another: " + refused);
  }
}

}  // namespace

TROUPE_MPI_CASE(saved_states) {
  states_of_one_run(c);
  states_of_several_runs(c);
}

/// Every commit goes to disk and to partners while device hosts die in all sorts of places: the
/// run's result is right, and so is every state that was left.
TROUPE_MPI_CASE(saved_under_fire) {
  const SharedFolder folder(c);
  const auto epochs = c.world().recoveries().size();
  for (int round = 0; round < 4; ++round) {
    const SaveOptions save{.directory = folder.path(),
                           .name = "round-" + std::to_string(round),
                           .every = 3,
                           .partner = round % 2 == 0};
    Sum sum(c);
    std::set<std::int64_t> done;
    sum.run(40, save, 3, [&](std::int64_t i) {
      const bool strikes = i == 5 + round || i == 18 || i == 24 + 3 * round;
      if (!strikes || !done.insert(i).second) return;
      if (static_cast<int>(i) % c.size() != c.rank()) return;
      if (i == 18 && round > 1) c.world().inject_in_phase(memory::FaultKind::kill, "restore");
      c.device().inject(memory::FaultKind::kill);
    });
    sum.expect(40, save.name);
    const auto state = c.world().find_state(save).take();
    c.require(state.has_value(), save.name + ": a state is on disk");
    expect_pieces(c, *state, 39, save.name);
    if (save.partner && c.size() > 1)
      expect_pieces(c, c.world().partner_state().take(), 39, save.name + ", the partners'");
  }
  c.expect(c.world().recoveries().size() >= epochs + 12, "the faults struck");
  c.world().barrier();  // rank 0 removes the folder, and others may still be reading
}

/// A run that ends with an error leaves its last commit in the nodes' folders: it is found by hand.
TROUPE_MPI_CASE(states_on_the_nodes) {
  if (c.size() < 2) return;
  const SharedFolder folder(c), nodes(c);
  const SaveOptions save{.directory = folder.path(),
                         .name = "near",
                         .every = 1000,
                         .partner = true,
                         .every_copy = true,
                         .local = nodes.path()};
  Sum sum(c);
  Errc code = Errc::ok;
  try {
    sum.run(1000, save, 5, [](std::int64_t i) {
      if (i == 22) throw Exception({Errc::numeric, 0, "on purpose"});
    });
  } catch (const Exception& e) {
    code = e.code();
  }
  c.expect_equal(code, Errc::numeric, "the run ends with the step's error");
  const auto state = c.world().find_state(save).take();
  c.require(state.has_value(), "the nodes have a state");
  expect_pieces(c, *state, 20, "the nodes' state");
  auto shared = save;
  shared.local.clear();
  c.expect(!c.world().find_state(shared).take().has_value(), "the shared folder has none");
  c.world().barrier();  // rank 0 removes the folders
}

/// Any rank may ask for the end; all end at the same step, and the program goes on from there.
TROUPE_MPI_CASE(stop_requests) {
  const SharedFolder folder(c);
  const SaveOptions save{.directory = folder.path(), .name = "stopped"};
  Sum sum(c);
  std::int64_t last = -1;
  Errc code = Errc::ok;
  bool struck = false;  // once: the step is repeated
  try {
    sum.run(1'000'000, save, 5, [&](std::int64_t i) {
      last = i + 1;
      if (i == 52 && c.rank() == c.size() - 1) c.world().request_stop();
      if (i == 53 && c.first() && !std::exchange(struck, true))
        c.device().inject(memory::FaultKind::kill);
    });
  } catch (const CollectiveException& e) {
    code = e.code();
  }
  c.expect_equal(code, Errc::requeue, "the run ends with requeue");
  const auto steps = c.world().gather_values(last);
  for (const auto step : steps) c.expect_equal(step, last, "all ranks end at the same step");
  const auto state = c.world().find_state(save).take();
  c.require(state.has_value(), "its state is on disk");
  expect_pieces(c, *state, last, "the state of the end");
  // Asked once, the program is to end: another run does so with its first commit.
  Sum next(c);
  code = Errc::ok;
  try {
    next.run(1'000'000, {}, 5);
  } catch (const CollectiveException& e) {
    code = e.code();
  }
  c.expect(code == Errc::stopped && next.count == 0, "the next run ends before its first step");
}

}  // namespace troupe::test
