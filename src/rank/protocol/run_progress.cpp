#include "rank/protocol/run_progress.hpp"

#include <algorithm>
#include <string>

namespace troupe::rank_process {

RunProgress::RunProgress(int size)
    : newest_(static_cast<std::size_t>(size), -1), finished_(static_cast<std::size_t>(size)) {
  begin_at(-1);
  forget_ends();
}

RunProgress::News RunProgress::on(const from_rank::Flushed& flushed) {
  const auto everywhere = flushed_.say(static_cast<std::size_t>(flushed.rank),
                                       static_cast<std::size_t>(flushed.covered), flushed.step);
  if (!everywhere) return News(std::nullopt);
  return News(from_supervisor::AllFlushed{*everywhere});
}

RunProgress::News RunProgress::on(const from_rank::Committed& committed) {
  const auto first = newest_.begin() + committed.rank;
  std::for_each(first, first + committed.covered,
                [&](std::int64_t& newest) { newest = std::max(newest, committed.step); });
  if (const auto agreed = judge_ends(); !agreed.ok()) return agreed.error();
  const auto everywhere = *std::min_element(newest_.begin(), newest_.end());
  if (everywhere <= stable_) return News(std::nullopt);
  stable_ = everywhere;
  return News(from_supervisor::Stable{.step = stable_, .stopping = stopping_});
}

RunProgress::News RunProgress::on(const from_rank::Finished& finished) {
  std::fill_n(finished_.begin() + finished.rank, finished.covered, true);
  for (const auto& end : finished.ends) {
    if (end.step < first_end_.step) first_end_ = end;
    if (end.step > last_end_.step) last_end_ = end;
  }
  if (const auto agreed = judge_ends(); !agreed.ok()) return agreed.error();
  if (!std::all_of(finished_.begin(), finished_.end(), [](bool yes) { return yes; }))
    return News(std::nullopt);
  const auto step = first_end_.step;
  forget_ends();
  begin_at(-1);
  return News(from_supervisor::AllFinished{step});
}

RunProgress::News RunProgress::on(const from_rank::StopAsked&) {
  stopping_ = true;
  return News(std::nullopt);
}

void RunProgress::set_newest(std::int32_t rank, std::int32_t covered, std::int64_t step) {
  std::fill_n(newest_.begin() + rank, covered, step);
}

std::int64_t RunProgress::common() const {
  const auto least = *std::min_element(newest_.begin(), newest_.end());
  return least == kAnyStep ? -1 : least;  // nobody has a state
}

void RunProgress::forget_ends() {
  std::fill(finished_.begin(), finished_.end(), false);
  first_end_ = {.rank = 0, .step = kAnyStep};
  last_end_ = {.rank = 0, .step = -1};
}

void RunProgress::begin_at(std::int64_t step) {
  stable_ = step;
  std::fill(newest_.begin(), newest_.end(), step);
  flushed_.begin(newest_.size(), step);
}

Result<void> RunProgress::judge_ends() const {
  if (first_end_.step == kAnyStep) return {};
  const auto has_ended = "the ranks disagree on the end of the run: rank " +
                         std::to_string(first_end_.rank) + " has ended it with step " +
                         std::to_string(first_end_.step) + ", rank ";
  if (last_end_.step > first_end_.step)
    return Error{Errc::invalid, 0,
                 has_ended + std::to_string(last_end_.rank) + " with step " +
                     std::to_string(last_end_.step)};
  for (std::size_t rank = 0; rank < newest_.size(); ++rank) {
    if (newest_[rank] == kAnyStep || newest_[rank] <= first_end_.step) continue;
    return Error{Errc::invalid, 0,
                 has_ended + std::to_string(rank) + " has gone on to a commit of step " +
                     std::to_string(newest_[rank])};
  }
  return {};
}

}  // namespace troupe::rank_process
