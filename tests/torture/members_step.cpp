#include <fmt/format.h>

#include <algorithm>

#include "members.hpp"

// A step of a run whose members change.

namespace troupe::torture {

using namespace std::chrono_literals;

Step Members::step(const Round& round, std::int64_t number) {
  account_.advance();
  if (number == 0) {
    write_first();
    if (checked_ == world_.epoch()) meet();  // --verify does the step again, in the same epoch
  }
  if (checked_ != world_.epoch()) {
    if (number > 0) check(round, number);
    exchange_tokens();  // behind the checks of all, for others may write here from now on
    checked_ = world_.epoch();
  }
  if (number < round.steps) {
    play(round, number);
    if (number + 1 == round.steps) fence();
    return Step::again;
  }
  if (number == round.steps) check(round, number);
  meet();
  const bool waits = round.special != 0 && conduct_.rejoins && world_.size() < may_be_back();
  if (waits) std::this_thread::sleep_for(2ms);
  return waits ? Step::again : Step::done;
}

/// How many members the world can have again: who has left a failing GPU does not come back.
int Members::may_be_back() const {
  const auto recoveries = world_.recoveries();
  return program_->ranks -
         static_cast<int>(std::ranges::count(recoveries, "withdrawn", &Recovery::kind));
}

void Members::play(const Round& round, std::int64_t number) {
  Threads threads;
  for (int t = 0; t < round.threads; ++t)
    threads.start([&, t, timeline = World::timeline()] {
      const Timeline::Scope scope(timeline);
      play_thread(round, number, static_cast<std::size_t>(t));
    });
  threads.start([&] { strike(round, number); });
  threads.join();
}

/// The parts one after the other, each as far as to where all parts meet.
void Members::play_thread(const Round& round, std::int64_t number, std::size_t thread) {
  const Listener listener{
      .outcome = [this](const Operation& op, const Result<void>& outcome) { demand(op, outcome); },
      .saw =
          [this](const Operation& op, std::vector<std::byte> bytes) {
            const auto expected = looks_.find(op.id);
            if (expected == looks_.end()) return;
            const auto spec = seen_by(*program_, op);
            const auto difference = first_difference(spec, bytes, expected->second);
            if (difference < 0) return;
            throw Finding(fmt::format("WRONG CONTENTS: {} sees what was not written: {}",
                                      describe(op),
                                      in_words(spec, difference, bytes, expected->second)));
          }};
  const auto& scripts = round.scripts[static_cast<std::size_t>(number)];
  std::map<int, std::size_t> next;
  for (;;) {
    std::vector<const Operation*> together;
    for (const auto& [part, hands] : hands_) {
      const auto& script = scripts[static_cast<std::size_t>(part)][thread];
      auto& at = next[part];
      while (at < script.size() && !is_collective(script[at].kind)) {
        const auto first = at;
        while (at < script.size() && !is_collective(script[at].kind) &&
               script[at].kind != Kind::fault)
          ++at;
        player_.play(std::span(script).subspan(first, at - first), *hands, listener);
        if (at < script.size() && script[at].kind == Kind::fault) ++at;  // see strike()
      }
      if (at < script.size()) together.push_back(&script[at++]);
    }
    if (together.empty()) return;
    collective(together, listener);
  }
}

void Members::collective(const std::vector<const Operation*>& mine, const Listener& listener) {
  account_.count_operations(std::ssize(mine));
  const auto& op = *mine.front();
  const auto future = op.kind == Kind::broadcast ? broadcast(mine) : all_reduce(mine);
  if (op.await == Await::drop) return;
  player_.wait(future, describe(op));
  listener.outcome(op, future.wait());
}

/// The sum over this member's parts, and then over the members.
Future<void> Members::all_reduce(const std::vector<const Operation*>& mine) {
  const auto reduce = [&]<class T>(const GpuRef<T>& room) {
    const auto sum = room.slice(0, mine.front()->at[0].count);
    const auto slice_of = [&](const Operation& op, const Slice& at) {
      return std::get<GpuRef<T>>(hands_.at(op.rank)->ref(at.buffer)).slice(at.first, at.count);
    };
    std::vector<Future<void>> futures;
    for (const auto* op : mine) {
      const auto part = slice_of(*op, op->at[0]);
      futures.push_back(op == mine.front() ? device_.copy(part, sum)
                                           : device_.blas().axpy(T(1), part, sum));
    }
    futures.push_back(world_.all_reduce(sum, ReduceOp::sum));
    for (const auto* op : mine) futures.push_back(device_.copy(sum, slice_of(*op, op->at[1])));
    return when_all(futures);
  };
  return mine.front()->dtype == DType::f32 ? reduce(narrow_sum_) : reduce(sum_);
}

/// Among the members from that which has the root, and from each member's first part to its others.
Future<void> Members::broadcast(const std::vector<const Operation*>& mine) {
  const int root = mine.front()->peer;
  const int owner = Share::owner(root, world_.size(), program_->ranks);
  const auto* first = mine.front();
  for (const auto* op : mine) {
    if (op->rank == root) first = op;
  }
  return with_type(first->dtype, [&](auto zero) {
    const auto slice_of = [&](const Operation& op) {
      return std::get<GpuRef<decltype(zero)>>(hands_.at(op.rank)->ref(op.at[0].buffer))
          .slice(op.at[0].first, op.at[0].count);
    };
    std::vector<Future<void>> futures{world_.broadcast(slice_of(*first), Rank(owner))};
    for (const auto* op : mine) {
      if (op != first) futures.push_back(device_.copy(slice_of(*first), slice_of(*op)));
    }
    return when_all(futures);
  });
}

/// The blows of this process, at whatever part it is. One member has to be left.
void Members::strike(const Round& round, std::int64_t number) {
  int before = 0;
  for (const auto& threads : round.scripts[static_cast<std::size_t>(number)]) {
    for (const auto& script : threads) {
      for (const auto& op : script) {
        if (op.kind != Kind::fault || ++before >= world_.size() || op.rank != job_rank_) continue;
        if (op.blow != Blow::kill_rank || !is_past(round, op)) (void)blows_.strike(op);
      }
    }
  }
}

/// A new process does not know what the one before has dealt, but how often the rank has died.
bool Members::is_past(const Round& round, const Operation& blow) const {
  int before = 0;
  for (const auto& step : round.scripts) {
    for (const auto& threads : step) {
      for (const auto& script : threads) {
        for (const auto& op : script) {
          if (op.id == blow.id) return before < world_.deaths_of_rank();
          if (op.kind == Kind::fault && op.blow == Blow::kill_rank && op.rank == job_rank_)
            ++before;
        }
      }
    }
  }
  return false;
}

void Members::demand(const Operation& op, const Result<void>& outcome) const {
  const auto code = outcome.code();
  if (outcome.ok() || (code == Errc::unsupported && random_.lacks(op))) return;
  const bool is_lost = code == Errc::budget_exhausted || code == Errc::device_failed;
  if (is_of_a_fault(code) || code == Errc::peer_lost || is_lost) throw Exception(outcome.error());
  throw Finding("in a step it fails: " + describe(op) + ": " + outcome.error().to_string());
}

void Members::meet() {
  device_.fill(meeting_, 1.0);
  world_.all_reduce(meeting_, ReduceOp::sum).get();
}

void Members::fence() {
  for (int other = 0; other < world_.size(); ++other) world_.device(Rank(other)).nop().get();
  meet();
}

void Members::exchange_tokens() {
  const auto parts = static_cast<std::size_t>(program_->ranks);
  std::vector<GpuToken> mine(kTokens * parts);
  for (const auto& [part, hands] : hands_) {
    for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b)
      mine[static_cast<std::size_t>(part * kTokens + b)] = hands->token(b);
  }
  const auto all = gather_tokens(world_, device_, mine, own_tokens_, all_tokens_);
  Tokens tokens(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    const auto owner = static_cast<std::size_t>(
        Share::owner(static_cast<int>(part), world_.size(), program_->ranks));
    const auto first =
        all.begin() + static_cast<std::ptrdiff_t>(owner * mine.size() + part * kTokens);
    tokens[part].assign(first, first + kTokens);
  }
  for (const auto& [part, hands] : hands_) hands->set_tokens(tokens, GpuToken{});
}

}  // namespace troupe::torture
