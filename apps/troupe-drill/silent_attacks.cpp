#include "silent_attacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "drill.hpp"

namespace troupe::drill {
namespace {

/// From one attack to the next: each has an interval of its own.
constexpr std::int64_t kStepsOfAttack = 2 * kCommitEvery;

std::int64_t beginning_of(std::size_t attack) {
  return static_cast<std::int64_t>(attack + 1) * kStepsOfAttack + 3;
}

}  // namespace

SilentAttacks::SilentAttacks(Runtime& runtime, const Options& options)
    : world_(runtime.world()),
      device_(runtime.device()),
      options_(options),
      attacks_(options.attacks.size() * static_cast<std::size_t>(options.repetitions)) {}

std::vector<Series> SilentAttacks::suffer_all() {
  Checkpoint state(device_);
  world_.run(state, [this](std::int64_t number) { return step(number); },
             {.commit_every = kCommitEvery, .prepare = [&] { make_state(state); }});
  bool intact = true;
  for (const bool here : world_.gather_values(is_intact())) intact = intact && here;
  std::set<std::int64_t> found;
  for (const auto& one : world_.corruptions()) found.insert(one.first_step);
  if (found.size() != attacks_)
    throw CollectiveException(
        {Errc::internal, 0,
         fmt::format("{} changes were found and undone, of {}", found.size(), attacks_)});
  const auto all = world_.gather_values(times_.size());
  check(*std::min_element(all.begin(), all.end()) == attacks_, "an attack has no end");
  std::vector<Series> series;
  std::size_t number = 0;
  for (const auto& attack : options_.attacks) {
    auto& one = series.emplace_back(Series{attack, {}});
    for (std::int64_t i = 0; i < options_.repetitions; ++i, ++number) {
      const auto times = world_.gather_values(times_[number]);
      one.outcomes.push_back({.recoveries = {},
                              .wall_ms = *std::max_element(times.begin(), times.end()),
                              .failed_commands = 0,
                              .kept_intact = intact});
    }
  }
  return series;
}

void SilentAttacks::make_state(Checkpoint& state) {
  const auto length = static_cast<std::int64_t>(options_.kept_bytes / sizeof(float));
  const RandomOptions random{.subsequence = static_cast<std::uint64_t>(world_.rank())};
  stream_ = device_.alloc<double>(kStreamLength);
  kept_ = device_.alloc<float>(length), constant_ = device_.alloc<float>(length);
  device_.rng().uniform(kept_, random), device_.rng().uniform(constant_, random);
  state.add("kept", kept_), state.add_scratch(stream_);
  state.add_constant("constant", constant_,
                     [=, this] { device_.rng().uniform(constant_, random); });
}

Step SilentAttacks::step(std::int64_t number) {
  reduce_and_verify(world_, device_, stream_);
  if (under_way_ && number >= under_way_->next) {
    times_.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - under_way_->since).count());
    under_way_.reset();
  }
  if (suffered_ < attacks_ && number == beginning_of(suffered_)) {
    under_way_ = Suffered{(number / kCommitEvery + 1) * kCommitEvery, Clock::now()};
    const auto& victims = options_.victims;
    if (std::find(victims.begin(), victims.end(), world_.rank()) != victims.end())
      device_.inject(attack(suffered_).silent.value());
    ++suffered_;
  }
  return number < beginning_of(attacks_) ? Step::again : Step::done;
}

const Attack& SilentAttacks::attack(std::size_t number) const {
  return options_.attacks[number / static_cast<std::size_t>(options_.repetitions)];
}

bool SilentAttacks::is_intact() {
  auto fresh = device_.alloc<float>(kept_.length());
  device_.rng().uniform(fresh, {.subsequence = static_cast<std::uint64_t>(world_.rank())});
  const auto expected = device_.download(fresh);
  return device_.download(kept_) == expected && device_.download(constant_) == expected;
}

}  // namespace troupe::drill
