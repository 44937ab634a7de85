#include "rank/world/recovery_trace.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::rank_process {

void RecoveryTrace::at(Phase phase) {
  if (collector_ == nullptr || phase == phase_) return;
  const auto now = SteadyClock::time();
  if (phase_ == Phase::active) {
    recovery_since_ = now;
  } else {
    const auto end = phase == Phase::active ? recovered_ : now;
    collector_->span(trace::SpanKind::phase, phase_since_, end, to_string(phase_));
  }
  phase_ = phase;
  phase_since_ = now;
}

void RecoveryTrace::recovered(std::uint32_t epoch, const std::vector<Recovery>& reports) {
  if (collector_ == nullptr) return;
  const auto before = std::exchange(recovered_, SteadyClock::time());
  double detect_ms = 0;
  std::string text;
  for (const auto& report : reports) {
    detect_ms = std::max(detect_ms, report.detect_ms);
    text += (text.empty() ? "recovery: rank " : "; rank ") + std::to_string(report.rank) + " (" +
            report.kind + ")";
  }
  const bool first = text.empty();
  if (first) text = "the world forms";
  const auto began = phase_ == Phase::active ? recovered_ : recovery_since_;
  const auto detect = std::chrono::nanoseconds(static_cast<std::int64_t>(detect_ms * 1e6));
  const auto struck = std::max(began - detect, before);
  if (struck < began) collector_->span(trace::SpanKind::phase, struck, began, "detect");
  collector_->span(first ? trace::SpanKind::formation : trace::SpanKind::recovery, struck,
                   recovered_, text + ", epoch " + std::to_string(epoch));
}

}  // namespace troupe::rank_process
