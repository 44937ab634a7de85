#include "runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "random.hpp"

namespace troupe::torture {
namespace {

using namespace std::chrono_literals;

/// The codes that a wrong call may answer with.
bool answers(Wrong wrong, Errc code) {
  switch (wrong) {
    case Wrong::no_such_rank: return code == Errc::peer_lost || code == Errc::invalid;
    case Wrong::freed_token: return code == Errc::stale;
    case Wrong::root: return code == Errc::invalid || code == Errc::library;
    default: return code == Errc::invalid;
  }
}

/// A coroutine that awaits the operation.
Future<void> await(Future<void> future) {
  co_await future;
}

/// The ids of the round's operations: first and one past the last.
std::pair<std::uint32_t, std::uint32_t> ids_of(const Round& round) {
  std::uint32_t first = UINT32_MAX, end = 0;
  for (const auto& step : round.scripts) {
    for (const auto& rank : step) {
      for (const auto& script : rank) {
        for (const auto& op : script) {
          first = std::min(first, op.id);
          end = std::max(end, op.id + 1);
        }
      }
    }
  }
  return first < end ? std::pair(first, end) : std::pair(0u, 0u);
}

}  // namespace

bool is_of_a_fault(Errc code) {
  return code == Errc::device_lost || code == Errc::world_reformed || code == Errc::stale;
}

Runner::Runner(Runtime& runtime, const Conduct& conduct)
    : runtime_(runtime),
      world_(runtime.world()),
      device_(runtime.device()),
      conduct_(conduct),
      rank_(world_.rank()),
      ranks_(world_.size()),
      meeting_(device_.alloc<double>(8)),
      own_tokens_(device_.alloc<std::uint8_t>(64 * sizeof(GpuToken))),
      all_tokens_(device_.alloc<std::uint8_t>(64 * sizeof(GpuToken) * ranks_)) {
  flags_ = device_.alloc<double>(ranks_);
  device_.fill(meeting_, 1.0).get();
  // What the random numbers are, in quiet.
  const auto make = [&]<class T>(T, bool normal, std::uint64_t set) {
    const auto room = device_.alloc<T>(RandomTable::kCount);
    const RandomOptions options{.seed = set + 1, .subsequence = set, .offset = 2 * set};
    const auto made =
        normal ? device_.rng().normal(room, options) : device_.rng().uniform(room, options);
    random_.supported = made.wait().ok();
    std::vector<std::byte> bytes(RandomTable::kCount * sizeof(T));
    if (random_.supported) {
      const auto values = device_.download(room);
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    random_.sets.push_back(std::move(bytes));
  };
  for (int group = 0; group < 4; ++group) {
    for (std::uint64_t set = 0; set < RandomTable::kSets; ++set)
      group < 2 ? make(float{}, group % 2 != 0, set) : make(double{}, group % 2 != 0, set);
  }
  (void)device_.take_error();
}

std::string Runner::where() const {
  const std::lock_guard lock(where_mutex_);
  return where_;
}
void Runner::at(std::string where) {
  const std::lock_guard lock(where_mutex_);
  where_ = std::move(where);
  advance();
}

void Runner::wait(const Future<void>& future, const std::string& what) const {
  if (!future.wait_for(conduct_.deadline))
    throw Finding(fmt::format("it does not resolve within {} s: {}",
                              std::chrono::duration<double>(conduct_.deadline).count(), what));
}

bool Runner::any_rank(bool mine) {
  const auto all = world_.gather_values(mine);
  return std::find(all.begin(), all.end(), true) != all.end();
}

void Runner::begin(const Program& program) {
  const auto prints = world_.gather_values(program.fingerprint());
  for (const auto print : prints) {
    if (print != prints[0]) throw Finding("the ranks have made different programs of the seed");
  }
  program_ = &program;
  stormy_ = program.stormy;
  known_ = world_.recoveries().size();
  suspicious_ = false;
  suspicion_.clear();
  version_ = 0;
  struck_.clear();
  hands_ = std::make_unique<Hands>(runtime_, program);
  oracle_ = std::make_unique<Oracle>(program, random_);
  (void)device_.take_error();
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
    hands_->allocate(b);
    hands_->upload(b, Oracle::initial(program, rank_, b, 0)).get();
  }
}

void Runner::run(const Program& program) {
  at(fmt::format("seed {}: making its buffers", program.seed));
  begin(program);
  for (std::size_t i = 0; i < program.rounds.size(); ++i) {
    const auto& round = program.rounds[i];
    if (round.left_out) continue;
    at(fmt::format("seed {}, round {} ({})", program.seed, i, to_string(round.kind)));
    switch (round.kind) {
      case RoundKind::free:
      case RoundKind::held: play_free(round); break;
      case RoundKind::run: play_run(round); break;
      case RoundKind::versions: play_versions(round); break;
      case RoundKind::failing: play_failing(round); break;
      case RoundKind::slabs: play_slabs(round); break;
      case RoundKind::pieces: play_pieces(round); break;
    }
    if (oracle_->inexact())
      throw Finding("the program has no exact values: " + *oracle_->inexact());
    ++tally_.rounds;
  }
  if (stormy_) {
    settle();
    check_recoveries();
  }
  at(fmt::format("seed {}: freeing its buffers", program.seed));
  hands_.reset();
  ++tally_.programs;
}

// Rounds in which faults are seen

void Runner::exchange_tokens() {
  std::array<GpuToken, 64> mine{};
  for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b)
    mine[static_cast<std::size_t>(b)] = hands_->token(b);
  mine.back() = device_.alloc<double>(8).token();  // freed at once
  Tokens tokens;
  const auto all = world_.gather_values(mine);
  for (const auto& one : all) tokens.emplace_back(one.begin(), one.end());
  const auto freed = tokens[static_cast<std::size_t>((rank_ + 1) % ranks_)].back();
  hands_->set_tokens(std::move(tokens), freed);
}

