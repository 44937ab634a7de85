#include "rank/device/commands/outcomes.hpp"

#include <utility>

#include "rank/device/commands/run_guard.hpp"

namespace troupe::rank_process {

Outcomes::Request::Request(Outcomes& outcomes)
    : shared_(outcomes.shared_),
      entry_(shared_->outcomes.begin_request(shared_->tickets.submitted())) {}

void Outcomes::Request::told() {
  if (!std::exchange(told_, true)) shared_->resolving.fetch_sub(1, std::memory_order_acq_rel);
}

Result<void> Outcomes::Request::end(const Result<void>& outcome) {
  if (std::exchange(ended_, true)) return outcome;
  Resolved resolved(shared_->resolving);
  // Until the error is entered no fence passes: whoever waits for one looks then what has failed.
  const std::lock_guard lock(shared_->replies);
  shared_->resolving.fetch_add(1, std::memory_order_acq_rel);
  const bool counts = shared_->outcomes.end_request(entry_, outcome);
  auto told = outcome;
  if (!outcome.ok() && counts && !OutcomeLog::is_loss(outcome.code()))
    told = shared_->ledger.enter(outcome.error(), entry_.place);
  shared_->advance(resolved);
  return told;
}

Error Outcomes::refused(Error error) {
  if (RunGuard::works_for_undone()) return error;
  const auto place = shared_->outcomes.refused(shared_->tickets.submitted(), error);
  return shared_->ledger.enter(std::move(error), place);
}

Error Outcomes::report(const Error& error) {
  if (RunGuard::works_for_undone()) return error;
  const auto place = shared_->outcomes.refused(shared_->tickets.submitted(), error);
  return OutcomeLog::is_loss(error.code) ? error : shared_->ledger.enter(error, place);
}

Error Outcomes::enter(Error error, detail::Heard heard) {
  if (OutcomeLog::is_loss(error.code)) return error;
  if (heard == detail::Heard::by_all) return report(error);
  return shared_->ledger.enter(std::move(error), {shared_->tickets.submitted(), 0},
                               ErrorLedger::Kind::answer);
}

std::optional<Error> Outcomes::take_error() {
  shared_->ledger.mark_all_read();
  return shared_->outcomes.take_error();
}

Outcomes::Fence Outcomes::fence() {
  Resolved resolved(shared_->resolving);
  Fence fence;
  const std::scoped_lock locks(shared_->submissions, shared_->replies);
  auto* const state = new detail::State<void>(progress_, detail::StateBase::TwoReferences{});
  fence.reached = Future<void>(OutcomeLog::State(state));
  fence.place = shared_->outcomes.add_fence(shared_->tickets.submitted(), OutcomeLog::State(state));
  shared_->advance(resolved);
  return fence;
}

void Outcomes::forget_since(ProgramPlace place) {
  shared_->outcomes.forget_since(place, shared_->tickets.submitted());
  shared_->ledger.forget_since(place);
}

void Outcomes::forgive_losses() {
  shared_->outcomes.forgive_losses();
  shared_->ledger.forgive_losses();
}

}  // namespace troupe::rank_process
