#include "rank/world/status/splits.hpp"

namespace troupe::rank_process {

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
  monitor.changed.wait(lock, [&] {
    return monitor.stopped || answered() || monitor.deaths != deaths_ ||
           (gives_up && monitor.in_run && monitor.is_interrupted());
  });
  // The answer comes first: the others have it too, and go on.
  if (answered()) return answer_->code == Errc::ok ? Result<void>() : kWorldReformed;
  if (monitor.stopped) return *monitor.stopped;
  // The rank that was to answer may be dead. A rank that begins the call all the same does not end
  // it.
  if (monitor.deaths != deaths_) return kWorldReformed;
  return std::nullopt;
}

}  // namespace troupe::rank_process
