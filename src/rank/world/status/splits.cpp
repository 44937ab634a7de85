#include "rank/world/status/splits.hpp"

#include <chrono>

namespace troupe::rank_process {
namespace {

/// Rank 0 answers within this, if it is there, when the world has ended.
constexpr auto kLastAnswer = std::chrono::seconds(10);

}  // namespace

void Splits::set_answer(const from_supervisor::SplitAgreed& answer) {
  const std::lock_guard lock(monitor_->mutex);
  answer_ = answer;
  monitor_->changed.notify_all();
}

Result<void> Splits::begin() {
  const std::lock_guard lock(monitor_->mutex);
  if (monitor_->stopped) return *monitor_->stopped;
  if (monitor_->in_run && monitor_->is_interrupted()) return kWorldReformed;
  answer_.reset();
  deaths_ = monitor_->deaths;
  return {};
}

std::optional<Result<void>> Splits::wait(const HostCall& call, bool gives_up) {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  const auto answered = [&] {
    return answer_ && answer_->communicator == call.communicator && answer_->number == call.number;
  };
  const auto over = [&] { return answered() || monitor.deaths != deaths_; };
  if (gives_up) {
    monitor.changed.wait(lock, [&] {
      return over() || monitor.stopped || (monitor.in_run && monitor.is_interrupted());
    });
    if (!over()) return std::nullopt;
  }
  // Where the world has ended, rank 0 may be gone: its answer is not waited for without end.
  while (!over()) {
    if (!monitor.stopped)
      monitor.changed.wait(lock, [&] { return over() || monitor.stopped; });
    else if (!monitor.changed.wait_for(lock, kLastAnswer, over))
      return *monitor.stopped;
  }
  // The answer comes first: the others have it too, and go on.
  if (answered() && answer_->code == Errc::ok) return Result<void>();
  if (monitor.stopped) return *monitor.stopped;
  // Else the rank that was to answer may be dead. A rank that begins the call all the same does not
  // end it.
  return kWorldReformed;
}

}  // namespace troupe::rank_process
