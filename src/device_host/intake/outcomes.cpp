#include "device_host/intake/outcomes.hpp"

namespace troupe::host {

Step Outcomes::answered(std::uint64_t ticket, const Result<void>& outcome) {
  if (outcome.ok()) {
    core_->batches.add(ticket);
  } else {
    core_->replies.send(ticket, 1, requests_->with_memory_use(outcome.error()));
  }
  return Step::queued;
}

Step Outcomes::not_queued(const wire::Command& command, const Result<void>& outcome) {
  if (outcome.code() == Errc::would_block) return Step::blocked;
  if (core_->life.lose_if_dead(outcome)) return Step::ended;
  const auto ticket = command.header().ticket;
  if (outcome.code() != Errc::library) return answered(ticket, outcome);
  // Part of it may have been launched.
  libraries_->failed(command.lane(), outcome.error());
  core_->replies.send(ticket, 1, outcome, true);
  return Step::queued;
}

Step Outcomes::corrupt(const Error& error) {
  core_->life.lose(error);
  core_->life.end(wire::kExitCorrupt);
  return Step::ended;
}

void Outcomes::hold(std::uint64_t ticket, const Result<void>& outcome) {
  held_.emplace_back(
      ticket, outcome.ok() ? outcome : Result<void>(requests_->with_memory_use(outcome.error())));
}

void Outcomes::answer_held() {
  // A refused command has done nothing; a library's failure may have come midway, and of a wrong
  // product the result is there.
  for (const auto& [ticket, outcome] : held_) {
    if (outcome.ok()) {
      core_->batches.add(ticket);
    } else {
      core_->replies.send(ticket, 1, outcome,
                          outcome.code() == Errc::library || outcome.code() == Errc::corrupt);
    }
  }
  held_.clear();
}

}  // namespace troupe::host