void Runner::play_free(const Round& round) {
  exchange_tokens();
  const auto [first, end] = ids_of(round);
  Codes codes(first, end);
  world_.barrier();
  std::exception_ptr failure;
  {
    const auto play = [&](int t) {
      return std::jthread([&, t] {
        try {
          play_thread(round, static_cast<std::size_t>(t), codes);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          failure = std::current_exception();
        }
      });
    };
    // Who waits for the collective, and may do so in its script, ends last.
    std::jthread waits;
    std::vector<std::jthread> threads;
    const bool held = round.kind == RoundKind::held, late = held && rank_ == round.special;
    if (held && !late) waits = play(round.threads);
    for (int t = 0; t < round.threads; ++t) threads.push_back(play(t));
    if (held) {
      threads.clear();  // nothing of theirs may depend on the collective
      world_.barrier();
      if (late) waits = play(round.threads);
    }
  }
  if (failure) std::rethrow_exception(failure);
  end_blows();
  // What became of it on all ranks.
  std::vector<Codes> all(static_cast<std::size_t>(ranks_), Codes(first, end));
  const auto texts = world_.gather_text(codes.text());
  for (std::size_t r = 0; r < texts.size(); ++r) all[r].assign(texts[r]);
  const auto told = device_.take_error();
  const bool disturbed = world_.recoveries().size() > known_ || is_of_a_fault(told.code());
  const bool faulty = any_rank(suspicious_ || stormy_ || disturbed);
  if (faulty) {
    settle();
    check_recoveries();
  }
  at(where() + ", compared");
  oracle_->apply(
      round, 0,
      [&](const Operation& op) {
        const auto code = all[static_cast<std::size_t>(op.rank)].of(op.id);
        if (code == Codes::kUnknown || static_cast<Errc>(code) == Errc::ok) return Outcome::done;
        return op.target != op.rank || op.kind == Kind::put ? Outcome::unsure : Outcome::refused;
      },
      [&](const Operation& op, const std::vector<std::byte>& expected) {
        if (op.rank != rank_) return;
        for (const auto& [id, bytes] : looks_) {
          if (id == op.id) return compare(op, bytes, expected);
        }
      });
  looks_.clear();
  verify();
  if (!faulty) {
    if (!told.ok() && !told.error().message.empty()) {
      // Wrong calls of the round are told of here; nothing else is.
      bool wrong = false;
      for (const auto& script : round.scripts[0][static_cast<std::size_t>(rank_)]) {
        for (const auto& op : script)
          wrong = wrong || op.kind == Kind::wrong ||
                  ((op.kind == Kind::uniform || op.kind == Kind::normal) && !random_.supported);
      }
      if (!wrong) throw Finding("take_error() tells of " + told.error().to_string());
    }
  }
  (void)device_.take_error();
}

void Runner::play_thread(const Round& round, std::size_t thread, Codes& codes) {
  Hands::Thread in_hand;
  play_script(round.scripts[0][static_cast<std::size_t>(rank_)][thread], in_hand, codes);
}

