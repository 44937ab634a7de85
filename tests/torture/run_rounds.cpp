#include <fmt/format.h>

#include <troupe/lib/solver.hpp>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "catalogue/random.hpp"
#include "runner.hpp"

// Rounds within World::run: whatever strikes, their end is that of a run without faults.

namespace troupe::torture {
namespace {

constexpr std::size_t kFlags = 62;  ///< behind the buffers' tokens

/// How a run keeps its state, from its seed.
struct Keeping {
  bool waits_at_end = false;  ///< the last step waits for what it submitted
  bool partner = false;
  bool meets_by_puts = false;  ///< not in collectives
  std::int64_t every = 0;
  bool prepares = false;  ///< makes what it begins with itself
  bool struck = false;    ///< a fault in the midst of that
  std::int64_t stride = 1;
};

Keeping keeping_of(const Program& program, const Round& round) {
  Random random(
      derive(program.seed, static_cast<std::uint64_t>(round.steps * 100 + round.commit_every)));
  return {
      .waits_at_end = random.one_in(2),
      .partner = program.ranks > 1 && random.one_in(3),
      .meets_by_puts = random.one_in(2),
      .every = random.one_in(2) ? 0 : round.commit_every * random.between(1, 3),
      .prepares = random.one_in(2),
      .struck = program.stormy && random.one_in(2),
      .stride = round.commit_every % 2 == 0 && round.steps % 2 == 0 && random.one_in(2) ? 2 : 1};
}

/// Whether ranks ask things of one another's devices in it.
bool crosses_ranks(const Round& round) {
  for (const auto& step : round.scripts) {
    for (const auto& rank : step) {
      for (const auto& script : rank) {
        for (const auto& op : script) {
          if (op.target != op.rank || is_transfer(op.kind) || op.kind == Kind::hold) return true;
        }
      }
    }
  }
  return false;
}

/// What goes wrong in a run that must not end well, from its round.
struct Failure {
  enum class Kind { root, own, stranger, numeric, library } kind;
  bool alone = false;  ///< on one rank
  int rank = 0;        ///< which

  Failure(const Round& round, const Program& program) : rank(round.special % program.ranks) {
    const auto n = round.special / 2 % 8;
    kind = n < 2   ? Kind::root      // a broadcast from a rank that is not there, on all ranks
           : n < 3 ? Kind::own       // an error of the step's own
           : n < 4 ? Kind::stranger  // a thread that works for no step writes the checkpoint
           : n < 6 || program.stormy
               ? Kind::numeric   // a matrix that is not positive definite
               : Kind::library;  // a call of a library that is let fail, which no fault takes along
    alone = kind == Kind::own || (kind != Kind::root && n % 2 == 0);
  }
  /// Whether run() may end with the code because of it.
  [[nodiscard]] bool explains(Errc code) const {
    switch (kind) {
      case Kind::root: return code == Errc::invalid || code == Errc::library;
      case Kind::own:
      case Kind::stranger: return code == Errc::invalid;
      case Kind::numeric: return code == Errc::numeric;
      case Kind::library: break;
    }
    return code == Errc::library;
  }
};

constexpr std::int64_t kFixed = 300;  ///< numbers of the constant that each run has

bool ends_world(Errc code) {
  return code == Errc::budget_exhausted || code == Errc::device_failed;
}

void add_all(Checkpoint& state, Hands& hands, std::size_t buffers) {
  for (int b = 0; b < static_cast<int>(buffers); ++b) {
    std::visit([&](auto& one) { state.add(fmt::format("buffer {}", b), one); }, hands.ref(b));
  }
}

}  // namespace

void Runner::play_run(const Round& round) {
  // What the run must come to, and what its steps see on the way.
  std::vector<std::vector<std::byte>> before;
  for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b)
    before.push_back(oracle_->contents(rank_, b));
  looks_.clear();
  for (std::size_t s = 0; s < round.scripts.size(); ++s) {
    oracle_->apply(
        round, s, [](const Operation&) { return Outcome::done; },
        [&](const Operation& op, const std::vector<std::byte>& expected) {
          if (op.rank == rank_) looks_[op.id] = expected;
        });
  }
  stop_asked_ = false;
  flipped_.clear();
  const auto known = world_.corruptions().size();
  saves_ = !conduct_.folder.empty();
  for (bool again = true; again;) {
    again = false;
    Checkpoint state(device_);
    if (!keeping_of(*program_, round).prepares) add_to(state);
    try {
      run_once(round, state, before);
    } catch (const Exception& e) {
      // Asked for in this run, or in the one before, which ended first.
      const bool stopped = conduct_.resume && e.code() == Errc::requeue;
      if (stopped || ends_world(e.code())) throw;  // the end of the job, which may be run again
      again = saves_ && conduct_.disk_fails && e.code() == Errc::io;
      if (!again) throw Finding(std::string("run() fails: ") + e.what());
    }
    if (!again) break;
    saves_ = false;  // the folder is no good
    for (int b = 0; b < static_cast<int>(before.size()); ++b) {
      if (!hands_->valid(b)) hands_->renew(b);
      hands_->upload(b, before[static_cast<std::size_t>(b)]).get();
    }
  }
  blows_.end();
  looks_.clear();
  check_corruptions(known);
  account_.at(account_.where() + ", compared");
  meets_by_puts_ = false;
  if (stormy_) settle();
  verify();
  check_sums();
  if (auto told = device_.take_error(); !told.ok() && !stormy_ && random_.has_all())
    throw Finding("after run() take_error() tells of " + told.error().to_string());
  if (rank_ == 0 && !conduct_.folder.empty() && !conduct_.resume) {
    std::error_code ignored;
    const auto save = save_options(round);
    std::filesystem::remove_all(conduct_.folder + "/" + save.name, ignored);
    if (!save.local.empty()) std::filesystem::remove_all(save.local + "/" + save.name, ignored);
  }
}

