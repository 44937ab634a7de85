#include "rank/world/status/epochs.hpp"

#include <algorithm>
#include <string_view>

#include "common/core/log.hpp"

namespace troupe::rank_process {

std::vector<Recovery> Epochs::recoveries() const {
  const std::lock_guard lock(monitor_->mutex);
  return recoveries_;
}

void Epochs::close() {
  const std::lock_guard lock(monitor_->mutex);
  monitor_->active = false;
  run_->epoch_ended();
  parts_->port->gate().set_epoch(Epoch(0));
  parts_->tokens->end_epoch(monitor_->epoch, kWorldReformed);
  if (parts_->check != nullptr) parts_->check->close(monitor_->epoch);
  if (monitor_->in_run) parts_->port->gate().close(kWorldReformed);
  monitor_->changed.notify_all();
}

void Epochs::note_death(std::int32_t rank) {
  const std::lock_guard lock(monitor_->mutex);
  ++monitor_->deaths;
  // A step that waits for an answer of the dead process would keep the world from recovering.
  forget({rank}, members_->excluded());
  monitor_->changed.notify_all();
}

void Epochs::forget(const std::vector<std::int32_t>& dead,
                    const std::vector<std::int32_t>& excluded) {
  auto without = excluded;
  without.insert(without.end(), dead.begin(), dead.end());
  std::sort(without.begin(), without.end());
  without.erase(std::unique(without.begin(), without.end()), without.end());
  parts_->tokens->forget(dead);
  parts_->actors->set_excluded(without);
  parts_->actors->set_excluded(excluded);
}

void Epochs::activate(const from_supervisor::Activate& activate,
                      const std::vector<std::int32_t>& back) {
  const std::lock_guard lock(monitor_->mutex);
  monitor_->active = true;
  const auto epoch = activate.epoch;
  monitor_->epoch = epoch;
  if (!back.empty()) forget(back, activate.excluded);
  if (members_->exclude(activate.excluded)) {
    parts_->tokens->set_excluded(activate.excluded);
    parts_->actors->set_excluded(activate.excluded);
  }
  if (activate.renewed) members_->renew();
  if (recoveries_.empty()) recoveries_ = activate.history;
  standbys_->epoch_began();
  run_->epoch_began(activate.stable);
  for (const auto& report : activate.reports) {
    recoveries_.push_back(report);
    if (mpi_->rank() != 0) continue;
    const std::string_view what =
        report.kind == kKindFailed || report.kind == kKindWithdrawn ? "is out of the world"
        : report.kind == kKindRejoins                               ? "is back in the world"
        : report.kind == kKindLeft                                  ? "has left its run"
        : report.kind == kKindRank                                  ? "has died, and is back"
        : report.kind == kKindNode                                  ? "has gone to another place"
        : report.kind == kKindError ? "has met an error that no fault explains"
                                    : "lost its device host";
    log::info("world", "epoch {}: rank {} {} ({}), recovered in {:.0f} ms", epoch, report.rank,
              what, report.kind, report.total_ms);
  }
  monitor_->changed.notify_all();
}

void Epochs::stop(const Error& error) {
  const std::lock_guard lock(monitor_->mutex);
  monitor_->stopped = error;
  monitor_->active = false;
  run_->world_stopped();
  parts_->port->gate().set_epoch(Epoch(0));
  parts_->port->gate().close(error);
  parts_->tokens->end_epoch(token_message::kNoMoreEpochs, error);
  parts_->actors->end(error);
  if (parts_->check != nullptr) parts_->check->close(monitor_->epoch);
  monitor_->changed.notify_all();
}

Result<Epoch> Epochs::wait_active() {
  const Whereabouts::Wait wait(*whereabouts_, "World::wait_active");
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(lock, [&] { return monitor.stopped || monitor.active; });
  if (monitor.stopped) return *monitor.stopped;
  members_->acknowledge(*parts_);
  // A rank that is back does again what all ranks have done before the run, as one of all.
  if (!members_->is_new()) members_->turn_to_new();
  if (!members_->are_renewed()) members_->settle_locked();
  parts_->port->outcomes().forgive_losses();
  return Epoch(monitor.epoch);
}

Result<Epochs::Active> Epochs::wait_for_one() {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(lock, [&] { return monitor.stopped || monitor.active || monitor.in_run; });
  if (monitor.stopped) return *monitor.stopped;
  if (monitor.in_run && monitor.is_interrupted()) return kWorldReformed;
  return Active{monitor.epoch, members_->excluded()};
}

bool Epochs::wait_for_end_of(std::uint32_t epoch, std::chrono::nanoseconds limit) {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  return monitor.changed.wait_for(
      lock, limit, [&] { return monitor.stopped || !monitor.active || monitor.epoch != epoch; });
}

void Epochs::wait_for_end() {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(
      lock, [&] { return monitor.stopped || !monitor.active || monitor.has_new_epoch(); });
  monitor.throw_if_stopped();
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> Epochs::wait_for_abandoned_run() {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  if (monitor.finished == monitor.runs) return std::nullopt;
  monitor.changed.wait(lock, [&] { return monitor.stopped || monitor.active; });
  if (monitor.stopped || monitor.finished == monitor.runs) return std::nullopt;
  return std::pair{monitor.runs - 1, monitor.epoch};
}

void Epochs::wait_for_end_of_run(std::uint32_t epoch) {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(lock, [&] {
    return monitor.stopped || !monitor.active || monitor.epoch != epoch ||
           monitor.finished == monitor.runs;
  });
}

}  // namespace troupe::rank_process
