#include "rank/run/run_members.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/run/run_commands.hpp"

namespace troupe::rank_process {

bool RunMembers::prepare() {
  preparing_ = true;
  if (core_->status().members().have_changed()) {
    preparing_ = false;
  } else if (meet()) {
    require(core_->status().members().watches() ? Result<void>() : make_share(options_->prepare));
    preparing_ = false;
  }
  return !preparing_;
}

std::optional<std::int64_t> RunMembers::resize() {
  const auto standing = meet();
  if (!standing) return std::nullopt;
  if (standing->secured == 0) secure(standing->commit);
  secured_ = true;
  states_->inherit(standing->commit);
  states_->set_restarted(standing->restarted != 0);
  // Else the others go on without the ranks that were lost.
  const bool as_many = standing->as_many != 0;
  const auto& make = as_many ? options_->prepare : options_->resized;
  if (!make) {
    throw CollectiveException(states_->rescue(
        as_many ? Error{Errc::budget_exhausted, 0,
                        "a rank has died, and this program does not make its state in "
                        "RunOptions::prepare: it cannot go on (see --on-rank-loss)"}
                : Error{Errc::requeue, 0,
                        "the world has lost a rank, and this program cannot go on with fewer (see "
                        "--on-loss)"}));
  }
  core_->status().members().turn_to_new();
  require(core_->status().members().watches() ? Result<void>() : make_share(make));
  const auto state = states_->newest();
  require(deal_out(state));
  states_->forget_inherited();
  core_->status().members().settle();
  secured_ = false;
  const auto from = state ? state->step() : options_->first_step;
  if (state) states_->set_restarted(true);
  if (core_->members().rank() == 0) {
    log::info("world", "epoch {}: going on with {} of {} ranks from step {}", core_->epoch().value,
              core_->members().size(), core_->mpi().size(), from);
  }
  return from;
}

std::optional<RunMembers::Standing> RunMembers::meet() {
  Standing mine{.epoch = core_->epoch().value,
                .restarted = states_->restarted(),
                .secured = secured_ ? 1 : 0};
  if (core_->members().rank() < 0 || core_->status().members().is_new()) {
    mine.commit = kAnyStep;  // nor does it know how many there were
  } else if (!secured_ && !core_->status().members().watches()) {
    mine.commit = checkpoint_->newest();
  }
  if (mine.commit != kAnyStep) mine.as_many = core_->status().members().are_back() ? 1 : 0;
  auto all = mine;
  bool together = true, at_the_end = false;
  for (const auto& other : core_->mpi().everyone().gather(mine)) {
    at_the_end = at_the_end || other.epoch == kTheEnd;
    together = together && other.epoch == mine.epoch;
    all.epoch = std::max(all.epoch, other.epoch);
    all.commit = std::min(all.commit, other.commit);
    all.restarted = std::max(all.restarted, other.restarted);
    all.secured = std::max(all.secured, other.secured);
    all.as_many = std::min(all.as_many, other.as_many);
  }
  if (at_the_end) {
    met_at_the_end_ = true;
    core_->status().run().throw_end();
  }
  if (mine.epoch < all.epoch) throw Exception({Errc::world_reformed, 0, "the world is re-formed"});
  if (!together) return std::nullopt;
  if (all.commit == kAnyStep) all.commit = -1;
  return all;
}

void RunMembers::meet_at_the_end() {
  if ((core_->options().shrink || preparing_) && !met_at_the_end_)
    (void)core_->mpi().everyone().gather(Standing{});
  met_at_the_end_ = true;
}

Result<void> RunMembers::agree(const Result<void>& outcome) const {
  const auto& everyone = core_->mpi().everyone();
  const auto faults = everyone.gather(
      static_cast<std::uint8_t>(!outcome.ok() && is_by_fault(*core_, outcome.code())));
  if (std::find(faults.begin(), faults.end(), 1) != faults.end())
    throw Exception({Errc::world_reformed, 0, "a fault while the world's members change"});
  return everyone.agree(outcome);
}

void RunMembers::require(const Result<void>& outcome) const {
  if (auto agreed = agree(outcome); !agreed) throw CollectiveException(agreed.error());
}

void RunMembers::secure(std::int64_t commit) {
  Result<void> outcome;
  auto* const keeper = states_->keeper();
  const bool taken = commit >= 0 && keeper != nullptr && core_->members().rank() >= 0;
  if (taken) {
    try {
      states_->settle();
      outcome = keeper->take(commit, core_->epoch().value);
    } catch (const Exception& e) {
      outcome = e.error();
    }
  }
  const auto everywhere = agree(outcome);
  if (taken && everywhere.ok()) keeper->hold();
  if (!everywhere.ok() && core_->mpi().rank() == 0)
    log::warn("checkpoint", "the commit of step {} cannot be dealt out: {}", commit,
              everywhere.error().to_string());
  if (keeper != nullptr) keeper->close();
}

Result<void> RunMembers::make_share(const std::function<void()>& make) {
  states_->ledger()->strike_all();
  checkpoint_->clear();
  try {
    make();
    checkpoint_->forget();  // scratch that was lost on the way is of use again
    return settle_commands(*core_);
  } catch (...) {  // the others wait in here for this rank's outcome
    return thrown();
  }
}

Result<void> RunMembers::deal_out(const std::optional<SavedState>& state) {
  Result<void> outcome;
  if (!core_->status().members().watches()) {
    try {
      states_->choose_io();
      states_->begin();
      if (state) outcome = states_->load(*state);
    } catch (const Exception& e) {
      outcome = e.error();
    }
  }
  if (state) state->serve();
  return outcome;
}

}  // namespace troupe::rank_process
