#include "rank/device/commands/replies.hpp"

#include <cstring>
#include <string>
#include <thread>

namespace troupe::rank_process {

void Replies::poll() noexcept {
  look(false);
}

void Replies::attend() noexcept {
  attended_.store(true, std::memory_order_relaxed);
  look(true);
}

void Replies::rest() {
  attended_.store(false, std::memory_order_relaxed);
  before_sleep();
  drain();
}

void Replies::look(bool attends) noexcept {
  Resolved resolved(shared_->resolving);
  {
    const std::unique_lock lock(shared_->replies, std::try_to_lock);
    if (!lock.owns_lock()) return;
    if (attends && shared_->link && ring_.sleep_is_announced()) ring_.cancel_sleep();
    if (polls_++ % kPollsPerClock == 0)
      last_poll_ns_.store(SteadyClock::time().count(), std::memory_order_relaxed);
    take(resolved);
  }
  lose_spoilt(resolved);
}

void Replies::drain() {
  for (int passes = 1;; ++passes) {
    std::uint64_t answered = 0;
    bool announced = false;
    {
      Resolved resolved(shared_->resolving);
      {
        const std::lock_guard lock(shared_->replies);
        announced = shared_->link && ring_.sleep_is_announced();
        answered = take(resolved);
      }
      lose_spoilt(resolved);
    }
    if (announced || answered < kStream || passes == kStreamPasses) return;
    std::this_thread::sleep_for(kStreamPause);
  }
}

void Replies::lose_spoilt(Resolved& resolved) {
  if (resolved.spoilt().empty()) return;
  const std::lock_guard lock(shared_->submissions);
  shared_->lose_spoilt(resolved);
}

void Replies::before_sleep() noexcept {
  const std::lock_guard lock(shared_->replies);
  polls_ = 0;
  last_poll_ns_.store(0, std::memory_order_relaxed);
  if (shared_->link) ring_.announce_sleep();
}

std::uint64_t Replies::take(Resolved& resolved) {
  if (!shared_->link) return 0;
  std::uint64_t answered = 0;
  for (;;) {
    const auto record = ring_.front();
    if (record.ok() && record->empty()) break;
    wire::ReplyHeader reply;
    if (!record.ok() || record->size() < sizeof reply) {
      shared_->corrupt.store(true, std::memory_order_release);
      break;
    }
    std::memcpy(&reply, record->data(), sizeof reply);
    Result<void> outcome;
    if (reply.code != 0) {
      const auto text = record->subspan(sizeof reply);
      const bool known = reply.code <= static_cast<std::uint32_t>(Errc::internal);
      outcome = Error{known ? static_cast<Errc>(reply.code) : Errc::internal, reply.native,
                      std::string(reinterpret_cast<const char*>(text.data()), text.size())};
    }
    ring_.pop();
    if (reply.count > TicketTable::kSlots) {
      shared_->corrupt.store(true, std::memory_order_release);
      break;
    }
    close(reply, outcome, resolved);
    answered += reply.count;
  }
  if (answered != 0) shared_->advance(resolved);
  return answered;
}

void Replies::close(const wire::ReplyHeader& reply, const Result<void>& outcome,
                    Resolved& resolved) {
  auto& tickets = shared_->tickets;
  auto* const flight = shared_->options.flight;
  const auto end = reply.first_ticket + reply.count;
  for (std::uint64_t ticket = reply.first_ticket; ticket < end; ++ticket) {
    if (!tickets.pending(ticket)) continue;
    if (flight != nullptr && !outcome.ok()) flight->failed(ticket, outcome.code());
    if ((reply.flags & wire::kSpoilt) != 0) {
      const auto epoch = shared_->current_epoch();
      tickets.for_each_named(ticket, [&](std::uint32_t buffer, bool written) {
        if (!written) return;
        const auto& generation = shared_->buffers.at(buffer).generation;
        resolved.spoilt().push_back(
            {buffer, outcome.code(), epoch, generation.load(std::memory_order_relaxed)});
      });
    }
    if (!outcome.ok() && !tickets.slot(ticket).quiet &&
        shared_->outcomes.command_failed(ticket, outcome.error())) {
      resolved.add(shared_->close(ticket), shared_->ledger.enter(outcome.error(), {ticket, 0}));
    } else if (auto state = shared_->close(ticket); !shared_->spares.give(state)) {
      resolved.add(std::move(state), outcome);
    }
  }
}

}  // namespace troupe::rank_process
