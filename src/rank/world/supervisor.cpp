#include "rank/world/supervisor.hpp"

#include <algorithm>

namespace troupe::rank {

using Kind = WorldMessage::Kind;

namespace {

bool is_echo(const std::string& kind) {
  return kind == "communicator" || kind == "contribute" || kind == "form" || kind == "verify" ||
         kind == "restore";
}

}  // namespace

WorldSupervisor::WorldSupervisor(Options options, Send send)
    : options_(options),
      send_(std::move(send)),
      acknowledged_(static_cast<std::size_t>(options.size)),
      contributions_(static_cast<std::size_t>(options.size)),
      newest_(static_cast<std::size_t>(options.size), -1),
      finished_(static_cast<std::size_t>(options.size)) {}

void WorldSupervisor::start(TimePoint now) {
  began_ = now;
  begin_round(Phase::replace, now);
}

void WorldSupervisor::receive(const WorldMessage& message, TimePoint now) {
  if (stopped_ || message.rank < 0 || message.rank >= options_.size) return;
  switch (message.kind) {
    case Kind::fault: return fault(message, now);
    case Kind::loss: return loss(message);
    case Kind::done: return done(message, now);
    case Kind::failed: return stop(static_cast<Errc>(message.code), message.native, message.text);
    case Kind::committed: return committed(message);
    case Kind::finished: return finished(message);
    case Kind::stop_asked: stopping_ = true; return;
    default: return;  // the supervisor's own to say
  }
}

void WorldSupervisor::tick(TimePoint now) {
  if (stopped_ || phase_ == Phase::active || now - phase_since_ <= options_.phase_timeout) return;
  std::string late;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!acknowledged_[static_cast<std::size_t>(rank)])
      late += (late.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (phase_ == Phase::quiesce || rounds_ >= options_.max_rounds) {
    return stop(Errc::timeout, 0,
                "phase " + std::string(to_string(phase_)) +
                    " outlasted its deadline; waited for rank " + late);
  }
  begin_round(Phase::quiesce, now);
}

void WorldSupervisor::fault(const WorldMessage& message, TimePoint now) {
  // A phase that failed, or peers that are gone, are mostly the echo of a death that is reported a
  // moment before or after: worth a new round, but a fault of their own only if nothing else comes.
  const bool echo = message.kind == Kind::fault && is_echo(message.text);
  if (echo && message.round != round_) return;
  if (phase_ == Phase::active) {
    began_ = now;
    rounds_ = 0;
    reports_.clear();
    lost_buffers_ = 0;
    std::fill(std::begin(phase_ms_), std::end(phase_ms_), 0.0);
  }
  if (!echo && !reports_.empty() && is_echo(reports_.front().kind)) reports_.clear();
  if (!echo || reports_.empty()) {
    RecoveryReport report;
    report.rank = message.rank;
    report.kind = message.text;
    report.detect_ms = static_cast<double>(message.detect_us) / 1000.0;
    reports_.push_back(std::move(report));
  }
  // While the ranks quiesce, one more fault changes nothing: its rank answers the order all the
  // same.
  if (phase_ != Phase::quiesce) begin_round(Phase::quiesce, now);
}

void WorldSupervisor::loss(const WorldMessage& message) {
  lost_buffers_ += message.lost_buffers;
  const auto unnamed =
      std::find_if(reports_.begin(), reports_.end(), [&](const RecoveryReport& report) {
        return report.rank == message.rank && report.kind.empty();
      });
  if (unnamed != reports_.end()) unnamed->kind = message.text;
}

void WorldSupervisor::begin_round(Phase first, TimePoint now) {
  ++round_;
  if (++rounds_ > options_.max_rounds) {
    return stop(
        Errc::budget_exhausted, 0,
        "the world could not be re-formed in " + std::to_string(options_.max_rounds) + " rounds");
  }
  std::fill(finished_.begin(), finished_.end(), false);
  enter(first, now);
}

void WorldSupervisor::enter(Phase phase, TimePoint now) {
  if (phase_ != Phase::active)
    phase_ms_[static_cast<std::size_t>(phase_)] += to_ms(now - phase_since_);
  phase_ = phase;
  phase_since_ = now;
  std::fill(acknowledged_.begin(), acknowledged_.end(), false);
  acknowledgements_ = 0;
  WorldMessage order{.kind = Kind::order, .phase = phase, .round = round_, .epoch = epoch_ + 1};
  if (phase == Phase::form) order.payload = encode(contributions_);
  if (phase == Phase::restore) order.step = target_;
  broadcast(order);
}

void WorldSupervisor::done(const WorldMessage& message, TimePoint now) {
  const auto rank = static_cast<std::size_t>(message.rank);
  if (message.round != round_ || message.phase != phase_ || acknowledged_[rank]) return;
  acknowledged_[rank] = true;
  ++acknowledgements_;
  if (phase_ == Phase::replace) {
    contributions_[rank] = message.payload;
    newest_[rank] = message.step;
  }
  if (phase_ == Phase::restore) {
    for (auto& report : reports_) {
      report.repeated = std::max(report.repeated, message.repeated);
      if (report.rank == message.rank) report.iteration = message.iteration;
    }
  }
  if (acknowledgements_ == options_.size) advance(now);
}

void WorldSupervisor::advance(TimePoint now) {
  switch (phase_) {
    case Phase::quiesce: return enter(Phase::replace, now);
    case Phase::replace: return enter(Phase::form, now);
    case Phase::form: return enter(Phase::verify, now);
    case Phase::verify:
      target_ = *std::min_element(newest_.begin(), newest_.end());
      return enter(Phase::restore, now);
    case Phase::restore: return activate(now);
    case Phase::active: return;
  }
}

void WorldSupervisor::activate(TimePoint now) {
  phase_ms_[static_cast<std::size_t>(Phase::restore)] += to_ms(now - phase_since_);
  phase_ = Phase::active;
  ++epoch_;
  std::fill(newest_.begin(), newest_.end(), target_);
  stable_ = target_;
  for (auto& report : reports_) {
    report.epoch = epoch_;
    report.quiesce_ms = phase_ms_[static_cast<std::size_t>(Phase::quiesce)];
    report.replace_ms = phase_ms_[static_cast<std::size_t>(Phase::replace)];
    report.form_ms = phase_ms_[static_cast<std::size_t>(Phase::form)];
    report.verify_ms = phase_ms_[static_cast<std::size_t>(Phase::verify)];
    report.restore_ms = phase_ms_[static_cast<std::size_t>(Phase::restore)];
    report.total_ms = report.detect_ms + to_ms(now - began_);
    report.lost_buffers = lost_buffers_;
  }
  broadcast({.kind = Kind::activate,
             .round = round_,
             .epoch = epoch_,
             .step = stable_,
             .stopping = stopping_ ? 1u : 0u,
             .payload = encode(reports_)});
  reports_.clear();
}

void WorldSupervisor::committed(const WorldMessage& message) {
  if (phase_ != Phase::active || message.epoch != epoch_)
    return;  // the replace phase will say it again
  auto& newest = newest_[static_cast<std::size_t>(message.rank)];
  newest = std::max(newest, message.step);
  const auto everywhere = *std::min_element(newest_.begin(), newest_.end());
  if (everywhere <= stable_) return;
  stable_ = everywhere;
  broadcast({.kind = Kind::stable,
             .round = round_,
             .epoch = epoch_,
             .step = stable_,
             .stopping = stopping_ ? 1u : 0u});
}

void WorldSupervisor::finished(const WorldMessage& message) {
  if (phase_ != Phase::active || message.epoch != epoch_)
    return;  // it will be rolled back, and finish again
  finished_[static_cast<std::size_t>(message.rank)] = true;
  if (!std::all_of(finished_.begin(), finished_.end(), [](bool yes) { return yes; })) return;
  std::fill(finished_.begin(), finished_.end(), false);
  std::fill(newest_.begin(), newest_.end(), -1);
  stable_ = -1;
  broadcast({.kind = Kind::all_finished, .round = round_, .epoch = epoch_});
}

void WorldSupervisor::stop(Errc code, std::int32_t native, const std::string& text) {
  stopped_ = true;
  broadcast({.kind = Kind::stop,
             .round = round_,
             .code = static_cast<std::uint32_t>(code),
             .native = native,
             .text = text});
}

void WorldSupervisor::broadcast(const WorldMessage& message) {
  for (int rank = 0; rank < options_.size; ++rank) send_(rank, message);
}

}  // namespace troupe::rank
