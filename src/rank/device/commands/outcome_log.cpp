#include "rank/device/commands/outcome_log.hpp"

namespace troupe::rank_process {

/// What a fault, or the end that follows too many of them, does to what was submitted.
bool OutcomeLog::is_loss(Errc code) noexcept {
  return code == Errc::device_lost || code == Errc::world_reformed || code == Errc::device_failed ||
         code == Errc::budget_exhausted || code == Errc::stopped;
}

bool OutcomeLog::note(ProgramPlace place, const Error& error, bool loss) {
  const std::lock_guard lock(mutex_);
  if (forgotten(place)) return false;
  auto& first = loss ? loss_ : is_spoilt(error.code) ? spoilt_ : error_;
  if (!first || place < first->place) first = {place, error};
  return true;
}

ProgramPlace OutcomeLog::refused(std::uint64_t submitted, const Error& error) {
  ProgramPlace place{submitted, 0};
  {
    const std::lock_guard lock(mutex_);
    place.fences = fences_added_;
  }
  (void)note(place, error, is_loss(error.code));
  return place;
}

OutcomeLog::Request OutcomeLog::begin_request(std::uint64_t submitted) {
  const std::lock_guard lock(mutex_);
  return *requests_.insert({{submitted, fences_added_}, next_request_++}).first;
}

bool OutcomeLog::end_request(const Request& request, const Result<void>& outcome) {
  const bool counts = outcome.ok() || note(request.place, outcome.error(), is_loss(outcome.code()));
  const std::lock_guard lock(mutex_);
  requests_.erase(request);
  return counts;
}

ProgramPlace OutcomeLog::add_fence(std::uint64_t submitted, State state) {
  const std::lock_guard lock(mutex_);
  // What follows at the same ticket is behind the fence.
  const ProgramPlace place{submitted, fences_added_++};
  fences_.push_back({place, std::move(state)});
  any_fence_.store(true, std::memory_order_release);
  return place;
}

OutcomeLog::Ready OutcomeLog::ready(std::uint64_t retired) {
  Ready list;
  if (!any_fence_.load(std::memory_order_acquire)) return list;
  const std::lock_guard lock(mutex_);
  while (!fences_.empty()) {
    auto& fence = fences_.front();
    const bool waits = !requests_.empty() && requests_.begin()->place <= fence.place;
    if (fence.place.ticket > retired || waits) break;
    list.emplace_back(std::move(fence.state),
                      fence.failed ? Result<void>(*fence.failed) : before(fence.place));
    fences_.erase(fences_.begin());
  }
  any_fence_.store(!fences_.empty(), std::memory_order_release);
  return list;
}

Result<void> OutcomeLog::before(ProgramPlace place) const {
  if (error_ && error_->place <= place) return error_->error;
  if (spoilt_ && spoilt_->place <= place) return spoilt_->error;
  if (loss_ && loss_->place <= place) return loss_->error;
  return {};
}

void OutcomeLog::forget_since(ProgramPlace place, std::uint64_t submitted) {
  const std::lock_guard lock(mutex_);
  // Commands of an earlier way back that have not ended are behind `place` too: a place that one
  // goes back to has seen the end of all before it.
  forgotten_from_ = place;
  forgotten_to_ = {submitted, fences_added_++};
  if (error_ && forgotten(error_->place)) error_.reset();
  if (spoilt_ && forgotten(spoilt_->place)) spoilt_.reset();
  loss_.reset();
  std::erase_if(requests_, [&](const Request& request) { return forgotten(request.place); });
}

void OutcomeLog::forgive_losses() {
  const std::lock_guard lock(mutex_);
  spoilt_.reset();
  loss_.reset();
}

std::optional<Error> OutcomeLog::take_error() {
  const std::lock_guard lock(mutex_);
  auto first = std::exchange(error_, std::nullopt);
  auto spoilt = std::exchange(spoilt_, std::nullopt);
  if (spoilt && (!first || spoilt->place < first->place)) first = std::move(spoilt);
  if (!first) return std::nullopt;
  for (auto& fence : fences_) {
    if (first->place <= fence.place && !fence.failed) fence.failed = first->error;
  }
  return std::move(first->error);
}

}  // namespace troupe::rank_process