SaveOptions Runner::save_options(const Round& round) const {
  const auto keeping = keeping_of(*program_, round);
  SaveOptions save;
  save.directory = saves_ ? conduct_.folder : "";
  save.name = fmt::format("seed-{}-{}", program_->seed, round_);
  save.every = saves_ ? keeping.every : 0;
  save.restart = conduct_.resume ? SaveOptions::kNewest : SaveOptions::kNever;
  save.partner = keeping.partner;
  if (saves_) save.local = world_.save_options().local;
  return save;
}

void Runner::add_to(Checkpoint& state) {
  add_all(state, *hands_, program_->buffers.size());
  fixed_ = device_.alloc<double>(kFixed);
  const auto fill = [this] { device_.upload<double>(fixed_values(), fixed_); };
  fill();
  if (round_ % 2 == 0)
    state.add_constant("fixed", fixed_, fill);
  else
    state.add_constant("fixed", fixed_);
  state.add_scratch(meeting_), state.add_scratch(own_tokens_), state.add_scratch(all_tokens_);
  state.add_scratch(flags_);
}

/// Writes what the run begins with, and looks at no future.
void Runner::prepare(Checkpoint& state, const std::vector<std::vector<std::byte>>& contents,
                     bool struck) {
  for (int b = 0; b < static_cast<int>(contents.size()); ++b) {
    if (!hands_->valid(b)) hands_->renew(b);
    (void)hands_->upload(b, contents[static_cast<std::size_t>(b)]);
  }
  if (struck) device_.inject(memory::FaultKind::kill);
  sums_ = device_.alloc<double>(100);
  device_.fill(sums_, rank_ + 1.0);
  if (conduct_.collectives) world_.all_reduce(sums_, ReduceOp::sum);
  add_to(state);
  state.add("sums", sums_);
}

/// The values of a buffer that no operation of a run writes.
std::vector<double> Runner::fixed_values() const {
  Random random(derive(program_->seed, 77));
  std::vector<double> values(kFixed);
  for (auto& value : values) value = static_cast<double>(random.below(1'000'000));
  return values;
}

/// No wrong numbers are found that nobody has made, and none again and again.
void Runner::check_corruptions(std::size_t known) const {
  auto found = world_.corruptions();
  found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(known));
  for (const auto& one : found) {
    const bool made = one.found == Corruption::Found::constant || conduct_.verify == 1;
    if (!program_->stormy || !made)
      throw Finding("wrong numbers are found that nobody has made: " + in_words(one));
    if (one.persistent) throw Finding("one bit is found again and again: " + in_words(one));
  }
}

/// What prepare() has left in them, however often it was called.
void Runner::check_sums() {
  const auto fixed = std::exchange(fixed_, {});
  if (fixed.valid() && !stormy_ && device_.download(fixed) != fixed_values())
    throw Finding("a constant of the checkpoint is not what it was");
  auto sums = std::exchange(sums_, {});
  if (!sums.valid()) return;
  const double expected = conduct_.collectives ? ranks_ * (ranks_ + 1) / 2 : rank_ + 1;
  try {
    for (const auto value : device_.download(sums)) {
      if (value != expected) {
        throw Finding(fmt::format("a sum over the ranks from the begin of a run is {}, not {}",
                                  value, expected));
      }
    }
  } catch (const Exception& e) {
    if (!stormy_ || !is_of_a_fault(e.code())) throw;
  }
}

