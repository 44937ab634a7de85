#include "rank/world/progress_watch.hpp"

#include <algorithm>
#include <string>

#include "common/core/log.hpp"
#include "rank/world/program_call.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {

ProgressWatch::ProgressWatch(WorldParts& parts)
    : parts_(parts),
      report_at_(parts.core.options().stall_report),
      late_program_at_(parts.core.options().stall_report) {}

void ProgressWatch::look() {
  look_at_work();
  look_at_program();
}

std::chrono::nanoseconds ProgressWatch::waited() const {
  const auto now = SteadyClock::time();
  const auto since = parts_.core.whereabouts().now().since;
  const auto program = since == TimePoint{} ? std::chrono::nanoseconds{} : now - since;
  const auto commands =
      retired_since_ == TimePoint{} ? std::chrono::nanoseconds{} : now - retired_since_;
  return std::max(program, commands);
}

void ProgressWatch::look_at_work() {
  auto& core = parts_.core;
  const auto& port = core.device().port();
  const auto retired = port.retired();
  if (retired != retired_ || retired == port.submitted() || retired_since_ == TimePoint{})
    retired_since_ = SteadyClock::time();
  if (retired == port.submitted()) retired_since_ = {};
  retired_ = retired;
  const auto wait = waited();
  const auto every = core.options().stall_report;
  if (core.whereabouts().at_the_end()) return;  // the others may take their time
  if (wait < every) report_at_ = every;
  // A recovery's phases have deadlines of their own, which say who is late.
  if (every.count() == 0 || wait < report_at_ || parts_.member.phase() != Phase::active) return;
  report_at_ = 2 * wait;
  parts_.relay.up(from_rank::Stalled{parts_.rank()});
}

void ProgressWatch::look_at_program() {
  auto& core = parts_.core;
  const auto since = core.status().run().recovery_waits_since();
  if (!since) late_program_at_ = core.options().stall_report;
  if (!since || core.options().stall_report.count() == 0) return;
  const auto wait = SteadyClock::time() - *since;
  if (wait < late_program_at_) return;
  late_program_at_ = 2 * wait;
  const auto call = mpi_call_of_main_thread();
  log::warn(
      "world",
      "a recovery has waited for {} s for this rank's program, which is {}{}: nothing interrupts "
      "what it calls there by itself, such as MPI",
      std::chrono::duration_cast<std::chrono::seconds>(wait).count(), core.whereabouts().now().text,
      call ? ", in " + *call : "");
}

void ProgressWatch::answer(std::uint32_t inquiry) {
  auto& core = parts_.core;
  const auto where = core.whereabouts().now();
  auto text = parts_.member.spectator() ? "out of the world, " + where.text : where.text;
  if (where.since == TimePoint{}) {  // at work, by itself: a wait of troupe's has a name already
    if (const auto call = mpi_call_of_main_thread()) text += ", in " + *call;
  }
  const auto& port = core.device().port();
  const auto oldest = port.retired() + 1;
  if (oldest <= port.submitted()) {
    const auto command = core.device().flight().describe(oldest);
    text += command.empty() ? "" : ", its device in " + command;
  }
  core.device().flight().dump("no progress");
  parts_.relay.up(from_rank::Standing{
      .rank = parts_.rank(),
      .inquiry = inquiry,
      .text = text,
      .step = where.step,
      .waited_us = std::chrono::duration_cast<std::chrono::microseconds>(waited()).count(),
      .awaits = where.awaits});
}

void ProgressWatch::answer_call() {
  from_rank::AtCall answer{.rank = parts_.rank()};
  auto& whereabouts = parts_.core.whereabouts();
  if (auto call = whereabouts.call()) {
    answer.awaits = Awaits::host_call;
    answer.call = std::move(*call);
  } else if (whereabouts.at_the_end()) {
    answer.awaits = Awaits::end_of_program;
    answer.place = whereabouts.now().text;
  }
  parts_.core.send(0, answer);
}

}  // namespace troupe::rank_process
