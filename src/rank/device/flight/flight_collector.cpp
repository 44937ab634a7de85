#include "rank/device/flight/flight_collector.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "common/wire/record.hpp"

namespace troupe::rank_process {

FlightCollector::FlightCollector(Options options) : options_(std::move(options)) {
  if (options_.every.count() != 0) thread_ = std::thread([this] { serve(); });
}

FlightCollector::~FlightCollector() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FlightCollector::serve() {
  std::unique_lock lock(mutex_);
  while (!ending_changed_.wait_for(lock, options_.every, [this] { return ending_; })) {
    collect_locked(false);
    if (options_.part && !options_.part->error().ok() && !std::exchange(warned_, true))
      log::warn("device", "the trace ends here: {}", options_.part->error().error().message);
  }
}

void FlightCollector::collect() {
  const std::lock_guard lock(mutex_);
  collect_locked(false);
}

void FlightCollector::collect_locked(bool all) {
  if (finished_) return;
  const auto newest = options_.submitted();
  const auto reading = options_.flight->reading();
  const auto is_open = [&](std::uint64_t ticket) {
    if (!all && options_.pending(ticket)) return true;
    take(ticket, reading);
    return false;
  };
  std::erase_if(open_, [&](std::uint64_t ticket) { return !is_open(ticket); });
  while (walked_ < newest) {
    if (is_open(++walked_)) open_.push_back(walked_);
  }
  take_activities();
  take_health();
  note_counts();
}

/// A ticket that is in no slot was overwritten, or never used: only the numbers tell.
void FlightCollector::take(std::uint64_t ticket, const TickScale::Reading& reading) {
  const auto record = options_.flight->record(ticket, reading);
  if (!record) return;
  ++taken_;
  const auto [known, fresh] = known_.try_emplace(record->opcode);
  if (fresh) {
    const auto name = operation_name(record->opcode);
    if (options_.part) known->second.name = options_.part->name(name);
    known->second.library = &totals_.libraries[std::string(name.substr(0, name.find('.')))];
  }
  ++known->second.library->operations;
  known->second.library->bytes += record->bytes;
  if (record->outcome != Errc::ok) ++totals_.errors[std::string(to_string(record->outcome))];
  if (!options_.part) return;
  options_.part->add(trace::Command{.ticket = record->ticket,
                                    .bytes = record->bytes,
                                    .count = record->count,
                                    .submitted = record->submitted.count(),
                                    .issued = record->issued.count(),
                                    .completed = record->completed.count(),
                                    .name = known->second.name,
                                    .epoch = record->epoch,
                                    .group = record->group,
                                    .collective = record->collective,
                                    .peer = record->peer,
                                    .queue = record->queue,
                                    .outcome = static_cast<std::uint32_t>(record->outcome),
                                    .repeated = record->repeated ? 1u : 0u});
}

void FlightCollector::take_activities() {
  for (const auto& activity : options_.flight->take_activities()) {
    if (options_.part)
      options_.part->add(trace::Activity{activity.ticket, activity.begin.count(),
                                         activity.end.count(), activity.stream, 0},
                         activity.name);
  }
}

void FlightCollector::take_health() {
  for (const auto& [time, event] : options_.flight->health(health_taken_)) {
    ++health_taken_;
    span(trace::SpanKind::health, time, time, event.text + (event.failing ? " (failing)" : ""));
  }
}

void FlightCollector::note_counts() {
  const auto submitted = options_.flight->recorded();
  // What was submitted since `newest` was read is neither here nor lost.
  const auto seen = taken_ + open_.size();
  const auto behind = options_.submitted() - walked_;
  const auto lost = submitted > seen + behind ? submitted - seen - behind : 0;
  totals_.lost = lost;
  const trace::Counts counts{submitted, lost, options_.flight->lost_activities()};
  if (!options_.part) return;
  if (counts != counts_) options_.part->add(counts);
  counts_ = counts;
  options_.part->flush();
}

void FlightCollector::finish(const trace::Clock& clock) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  collect_locked(true);
  finished_ = true;
  if (!options_.part) return;
  options_.part->add(clock);
  options_.part->flush();
}

void FlightCollector::span(trace::SpanKind kind, TimePoint begin, TimePoint end,
                           std::string_view text) {
  if (options_.part) options_.part->add(trace::Span{begin.count(), end.count(), kind, 0}, text);
}

FlightCollector::Totals FlightCollector::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace troupe::rank_process