void Runner::run_once(const Round& round, Checkpoint& state,
                      const std::vector<std::vector<std::byte>>& contents) {
  const auto keeping = keeping_of(*program_, round);
  const auto save = save_options(round);
  const bool crosses = crosses_ranks(round);
  tokens_epoch_ = {};
  bool struck = keeping.struck &&
                rank_ == static_cast<int>(program_->seed % static_cast<std::uint64_t>(ranks_));
  const auto make = [&] { prepare(state, contents, std::exchange(struck, false)); };
  meets_by_puts_ = crosses && (keeping.meets_by_puts || !conduct_.collectives);
  const auto step = [&](std::int64_t number) {
    account_.advance();
    const auto due = [&](std::int64_t i) {
      return i % round.commit_every == 0 || (save.every > 0 && i % save.every == 0);
    };
    const bool last = number + 1 == round.steps;
    if (crosses && tokens_epoch_ != world_.epoch()) exchange_tokens_on_device();
    if (meets_by_puts_ && due(number)) meet();
    play_step(round.scripts[static_cast<std::size_t>(number)][static_cast<std::size_t>(rank_)]);
    if (meets_by_puts_ && (due(number + 1) || last)) fence();
    if (last && keeping.waits_at_end && !crosses) meet();
    if (due(number + 1) || last) flip_a_bit(number);
    // The run ends at the second commit from now, if it lasts so long; else the next one would.
    const bool in_time = number + 2 * round.commit_every < round.steps;
    if (conduct_.resume && number == round.stop_at && in_time && !stop_asked_ && rank_ == 0) {
      stop_asked_ = true;
      world_.request_stop();
    }
  };
  world_.run(state,
             [&](std::int64_t first) {
               const auto end = first + keeping.stride;
               for (auto number = first; number < end; ++number) step(number);
               return end == round.steps ? Step::done : Step::again;
             },
             {.commit_every = round.commit_every,
              .stride = keeping.stride,
              .prepare = keeping.prepares ? std::function<void()>(make) : nullptr,
              .save = save});
}

/// Behind the last step of an interval, so that no step sees it. A bit of the state is found by the
/// next pass, and the state is that of the two others; one of a constant is found at once. Once for
/// each step.
void Runner::flip_a_bit(std::int64_t step) {
  if (!program_->stormy) return;
  Random random(
      derive(program_->seed, 1000 * round_ + static_cast<std::uint64_t>(step * ranks_ + rank_)));
  if (!random.one_in(4) || !flipped_.insert(step).second) return;
  const bool of_state = conduct_.verify == 1 && (conduct_.guarded || random.one_in(2));
  if (!of_state && conduct_.guarded) return;  // other memory would be struck, and the job end
  device_.inject(of_state ? SilentFault::flip : SilentFault::stray_write);
}

/// In a run there is no host barrier, because a fault may keep a rank from it: the ranks meet in a
/// collective, which a fault ends.
void Runner::meet() {
  if (meets_by_puts_) return meet_by_puts();
  device_.fill(meeting_, 1.0);
  world_.all_reduce(meeting_, ReduceOp::sum).get();
}

