#include "rank/protocol/recovery_reports.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {

void RecoveryReports::begin(TimePoint now) {
  began_ = now;
  reports_.clear();
  lost_buffers_ = 0;
  times_ = {};
}

void RecoveryReports::add(const from_rank::Fault& fault, bool echo) {
  if (!echo) drop_echoes();
  if (echo && !reports_.empty()) return;
  Recovery report;
  report.rank = fault.rank;
  report.kind = fault.kind;
  report.detect_ms = static_cast<double>(fault.detect_us) / 1000.0;
  reports_.push_back(std::move(report));
}

void RecoveryReports::name(std::int32_t rank, const char* kind) {
  const auto known = std::find_if(reports_.begin(), reports_.end(),
                                  [&](const Recovery& report) { return report.rank == rank; });
  if (known != reports_.end()) {
    known->kind = kind;
  } else {
    add(rank, kind);
  }
  drop_echoes();
}

void RecoveryReports::drop_echoes() {
  std::erase_if(reports_, [](const Recovery& report) { return is_echo(report.kind); });
}

void RecoveryReports::on(const from_rank::Loss& loss) {
  lost_buffers_ += loss.lost_buffers;
  const auto unnamed = std::find_if(reports_.begin(), reports_.end(), [&](const Recovery& report) {
    return report.rank == loss.rank && report.kind.empty();
  });
  if (unnamed != reports_.end()) unnamed->kind = loss.kind;
  for (auto& report : reports_) {
    if (report.rank == loss.rank && report.end_ms == 0)
      report.end_ms = static_cast<double>(loss.end_us) / 1e3;
  }
}

void RecoveryReports::on(const from_rank::Done& done) {
  lost_buffers_ += done.lost_buffers;
  for (auto& report : reports_) {
    report.repeated_iterations = std::max(report.repeated_iterations, done.repeated);
    for (const auto& [rank, step] : done.iterations) {
      const bool its_own = rank >= done.rank && rank < done.rank + done.covered;
      if (done.phase == Phase::restore && its_own && report.rank == rank) report.iteration = step;
    }
  }
}

void RecoveryReports::took(Phase phase, std::chrono::nanoseconds time) {
  times_.*time_of(phase) += to_ms(time);
}

std::vector<Recovery> RecoveryReports::take(std::uint32_t epoch, TimePoint now) {
  for (auto& report : reports_) {
    report.epoch = epoch;
    for (const auto& time : kRecoveryTimes) report.*time.ms += times_.*time.ms;
    report.total_ms = report.detect_ms + to_ms(now - began_);
    report.lost_buffers = lost_buffers_;
  }
  return std::exchange(reports_, {});
}

std::vector<std::int32_t> RecoveryReports::ranks() const {
  std::vector<std::int32_t> all;
  for (const auto& report : reports_) all.push_back(report.rank);
  return all;
}

bool RecoveryReports::keeps_device_hosts() const {
  return !reports_.empty() &&
         std::all_of(reports_.begin(), reports_.end(), [](const Recovery& report) {
           return report.kind == "timeout" || report.kind == kKindError;
         });
}

}  // namespace troupe::rank_process
