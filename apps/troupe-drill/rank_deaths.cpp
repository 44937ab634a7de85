#include "rank_deaths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "drill.hpp"

namespace troupe::drill {
namespace {

constexpr std::int64_t kStepsBetween = 50;  ///< from one attack to the next

std::int64_t step_of(std::size_t attack) {
  return static_cast<std::int64_t>(attack + 1) * kStepsBetween + 3;
}

std::vector<OrderedFault> faults_of(const Options& options) {
  std::vector<OrderedFault> faults;
  std::size_t number = 0;
  for (const auto& attack : options.attacks) {
    for (std::int64_t i = 0; i < options.repetitions; ++i, ++number) {
      for (const int rank : options.victims)
        faults.push_back({.death = attack.death, .iteration = step_of(number), .rank = rank});
    }
  }
  return faults;
}

}  // namespace

RankDeaths::RankDeaths(Runtime& runtime, const Options& options)
    : runtime_(runtime),
      world_(runtime.world()),
      device_(runtime.device()),
      options_(options),
      attacks_(options.attacks.size() * static_cast<std::size_t>(options.repetitions)),
      faults_(runtime, faults_of(options)) {}

std::vector<Series> RankDeaths::suffer_all() {
  Checkpoint state(device_);
  SaveOptions save;  // nothing to disk
  save.partner = world_.save_options().partner;
  world_.run(state, [this](std::int64_t number) { return step(number); },
             {.commit_every = kCommitEvery, .prepare = [&] { make_state(state); }, .save = save});
  bool intact = true;
  for (const bool here : world_.gather_values(kept_is_intact())) intact = intact && here;
  const auto all = deaths();
  if (all.size() != attacks_ * options_.victims.size())
    throw CollectiveException({Errc::internal, 0,
                               fmt::format("{} deaths were overcome, of {}", all.size(),
                                           attacks_ * options_.victims.size())});
  std::vector<Series> series;
  auto next = all.begin();
  std::size_t number = 0;
  for (const auto& attack : options_.attacks) {
    auto& one = series.emplace_back(Series{attack, {}});
    for (std::int64_t i = 0; i < options_.repetitions; ++i, ++number) {
      const auto end = next + static_cast<std::ptrdiff_t>(options_.victims.size());
      one.outcomes.push_back({.recoveries = {next, end},
                              .wall_ms = noted_.at(number),
                              .failed_commands = 0,
                              .kept_intact = intact});
      next = end;
    }
  }
  return series;
}

void RankDeaths::make_state(Checkpoint& state) {
  stream_ = device_.alloc<double>(kStreamLength);
  pauses_ = device_.alloc<double>(static_cast<std::int64_t>(attacks_));
  kept_ = device_.alloc<float>(static_cast<std::int64_t>(options_.kept_bytes / sizeof(float)));
  device_.fill(pauses_, 0.0);
  device_.rng().uniform(kept_, {.subsequence = static_cast<std::uint64_t>(world_.rank())});
  state.add("pauses", pauses_), state.add("kept", kept_), state.add_scratch(stream_);
  is_fresh_ = true;
}

Step RankDeaths::step(std::int64_t number) {
  if (is_fresh_) noted_ = device_.download(pauses_);
  is_fresh_ = false;
  reduce_and_verify(world_, device_, stream_);
  note_pauses();
  verified_ = Clock::now();
  if (number % kStepsBetween == 0) settle();
  faults_.strike(number);
  return number < step_of(attacks_) ? Step::again : Step::done;
}

void RankDeaths::note_pauses() {
  const auto overcome = deaths().size() / options_.victims.size();
  const auto noted = static_cast<std::size_t>(
      std::ranges::count_if(noted_, [](double pause) { return pause > 0; }));
  if (noted >= overcome || noted == noted_.size()) return;
  // A process that is new has waited for nothing.
  const double mine =
      verified_ ? std::chrono::duration<double, std::milli>(Clock::now() - *verified_).count() : 0;
  const auto pauses = world_.gather_values(mine);
  auto values = noted_;
  values[noted] = *std::max_element(pauses.begin(), pauses.end());
  device_.upload(std::span<const double>(values), pauses_).get();
  noted_ = std::move(values);
}

void RankDeaths::settle() {
  if (options_.settle) {
    std::this_thread::sleep_for(*options_.settle);
  } else if (runtime_.config().text("standby") != "off") {
    world_.wait_for_standbys(kSettleLimit);
  }
}

std::vector<Recovery> RankDeaths::deaths() const {
  auto all = world_.recoveries();
  std::erase_if(all, [](const Recovery& one) { return one.kind != "rank" && one.kind != "node"; });
  return all;
}

bool RankDeaths::kept_is_intact() {
  auto fresh = device_.alloc<float>(kept_.length());
  device_.rng().uniform(fresh, {.subsequence = static_cast<std::uint64_t>(world_.rank())});
  const auto values = device_.download(kept_), expected = device_.download(fresh);
  return std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)) == 0;
}

}  // namespace troupe::drill