/// The same without a collective: each rank leaves a number with all others, and looks at its own
/// memory until all have left theirs.
void Runner::meet_by_puts() {
  const auto number = static_cast<double>(++meetings_);
  device_.fill(meeting_, number);
  for (int other = 0; other < ranks_; ++other) {
    if (other == rank_) continue;
    auto token = flags_of_[static_cast<std::size_t>(other)];
    token.offset += static_cast<std::uint64_t>(rank_), token.length = 1;
    world_.put(meeting_.slice(0, 1), token).get();
  }
  const auto end = Clock::now() + conduct_.deadline;
  for (bool all = false; !all;) {
    const auto flags = device_.download(flags_);
    all = true;
    for (int other = 0; other < ranks_; ++other)
      all = all && (other == rank_ || flags[static_cast<std::size_t>(other)] >= number);
    if (!all && Clock::now() > end)
      throw Finding("a rank does not come to where all leave a number with the others");
    if (!all) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Runner::fence() {
  for (int other = 0; other < ranks_; ++other) {
    if (other != rank_) world_.device(Rank(other)).nop().get();
  }
  meet();
}

/// At the begin of a run, and behind each rollback as a meeting of all: the tokens of the begin are
/// good then too.
void Runner::exchange_tokens_on_device() {
  std::array<GpuToken, 64> mine{};
  for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b)
    mine[static_cast<std::size_t>(b)] = hands_->token(b);
  device_.fill(flags_, 0.0);
  mine[kFlags] = flags_.token();
  meetings_ = 0;
  const auto epoch = world_.epoch();
  const auto all = gather_tokens(world_, device_, mine, own_tokens_, all_tokens_);
  if (std::exchange(tokens_epoch_, epoch) != Epoch{}) return;
  Tokens tokens;
  for (auto it = all.begin(); it != all.end(); it += std::ssize(mine))
    tokens.emplace_back(it, it + std::ssize(mine));
  flags_of_.clear();
  for (const auto& list : tokens) flags_of_.push_back(list[kFlags]);
  hands_->set_tokens(std::move(tokens), GpuToken{});
}

void Runner::play_step(const std::vector<std::vector<Operation>>& scripts) {
  const Listener listener{
      .outcome = [this](const Operation& op, const Result<void>& outcome) { demand(op, outcome); },
      .saw =
          [this](const Operation& op, std::vector<std::byte> bytes) {
            const auto expected = looks_.find(op.id);
            if (expected != looks_.end()) compare(op, bytes, expected->second);
          }};
  Threads threads;
  for (const auto& script : scripts)
    threads.start([&, timeline = World::timeline()] {
      const Timeline::Scope scope(timeline);
      player_.play(script, *hands_, listener);
    });
  threads.join();
}

/// Faults end the step, and the run repeats it; nothing else may go wrong.
void Runner::demand(const Operation& op, const Result<void>& outcome) const {
  const auto code = outcome.code();
  if (outcome.ok() || (code == Errc::unsupported && random_.lacks(op))) return;
  if (is_of_a_fault(code) || code == Errc::peer_lost) throw Exception(outcome.error());
  throw Finding("in a step it fails: " + describe(op) + ": " + outcome.error().to_string());
}

/// A command fails, and only the device host finds out, late: before a commit, with or without a
/// fault behind it, or in the last step. Or one rank alone throws an error of its own there. The
/// run must not end as if nothing had been, on any rank.
void Runner::play_failing(const Round& round) {
  const std::int64_t every = 1 + round.special % 5, steps = 2 * every + 1;
  const bool at_end = round.special % 3 == 0, struck = program_->stormy && !at_end;
  const auto fails_at = at_end ? steps - 1 : every - 1;
  const Failure failure(round, *program_);
  const bool fails = !failure.alone || rank_ == failure.rank;
  auto room = device_.alloc<double>(400'000);
  auto state_of_it = device_.alloc<double>(500);
  device_.fill(state_of_it, 0.0).get();
  world_.barrier();
  auto matrix = device_.alloc<double>(4);
  Checkpoint state(device_);
  state.add("state", state_of_it), state.add_scratch(room), state.add_scratch(meeting_);
  state.add_scratch(matrix);
  const auto fail = [&] {
    switch (failure.kind) {
      case Failure::Kind::root: world_.broadcast(state_of_it, Rank(ranks_ + 91)); return true;
      case Failure::Kind::own: throw Exception({Errc::invalid, 0, "an error of one rank alone"});
      case Failure::Kind::stranger:
        std::jthread([&] { (void)device_.fill(state_of_it, -1.0); }).join();
        return true;
      case Failure::Kind::numeric:
        device_.fill(matrix, -1.0);
        device_.solver().potrf(blas::Uplo::lower, MatrixRef(matrix, 2, 2));
        return true;
      case Failure::Kind::library: break;
    }
    if (!blows_.fail_library("blas")) return false;
    device_.fill(matrix, 1.0);
    device_.blas().scal(2.0, matrix);
    return true;
  };
  Errc code = Errc::ok;
  const auto epoch = world_.epoch();
  bool gave = false, undone = false;  // the command that fails; by going back to before it
  std::int64_t last = -1;
  try {
    world_.run(state,
               [&](std::int64_t number) {
                 account_.advance();
                 undone |= number <= last && number <= fails_at;
                 last = number;
                 for (int i = 0; i < round.special; ++i) device_.fill(room, static_cast<double>(i));
                 device_.vector().axpby(1.0, room.slice(0, 500), 1.0, state_of_it);
                 // Whoever is interrupted before these does not do them either when all go back.
                 const bool first_time = world_.epoch() == epoch;
                 if (first_time && number == fails_at && fails) {
                   gave = true;
                   gave = fail();
                 }
                 if (first_time && struck && number == every) {
                   if (rank_ == 0) (void)device_.inject(memory::FaultKind::kill);
                   if (!failure.alone) meet();  // else one is not there any more
                 }
                 return number + 1 == steps ? Step::done : Step::again;
               },
               {.commit_every = every, .save = SaveOptions{}});
  } catch (const Exception& e) {
    code = e.code();
    if (code == Errc::budget_exhausted) throw;
  }
  // A run that goes back to before the command does its step again, without it this time.
  const bool done_again = code == Errc::ok && (undone || !gave);
  if (code == Errc::ok && !done_again)
    throw Finding(
        fmt::format("run() ends well although a command before a commit has failed (failure {})",
                    static_cast<int>(failure.kind)));
  if (!done_again && !failure.explains(code))
    throw Finding("a failing command ends run() with " + std::string(troupe::to_string(code)));
  settle();
  if (any_rank(code != Errc::ok) && code == Errc::ok)
    throw Finding("run() ends well here, and with an error on another rank");
  (void)device_.take_error();
}

}  // namespace troupe::torture
