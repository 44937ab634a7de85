#include "runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "catalogue/random.hpp"
#include "random_calls.hpp"

namespace troupe::torture {
namespace {

using namespace std::chrono_literals;

/// The codes that a wrong call may answer with.
bool answers(Wrong wrong, Errc code) {
  switch (wrong) {
    case Wrong::no_such_rank: return code == Errc::peer_lost || code == Errc::invalid;
    case Wrong::spoilt:
    case Wrong::freed_token: return code == Errc::stale;
    case Wrong::root: return code == Errc::invalid || code == Errc::library;
    default: return code == Errc::invalid;
  }
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

Runner::Runner(Runtime& runtime, const Conduct& conduct, Account& account)
    : runtime_(runtime),
      world_(runtime.world()),
      device_(runtime.device()),
      conduct_(conduct),
      rank_(world_.rank()),
      ranks_(world_.size()),
      account_(account),
      blows_(runtime),
      player_(account, blows_, conduct.deadline),
      own_(device_),
      calls_(device_),
      meeting_(device_.alloc<double>(8)),
      own_tokens_(device_.alloc<std::uint8_t>(64 * sizeof(GpuToken))),
      all_tokens_(device_.alloc<std::uint8_t>(64 * sizeof(GpuToken) * ranks_)) {
  flags_ = device_.alloc<double>(ranks_);
  if (runtime.config().text("on-loss") == "shrink") {
    if (!learn_random_numbers()) throw Finding("a device host was lost before the first program");
  } else {
    while (any_rank(!learn_random_numbers())) settle();
  }
  const auto carrier = runtime.actors().spawn<Carrier>({.name = Carrier::kName}, &runtime);
  world_.publish(Carrier::kName, carrier).take();
  (void)device_.take_error();
}

bool Runner::learn_random_numbers() {
  random_.sets.clear();
  const auto make = [&]<class T>(T, std::size_t kind, std::uint64_t set) {
    const auto room = device_.alloc<T>(RandomTable::kCount);
    auto rng = device_.rng();
    const auto first = static_cast<std::size_t>(Kind::uniform);
    const auto made = draw(rng, static_cast<Kind>(first + kind), set, room).wait();
    if (is_of_a_fault(made.code())) throw Exception(made.error());
    random_.supported[kind] = made.ok();
    std::vector<std::byte> bytes(RandomTable::kCount * sizeof(T));
    if (made.ok()) {
      const auto values = device_.download(room);
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    random_.sets.push_back(std::move(bytes));
  };
  try {
    device_.fill(meeting_, 1.0).get();
    for (const bool wide : {false, true}) {
      for (std::size_t kind = 0; kind < RandomTable::kKinds; ++kind) {
        for (std::uint64_t set = 0; set < RandomTable::kSets; ++set)
          wide ? make(double{}, kind, set) : make(float{}, kind, set);
      }
    }
  } catch (const Exception& e) {
    if (!is_of_a_fault(e.code())) throw;
    (void)device_.take_error();
    return false;
  }
  return true;
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
  blows_.begin();
  hands_ = std::make_unique<Hands>(runtime_, program, own_, calls_, conduct_.deadline);
  oracle_ = std::make_unique<Oracle>(program, random_);
  (void)device_.take_error();
  for (int group = 1; program.groups && group < kGroups; ++group) hands_->split(group);
  while (any_rank(!make_buffers())) {
    settle();
    check_recoveries();
  }
}

/// Whether nothing has come in between: on a busy machine a device host may seem dead.
bool Runner::make_buffers() {
  try {
    for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b) {
      hands_->allocate(b);
      hands_->upload(b, Oracle::initial(*program_, rank_, b, 0)).get();
    }
  } catch (const Exception& exception) {
    if (!is_of_a_fault(exception.error().code)) throw;
    const std::lock_guard lock(mutex_);
    if (!suspicious_.exchange(true))
      suspicion_ = std::string("making its buffers: ") + exception.what();
    return false;
  }
  return true;
}

void Runner::run(const Program& program) {
  account_.at(fmt::format("seed {}: making its buffers", program.seed));
  begin(program);
  for (round_ = 0; round_ < program.rounds.size(); ++round_) {
    const auto& round = program.rounds[round_];
    if (round.left_out) continue;
    account_.at(fmt::format("seed {}, round {} ({})", program.seed, round_, to_string(round.kind)));
    switch (round.kind) {
      case RoundKind::free:
      case RoundKind::held: play_free(round); break;
      case RoundKind::run: play_run(round); break;
      case RoundKind::versions: play_versions(round); break;
      case RoundKind::failing: play_failing(round); break;
      case RoundKind::slabs: play_slabs(round); break;
      case RoundKind::pieces: play_pieces(round); break;
      case RoundKind::recorded: play_recorded(round); break;
      case RoundKind::distributed: play_distributed(round); break;
      case RoundKind::helped: play_helped(round); break;
      case RoundKind::members: break;  // see Members
    }
    if (!oracle_->inexact()) continue;
    // What a fault has left out may change a value from which the rest was to be exact.
    if (stormy_) break;
    throw Finding("the program has no exact values: " + *oracle_->inexact());
  }
  if (stormy_) {
    settle();
    check_recoveries();
  }
  account_.at(fmt::format("seed {}: freeing its buffers", program.seed));
  hands_.reset();
  if (program.groups) (void)world_.split(-1);  // frees the communicators of those that are gone
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
  const bool hears_all = stormy_;
  world_.barrier();
  {
    const auto play = [&](int t) {
      return [&, t] { play_thread(round, static_cast<std::size_t>(t), codes); };
    };
    // Whoever waits for the collective, and may do so in its script, ends last.
    Threads waits, threads;
    const bool held = round.kind == RoundKind::held, late = held && rank_ == round.special;
    if (held && !late) waits.start(play(round.threads));
    for (int t = 0; t < round.threads; ++t) threads.start(play(t));
    threads.join();
    if (held) {
      world_.barrier();  // nothing of the threads may depend on the collective
      if (late) waits.start(play(round.threads));
    }
    waits.join();
  }
  blows_.end();
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
  // A fault that nobody ordered: what became of operations whose futures were dropped is not known.
  if (stormy_ && !hears_all) {
    looks_.clear();
    return write_anew(std::string(program_->buffers.size(), kLost));
  }
  account_.at(account_.where() + ", compared");
  oracle_->apply(
      round, 0,
      [&](const Operation& op) {
        const auto code = all[static_cast<std::size_t>(op.rank)].of(op.id);
        if (code == Codes::kUnknown || static_cast<Errc>(code) == Errc::ok) return Outcome::done;
        // Refused as it should be; a fault may have come first.
        if (op.kind == Kind::wrong && answers(op.wrong, static_cast<Errc>(code)))
          return Outcome::done;
        if (op.fails == static_cast<Errc>(code)) return Outcome::spoilt;
        return op.target != op.rank || writes_there(op.kind) ? Outcome::unsure : Outcome::refused;
      },
      [&](const Operation& op, const std::vector<std::byte>& expected) {
        if (op.rank != rank_) return;
        const auto seen = looks_.find(op.id);
        if (seen != looks_.end()) compare(op, seen->second, expected);
      });
  looks_.clear();
  verify();
  if (!faulty) check_told(round, codes, told);
  (void)device_.take_error();
}

/// Wrong calls of the round are told of, and those that had to fail; nothing else is.
void Runner::check_told(const Round& round, const Codes& codes, const Result<void>& told) const {
  bool may_tell = false, failed = false;
  for (const auto& script : round.scripts[0][static_cast<std::size_t>(rank_)]) {
    for (const auto& op : script) {
      failed = failed || (op.fails != Errc::ok && static_cast<Errc>(codes.of(op.id)) == op.fails);
      may_tell = may_tell || op.kind == Kind::wrong || random_.lacks(op) ||
                 (is_call(op.kind) && op.call->may_refuse);
    }
  }
  if (!told.ok() && !told.error().message.empty() && !may_tell && !failed)
    throw Finding("take_error() tells of " + told.error().to_string());
  if (told.ok() && failed) throw Finding("take_error() tells nothing of a command that has failed");
}

void Runner::play_thread(const Round& round, std::size_t thread, Codes& codes) {
  const auto& script = round.scripts[0][static_cast<std::size_t>(rank_)][thread];
  player_.play(script, *hands_,
               {.outcome =
                    [&](const Operation& op, const Result<void>& outcome) {
                      {
                        const std::lock_guard lock(mutex_);
                        codes.set(op.id, outcome.code());
                      }
                      check_outcome(op, outcome);
                    },
                .saw =
                    [&](const Operation& op, std::vector<std::byte> bytes) {
                      const std::lock_guard lock(mutex_);
                      looks_[op.id] = std::move(bytes);
                    },
                .hears_all = stormy_});
  wait_for_others(script);
}

void Runner::wait_for_others(const std::vector<Operation>& script) {
  std::set<int> asked;
  for (const auto& op : script) {
    asked.insert(op.target);
    if (writes_there(op.kind)) asked.insert(op.at[1].rank);
  }
  asked.erase(rank_);
  for (const int other : asked) {
    // Others' devices do in order what this rank asks of them: behind this it is all there.
    const auto behind = world_.device(Rank(other)).nop();
    wait(behind, fmt::format("a nop on rank {}, behind all else", other));
    check_outcome({}, behind.wait());
  }
}

void Runner::check_outcome(const Operation& op, const Result<void>& outcome) {
  const auto code = outcome.code();
  if (op.kind == Kind::wrong) {
    if (answers(op.wrong, code)) return;
    if (!is_of_a_fault(code))  // else it is a fault's answer, ordered or not
      throw Finding(fmt::format("a wrong call answers {}: {}",
                                outcome.ok() ? "ok" : outcome.error().to_string(), describe(op)));
  }
  if (op.fails != Errc::ok && code == op.fails) return;
  // A device host that ends takes along what was ordered of its library.
  const bool may_succeed =
      op.fails == Errc::ok ||
      (op.fails == Errc::library &&
       (stormy_ || world_.recoveries().size() > known_ || !blows_.has_failed_library_of(op)));
  if (outcome.ok() && !may_succeed) throw Finding("it does not fail: " + describe(op));
  if (op.kind == Kind::fault && outcome.ok())
    throw Finding("a fault that was ordered did not strike: " + describe(op));
  if (outcome.ok()) return;
  if (code == Errc::unsupported && random_.lacks(op)) return;
  const auto what = fmt::format("{}: {}", describe(op), outcome.error().to_string());
  if (!is_of_a_fault(code)) throw Finding("it fails: " + what);
  const std::lock_guard lock(mutex_);
  if (!suspicious_.exchange(true)) suspicion_ = what;
}

void Runner::compare(const Operation& op, const std::vector<std::byte>& seen,
                     const std::vector<std::byte>& expected) {
  const auto spec = seen_by(*program_, op);
  const auto difference = first_difference(spec, seen, expected);
  if (difference < 0) return;
  throw Finding(fmt::format("WRONG CONTENTS: {} sees what was not written: {}", describe(op),
                            in_words(spec, difference, seen, expected)));
}

}  // namespace troupe::torture
