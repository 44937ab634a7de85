#include "members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

// Shares of a program, and what a run does with them; see members_step.cpp for the steps.

namespace troupe::torture {

using namespace std::chrono_literals;

namespace {

std::string entry_of(int part, int buffer) {
  return fmt::format("part {} buffer {}", part, buffer);
}

}  // namespace

int Share::owner(int part, int size, int parts) {
  int rank = 0;
  while (of(rank, size, parts).end <= part) ++rank;
  return rank;
}

Members::Members(Runtime& runtime, const Conduct& conduct, Account& account,
                 const RandomTable& random, const OwnCode& own, const Calls& calls)
    : runtime_(runtime),
      world_(runtime.world()),
      device_(runtime.device()),
      conduct_(conduct),
      account_(account),
      blows_(runtime),
      player_(account, blows_, conduct.deadline),
      random_(random),
      own_(own),
      calls_(calls),
      job_rank_(world_.rank()),
      respawns_(runtime.config().text("on-rank-loss") == "respawn") {}

void Members::run(const Program& program) {
  program_ = &program;
  blows_.begin();
  Oracle oracle(program, random_);
  for (round_ = 0; round_ < program.rounds.size(); ++round_) {
    const auto& round = program.rounds[round_];
    if (round.left_out) continue;
    account_.at(fmt::format("seed {}, round {} ({})", program.seed, round_, to_string(round.kind)));
    before_ = std::make_unique<Oracle>(oracle);
    looks_.clear();
    for (std::size_t s = 0; s < round.scripts.size(); ++s) {
      oracle.apply(
          round, s, [](const Operation&) { return Outcome::done; },
          [&](const Operation& op, const std::vector<std::byte>& expected) {
            looks_[op.id] = expected;
          });
    }
    if (oracle.inexact()) throw Finding("the program has no exact values: " + *oracle.inexact());
    play_round(round);
  }
}

void Members::play_round(const Round& round) {
  Checkpoint state(device_);
  checked_ = {};
  if (!respawns_) share_out_at_last(state);
  const auto share = [&] { share_out(state); };
  try {
    world_.run(state, [&](std::int64_t number) { return step(round, number); },
               {.commit_every = round.commit_every,
                .prepare = respawns_ ? share : std::function<void()>(),
                .save = save_options(round),
                .redistribute = [&](const SavedState& saved) { take_over(saved); },
                .resized = share,
                .spectate =
                    [&] {
                      account_.advance();
                      std::this_thread::sleep_for(1ms);
                    }});
  } catch (const Exception& e) {
    // Nobody was left, or the last one was told to stop: the status says what became of the job.
    if (e.code() == Errc::requeue || e.code() == Errc::budget_exhausted) throw;
    throw Finding(std::string("run() fails: ") + e.what());
  }
  blows_.end();
  hands_.clear();
  if (!conduct_.folder.empty() && world_.rank() == 0) {
    std::error_code ignored;
    const auto save = save_options(round);
    std::filesystem::remove_all(save.directory + "/" + save.name, ignored);
    if (!save.local.empty()) std::filesystem::remove_all(save.local + "/" + save.name, ignored);
  }
  (void)device_.take_error();
}

SaveOptions Members::save_options(const Round& round) const {
  SaveOptions save;
  save.partner = world_.save_options().partner;
  save.restart = SaveOptions::kNever;
  if (conduct_.folder.empty()) return save;
  save.directory = conduct_.folder;
  save.local = world_.save_options().local;
  save.name = fmt::format("seed-{}-{}", program_->seed, round_);
  save.every = round.commit_every * 2;
  return save;
}

// Shares

void Members::share_out(Checkpoint& state) {
  const int parts = program_->ranks, buffers = static_cast<int>(program_->buffers.size());
  hands_.clear();
  const auto share = Share::of(world_.rank(), world_.size(), parts);
  std::vector<int> homes;
  for (int part = 0; part < parts; ++part)
    homes.push_back(Share::owner(part, world_.size(), parts));
  for (int part = share.first; part < share.end; ++part) {
    auto& hands = *(hands_[part] = std::make_unique<Hands>(runtime_, *program_, own_, calls_,
                                                           conduct_.deadline));
    hands.set_homes(homes);
    for (int b = 0; b < buffers; ++b) {
      hands.allocate(b);
      std::visit([&](auto& one) { state.add(entry_of(part, b), one); }, hands.ref(b));
    }
  }
  std::int64_t longest = 1;
  for (const auto& buffer : program_->buffers) longest = std::max(longest, buffer.length);
  const auto bytes = static_cast<std::int64_t>(sizeof(GpuToken)) * kTokens * parts;
  meeting_ = device_.alloc<double>(8);
  sum_ = device_.alloc<double>(longest);
  narrow_sum_ = device_.alloc<float>(longest);
  own_tokens_ = device_.alloc<std::uint8_t>(bytes);
  all_tokens_ = device_.alloc<std::uint8_t>(bytes * world_.size());
  state.add_scratch(meeting_), state.add_scratch(sum_), state.add_scratch(narrow_sum_);
  state.add_scratch(own_tokens_), state.add_scratch(all_tokens_);
}

/// Before a run; a fault that strikes now is overcome first.
void Members::share_out_at_last(Checkpoint& state) {
  const auto end = Clock::now() + conduct_.deadline;
  while (!world_.spectator()) {
    try {
      return share_out(state);
    } catch (const Exception& e) {
      state.clear();
      if (e.code() == Errc::budget_exhausted || e.code() == Errc::device_failed) return;  // is lost
      if (!is_of_a_fault(e.code()) || Clock::now() > end)
        throw Finding(std::string("a share cannot be made: ") + e.what());
      std::this_thread::sleep_for(5ms);
    }
  }
}

void Members::take_over(const SavedState& state) {
  const int parts = program_->ranks, buffers = static_cast<int>(program_->buffers.size());
  std::vector<SavedPiece> pieces;
  for (const auto& [part, hands] : hands_) {
    for (int b = 0; b < buffers; ++b)
      pieces.push_back({Share::owner(part, state.parts(), parts), entry_of(part, b), 0,
                        static_cast<std::uint64_t>(spec(b).length)});
  }
  const auto saved = state.read(pieces).take();
  auto bytes = saved.begin();
  for (const auto& [part, hands] : hands_) {
    for (int b = 0; b < buffers; ++b) hands->upload(b, account_.seen(*bytes++)).get();
  }
}

void Members::write_first() {
  for (const auto& [part, hands] : hands_) {
    for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b)
      hands->upload(b, before_->contents(part, b)).get();
  }
}

void Members::check(const Round& round, std::int64_t number) {
  Oracle oracle(*before_);
  const auto steps = std::min<std::size_t>(static_cast<std::size_t>(number), round.scripts.size());
  for (std::size_t s = 0; s < steps; ++s) {
    oracle.apply(
        round, s, [](const Operation&) { return Outcome::done; },
        [](const Operation&, const std::vector<std::byte>&) {});
  }
  for (const auto& [part, hands] : hands_) {
    for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b) {
      const auto bytes = account_.seen(hands->download({part, b, 0, spec(b).length}));
      const auto difference = first_difference(spec(b), bytes, oracle.contents(part, b));
      if (difference < 0) continue;
      throw Finding(fmt::format(
          "WRONG CONTENTS: buffer {} of part {} ({} {}), before step {} of {} members: "
          "{}",
          b, part, spec(b).length, troupe::to_string(spec(b).dtype), number, world_.size(),
          in_words(spec(b), difference, bytes, oracle.contents(part, b))));
    }
  }
}

}  // namespace troupe::torture
