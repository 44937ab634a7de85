#include "rank/run/rehearsal.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/store/compare.hpp"

namespace troupe::rank_process {

Rehearsal::Rehearsal(WorldCore& core, Checkpoint& checkpoint, const RehearsalOptions& options,
                     std::int64_t stride)
    : core_(&core),
      members_(&core.members()),
      checkpoint_(&checkpoint),
      options_(options),
      stride_(stride),
      device_(core.shared_device()),
      exchange_(core) {}

void Rehearsal::resume(std::int64_t step) {
  if (step != begin_) return begin(step);
  if (pass_ == Pass::second) pass_ = Pass::third;
  if (std::exchange(leaving_, false)) pass_ = Pass::second;
  core_->device().port().buffers().forget_writes();
}

void Rehearsal::begin(std::int64_t step) {
  begin_ = step;
  pass_ = Pass::first;
  leaving_ = false;
  core_->device().port().buffers().forget_writes();
}

void Rehearsal::before_step(std::int64_t step) {
  core_->device().port().buffers().know();
  if (pass_ == Pass::second && step == strike_ && members_->rank() == victim_)
    device_.inject(memory::FaultKind::kill);
}

bool Rehearsal::end(std::int64_t step) {
  if (pass_ == Pass::first) find_unlisted(step);
  core_->status().run().wait_stable(begin_);  // that is where the ways back lead
  const auto met = meet();
  if (met.found) return true;
  if (!met.first) {
    look_at_the_state(step);
    ++intervals_;
    steps_ += step - begin_;
    return false;
  }
  state_.clear();
  for (std::size_t i = 0; i < checkpoint_->saved_entries().size(); ++i)
    state_.push_back(checkpoint_->contents(i).take());
  std::mt19937_64 random(options_.seed * 1'000'003 + static_cast<std::uint64_t>(begin_));
  const auto ranks = static_cast<std::uint64_t>(members_->size());
  const int first_victim = static_cast<int>(random() % ranks);
  victim_ = static_cast<int>(random() % ranks);
  // The program is called with the first step of each stride alone.
  const auto calls = static_cast<std::uint64_t>((step - begin_) / stride_);
  strike_ = begin_ + stride_ * static_cast<std::int64_t>(random() % calls);
  // The fault must not come before all have heard that it will.
  leaving_ = true;
  (void)meet();
  go_back(first_victim);
}

Rehearsal::Meeting Rehearsal::meet() {
  Meeting any{false, false};
  for (const auto& rank : exchange_.gather(Meeting{pass_ == Pass::first, !findings_.empty()}))
    any = {any.first || rank.first, any.found || rank.found};
  return any;
}

void Rehearsal::go_back(int victim) {
  if (members_->rank() == victim) device_.inject(memory::FaultKind::kill);
  core_->status().epochs().wait_for_end();
  throw Exception({Errc::world_reformed, 0, "the rehearsal goes back to the last commit"});
}

void Rehearsal::find_unlisted(std::int64_t step) {
  const auto listed = checkpoint_->buffers();
  for (const auto& buffer : core_->device().port().buffers().writes()) {
    if (std::find(listed.begin(), listed.end(), buffer.index) != listed.end()) continue;
    find(buffer.description + " is written in " + interval(step) +
         " and is no part of the checkpoint: neither add() nor add_scratch() names it");
  }
}

void Rehearsal::look_at_the_state(std::int64_t step) {
  const auto& entries = checkpoint_->saved_entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto now = checkpoint_->contents(i).take();
    const auto difference = compare(entries[i], state_[i], now, options_.tolerance);
    if (!difference) continue;
    find("entry " + entries[i].name + " differs after " + interval(step) +
         ", done again with the device host of rank " + std::to_string(victim_) + " lost at step " +
         std::to_string(strike_) + ": element " + std::to_string(difference->first) + " was " +
         difference->before + " and is " + difference->after + " (" +
         std::to_string(difference->count) + " of " + std::to_string(entries[i].count) +
         " elements differ)");
    return;  // the first one says where to look
  }
}

void Rehearsal::find(const std::string& what) {
  findings_.push_back("rank " + std::to_string(members_->rank()) + ": " + what);
}

std::string Rehearsal::interval(std::int64_t step) const {
  return "steps " + std::to_string(begin_) + " to " + std::to_string(step - 1);
}

Error Rehearsal::explain(const Error& error) const {
  if (pass_ == Pass::first || error.code != Errc::stale) return error;
  return {Errc::stale, error.native,
          "after a device host was lost in the rehearsal (the one of rank " +
              std::to_string(victim_) + "): " + error.message +
              "; is a buffer left out of the checkpoint?"};
}

void Rehearsal::conclude() {
  std::string mine;
  for (const auto& finding : findings_) mine += finding + "\n";
  std::vector<std::string> all;
  for (const auto& text : members_->gather_text(mine)) {
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      all.push_back(text.substr(at, text.find('\n', at) - at));
  }
  if (all.empty()) {
    if (members_->rank() != 0) return;
    if (checkpoint_->saved_entries().empty()) {
      log::warn("world",
                "--rehearse has compared nothing: the checkpoint of the run has no entries");
    } else {
      log::info("world",
                "rehearsed: {} steps in {} intervals, each done again after the loss of a device "
                "host; the states are equal{}",
                steps_, intervals_,
                options_.tolerance > 0
                    ? fmt::format(" within {} of the largest value", options_.tolerance)
                    : " bit for bit");
    }
    return;
  }
  if (members_->rank() == 0) {
    for (const auto& finding : all) log::error("world", "the rehearsal found: {}", finding);
  }
  throw CollectiveException(
      {Errc::stopped, 0,
       "the rehearsal found that the run does not outlive a fault: " + all.front() +
           (all.size() > 1 ? " (and " + std::to_string(all.size() - 1) + " more)" : "")});
}

}  // namespace troupe::rank_process