void Runner::play_script(const std::vector<Operation>& script, Hands::Thread& in_hand,
                         Codes& codes) {
  std::vector<std::pair<const Operation*, Future<void>>> pending;
  std::set<int> asked;  // ranks whose devices were asked for something that nobody waits for
  for (const auto& op : script) {
    advance();
    if (op.kind == Kind::pause) {
      std::this_thread::sleep_for(std::chrono::microseconds(op.data));
      continue;
    }
    if (op.kind == Kind::fault) {
      if (const auto struck = strike(op); struck.valid()) pending.emplace_back(&op, struck);
      continue;
    }
    Future<void> future;
    try {
      future = hands_->submit(op, in_hand);
    } catch (const Exception& e) {
      note(op, Result<void>(e.error()), codes);
      if (op.kind == Kind::replace && !is_of_a_fault(e.code()))
        throw Finding(describe(op) + ": " + e.what());
      continue;
    }
    future = watch(op, future, codes);
    const auto& to = written(op);
    if (op.target != op.rank) asked.insert(op.target);
    if (op.kind == Kind::put) asked.insert(to.rank);
    if (op.await == Await::now) wait(future, describe(op));
    if (op.await == Await::drop && !stormy_) continue;
    pending.emplace_back(&op, future);
  }
  for (const int other : asked) {
    if (other == rank_) continue;
    // Others' devices do in order what this rank asks of them: behind this it is all there.
    const auto behind = world_.device(Rank(other)).nop();
    wait(behind, fmt::format("a nop on rank {}, behind all else", other));
    note({}, behind.wait(), codes);
  }
  for (const auto& [op, future] : pending) {
    wait(future, describe(*op));
    note(*op, future.wait(), codes);
  }
  look(in_hand.seen, codes);
}

Future<void> Runner::watch(const Operation& op, const Future<void>& future, Codes& codes) {
  switch (op.await) {
    case Await::callback: {
      Promise<void> promise;
      auto told = promise.future();
      future.on_ready([promise = std::make_shared<Promise<void>>(std::move(promise))](
                          const Result<void>& outcome) { promise->resolve(outcome); });
      return told;
    }
    case Await::chain: return when_all({future.then([] {}), future});
    case Await::coroutine: return await(future);
    default: (void)codes; return future;
  }
}

void Runner::note(const Operation& op, const Result<void>& outcome, Codes& codes) {
  if (op.kind != Kind::nop || op.id != 0) {
    const std::lock_guard lock(mutex_);
    codes.set(op.id, outcome.code());
    ++tally_.operations;
  }
  check_outcome(op, outcome);
}

void Runner::check_outcome(const Operation& op, const Result<void>& outcome) {
  const auto code = outcome.code();
  if (op.kind == Kind::wrong) {
    if (answers(op.wrong, code) || (is_of_a_fault(code) && stormy_)) return;
    throw Finding(fmt::format("a wrong call answers {}: {}",
                              outcome.ok() ? "ok" : outcome.error().to_string(), describe(op)));
  }
  if (op.kind == Kind::fault && outcome.ok())
    throw Finding("a fault that was ordered did not strike: " + describe(op));
  if (outcome.ok()) return;
  if ((op.kind == Kind::uniform || op.kind == Kind::normal) && code == Errc::unsupported &&
      !random_.supported)
    return;
  const auto what = fmt::format("{}: {}", describe(op), outcome.error().to_string());
  if (!is_of_a_fault(code)) throw Finding("it fails: " + what);
  const std::lock_guard lock(mutex_);
  if (!suspicious_.exchange(true)) suspicion_ = what;
}

void Runner::look(std::vector<Seen>& seen, Codes& codes) {
  for (auto& one : seen) {
    if (one.future.valid() && !one.future.wait().ok()) continue;
    try {
      if (one.later) one.bytes = one.later();
    } catch (const Exception& e) {
      note(*one.op, Result<void>(e.error()), codes);
      continue;
    }
    const std::lock_guard lock(mutex_);
    looks_.emplace_back(one.op->id, falsified(std::move(one.bytes)));
  }
  seen.clear();
}

std::vector<std::byte> Runner::falsified(std::vector<std::byte> bytes) {
  if (downloads_.fetch_add(1) == conduct_.spoil && !bytes.empty()) bytes.back() ^= std::byte{0x41};
  ++tally_.downloads;
  return bytes;
}

void Runner::compare(const Operation& op, const std::vector<std::byte>& seen,
                     const std::vector<std::byte>& expected) {
  const auto& spec = program_->buffers[static_cast<std::size_t>(op.at[0].buffer)];
  const auto difference = first_difference(spec, seen, expected);
  if (difference >= 0) {
    throw Finding(fmt::format("WRONG CONTENTS: {} sees another element {} than was written",
                              describe(op), difference));
  }
}

}  // namespace troupe::torture
