#include "rank/run/interval_checks.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "rank/run/corruptions.hpp"
#include "rank/run/run_commands.hpp"

namespace troupe::rank_process {

IntervalChecks::Outcome IntervalChecks::resume(std::int64_t step, std::int64_t struck) {
  begin_ = step;
  if (!constants_.any()) return Outcome::good;
  constants_.learn();
  const auto changed = constants_.mend(step, std::max(step, struck));
  return !changed.empty() && tell(changed) ? Outcome::failing : Outcome::good;
}

void IntervalChecks::begin(std::int64_t step) {
  begin_ = step;
  verifier_.begin(step);
}

void IntervalChecks::look_at_begin() {
  if (!replicas_.any()) return;
  const auto odd = replicas_.odd();
  if (!odd) return;
  throw CollectiveException(
      {Errc::invalid, 0,
       "entry " + odd->entry + " is to be the same on all ranks, and is not when the run begins" +
           (odd->rank >= 0 ? ": that of rank " + std::to_string(odd->rank) + " differs" : "")});
}

IntervalChecks::Outcome IntervalChecks::end(std::int64_t next) {
  // First: passes that agree prove nothing if all have read the same wrong constant.
  if (constants_.any()) {
    const auto changed = constants_.mend(begin_, next - 1);
    if (!changed.empty()) {
      settle();
      return do_again(changed);
    }
  }
  if (verifier_.is_due()) {
    settle();
    const auto outcome = verifier_.end(next);
    if (outcome != Verifier::Outcome::good) {
      const bool undecided = outcome == Verifier::Outcome::undecided;
      const bool leaves = undecided && gives_up(core_->status().corruptions().all().back());
      go_back();
      if (undecided)
        verifier_.begin(begin_);
      else
        verifier_.go_on();
      return leaves ? Outcome::failing : Outcome::again;
    }
  }
  if (!replicas_.any()) return Outcome::good;
  settle();
  auto odd = replicas_.odd();
  if (!odd) return Outcome::good;
  odd->first_step = begin_;
  odd->last_step = next - 1;
  return do_again({*odd});
}

bool IntervalChecks::tell(const std::vector<Corruption>& found) {
  if (std::exchange(odd_at_, begin_) != begin_) odd_.clear();
  std::optional<Corruption> persistent;
  for (auto one : found) {
    one.persistent = !odd_.insert(one.rank).second;
    if (one.persistent) persistent = one;
    tell_corruption(*core_, std::move(one));
  }
  return persistent && gives_up(*persistent);
}

IntervalChecks::Outcome IntervalChecks::do_again(const std::vector<Corruption>& found) {
  const bool leaves = tell(found);
  go_back();
  verifier_.begin(begin_);
  return leaves ? Outcome::failing : Outcome::again;
}

void IntervalChecks::settle() {
  core_->status().run().wait_stable(begin_);
  auto* const keeper = states_->keeper();
  if (keeper != nullptr && keeper->reads(1 - checkpoint_->half())) states_->settle();
  states_->ledger()->strike(1 - checkpoint_->half());
  if (core_->members().size() == 1) return;
  (void)core_->tokens().flush().wait();
  exchange_.meet();  // the same on all others
}

void IntervalChecks::go_back() {
  timeline_->turn(RunTimeline::Standing::undone);
  if (auto back = checkpoint_->rollback(begin_); !back) throw Exception(back.error());
  exchange_.meet();  // the state is that of the commit everywhere
}

bool IntervalChecks::gives_up(const Corruption& found) {
  const auto& options = core_->options();
  const bool leaves = (options.leaves_failing && options.shrink) || options.replaces_failing;
  const auto& members = core_->members();
  const bool mine =
      found.rank >= 0 && found.rank == members.ranks()[static_cast<std::size_t>(members.rank())];
  if (mine)
    core_->device().inject_health({0, HealthKind::other, "it computes wrong numbers", true});
  if (found.rank < 0 || !leaves) throw CollectiveException({Errc::corrupt, 0, in_words(found)});
  // A rank that goes on in another process does not know that it is the second time.
  if (std::exchange(given_up_at_, begin_) == begin_)
    throw Exception({Errc::corrupt, 0, in_words(found)});
  while (mine && !core_->status().health().failing()) {
    if (is_interrupted(*core_)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void IntervalChecks::look_at_memory(std::int64_t step) {
  if (!guard_) return;
  if (auto sound = guard_->look(step); !sound) throw Exception(sound.error());
}

void IntervalChecks::look_at_memory_at_end(std::int64_t step) {
  if (!guard_) return;
  if (auto sound = guard_->look_at_end(step); !sound) throw Exception(sound.error());
}

void IntervalChecks::stray_if_ordered(std::int64_t step) {
  auto& faults = core_->device().silent_faults();
  if (!faults.stray_is_ordered()) return;
  const bool strayed =
      (guard_ && guard_->stray(step, constants_.buffers())) || constants_.stray(step);
  if (strayed) faults.take_stray();
}

void IntervalChecks::flip_if_ordered(std::int64_t step) {
  stray_if_ordered(step);
  if (!core_->device().silent_faults().take_flip()) return;
  std::vector<std::size_t> buffers;
  const auto& entries = checkpoint_->saved_entries();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].dtype && entries[i].count > 0) buffers.push_back(i);
  if (buffers.empty()) return;
  std::mt19937_64 random(static_cast<std::uint64_t>(step) * 1'000'003 +
                         static_cast<std::uint64_t>(core_->mpi().rank()));
  const auto range = checkpoint_->range(buffers[random() % buffers.size()]);
  (void)detail::submit(Device(core_->shared_device()).submitter(),
                       memory::Flip{DType::u8, random() % (8 * range.bytes), range});
}

}  // namespace troupe::rank_process
