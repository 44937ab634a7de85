#include <algorithm>

#include "common/core/log.hpp"
#include "rank/run/restart.hpp"
#include "rank/run/run_loop.hpp"
#include "rank/world/world_core.hpp"

// World::run in a world that goes on with other members (--on-loss shrink).
//
// All ranks of the job take part, spectators and those that become it too: their processes live,
// and their host memory may hold a part of the state that nobody else has. They meet; what the old
// members have is secured; the new ones make their shares anew and read what they need of the
// newest state, wherever it lies. Whatever goes wrong goes wrong on all ranks alike, so that their
// host collectives stay in step: a fault in between leads to the next epoch and there to another
// try.

namespace troupe::rank_process {

void RunLoop::resize() {
  const auto standing = meet();
  if (!standing) return;
  if (!secured_) secure(standing->commit);
  secured_ = true;
  restarted_ = standing->restarted != 0;
  if (!options_->resized) {
    throw CollectiveException(rescue(
        {Errc::requeue, 0,
         "the world has lost a rank, and this program cannot go on with fewer (see --on-loss)"}));
  }
  core_->status().turn_to_members();
  require(core_->status().watches() ? Result<void>() : make_share(options_->resized));
  const auto state = newest_state();
  require(deal_out(state));
  core_->status().settle();
  secured_ = false;
  first_ = from_ = state ? state->step() : options_->first_step;
  if (state) restarted_ = true;
  if (core_->members().rank() == 0) {
    log::info("world", "epoch {}: going on with {} of {} ranks from step {}", core_->epoch().value,
              core_->members().size(), core_->mpi().size(), first_);
  }
}

std::optional<RunLoop::Standing> RunLoop::meet() {
  Standing mine{.epoch = core_->epoch().value, .restarted = restarted_};
  if (core_->members().rank() < 0) {
    mine.commit = kAnyStep;
  } else if (!secured_ && !core_->status().watches()) {
    mine.commit = checkpoint_->newest();
  }
  auto all = mine;
  bool together = true, at_the_end = false;
  for (const auto& other : core_->mpi().everyone().gather(mine)) {
    at_the_end = at_the_end || other.epoch == kTheEnd;
    together = together && other.epoch == mine.epoch;
    all.epoch = std::max(all.epoch, other.epoch);
    all.commit = std::min(all.commit, other.commit);
    all.restarted = std::max(all.restarted, other.restarted);
  }
  if (at_the_end) {
    met_at_the_end_ = true;
    core_->status().throw_end_of_run();
  }
  if (mine.epoch < all.epoch) throw Exception({Errc::world_reformed, 0, "the world is re-formed"});
  if (!together) return std::nullopt;
  if (all.commit == kAnyStep) all.commit = -1;
  return all;
}

void RunLoop::meet_at_the_end() {
  if ((core_->options().shrink || preparing_) && !met_at_the_end_)
    (void)core_->mpi().everyone().gather(Standing{});
  met_at_the_end_ = true;
}

Result<void> RunLoop::agree(const Result<void>& outcome) const {
  const auto& everyone = core_->mpi().everyone();
  const auto faults =
      everyone.gather(static_cast<std::uint8_t>(!outcome.ok() && is_by_fault(outcome.code())));
  if (std::find(faults.begin(), faults.end(), 1) != faults.end())
    throw Exception({Errc::world_reformed, 0, "a fault while the world's members change"});
  return everyone.agree(outcome);
}

void RunLoop::require(const Result<void>& outcome) const {
  if (auto agreed = agree(outcome); !agreed) throw CollectiveException(agreed.error());
}

void RunLoop::secure(std::int64_t commit) {
  Result<void> outcome;
  const bool taken = commit >= 0 && keeper_ != nullptr && core_->members().rank() >= 0;
  if (taken) {
    try {
      settle_keeper();
      outcome = keeper_->take(commit, core_->epoch().value);
    } catch (const Exception& e) {
      outcome = e.error();
    }
  }
  const auto everywhere = agree(outcome);
  if (taken && everywhere.ok()) keeper_->hold();
  if (!everywhere.ok() && core_->mpi().rank() == 0)
    log::warn("checkpoint", "the commit of step {} cannot be dealt out: {}", commit,
              everywhere.error().to_string());
  if (keeper_ != nullptr) keeper_->close();
}

Result<void> RunLoop::make_share(const std::function<void()>& make) {
  checkpoint_->clear();
  try {
    make();
    checkpoint_->forget();  // scratch that was lost on the way is of use again
    return settle_commands();
  } catch (...) {  // the others wait in here for this rank's outcome
    return thrown();
  }
}

Error RunLoop::thrown() {
  try {
    throw;
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::exception& e) {
    return {Errc::invalid, 0, std::string("the program has thrown: ") + e.what()};
  } catch (...) {
    return {Errc::invalid, 0, "the program has thrown an exception that is no std::exception"};
  }
}

std::int64_t RunLoop::newest_on_disk() const {
  const auto mine =
      std::max(core_->history().restarted_from, keeper_ != nullptr ? keeper_->on_disk() : -1);
  const auto all = core_->mpi().everyone().gather(mine);
  return *std::max_element(all.begin(), all.end());
}

std::optional<SavedState> RunLoop::newest_state() {
  const auto& everyone = core_->mpi().everyone();
  const auto on_disk = newest_on_disk();
  auto memory = MemoryState::find(everyone, held());
  if (memory.ok() && (*memory)->step() >= on_disk) return SavedState(std::move(*memory));
  if (on_disk < 0) return std::nullopt;
  auto found = find_state(everyone, states_, on_disk, true);
  if (!found) throw CollectiveException(found.error());
  return *found;
}

Result<void> RunLoop::deal_out(const std::optional<SavedState>& state) {
  Result<void> outcome;
  if (!core_->status().watches()) {
    try {
      choose_io();
      begin_keeping();
      if (state) outcome = load(*state);
    } catch (const Exception& e) {
      outcome = e.error();
    }
  }
  if (state) state->serve();
  return outcome;
}

bool RunLoop::watch() {
  using Seen = WorldStatus::Seen;
  for (;;) {
    const bool waits = !options_->spectate;
    const auto seen = core_->status().watch(number_, place_of(-1), waits);
    if (seen == Seen::new_epoch) forget_commits_after(-1);
    if (seen != Seen::nothing) return seen == Seen::finished;
    if (!waits) options_->spectate();
  }
}

}  // namespace troupe::rank_process
