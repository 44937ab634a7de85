#include "rank/world/world_leader.hpp"

#include <variant>

#include "common/core/log.hpp"
#include "rank/exit_status.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {
namespace {

/// The programs' threads wait in MPI for what never comes: nothing else ends that.
[[noreturn]] void end_the_job(const Error& error) {
  log::error("world", "{}", error.to_string());
  Session::abort(exit_status(error.code));
}

/// By way of the transport, and of rank 0, at the root of the tree: the leader hears it as the
/// others do, and after this has returned.
WorldSupervisor::Broadcast to_all(WorldCore& core) {
  return [&core](const SupervisorMessage& message) {
    const auto* const activate = std::get_if<from_supervisor::Activate>(&message);
    if (activate == nullptr || !activate->renewed) return core.send(0, message);
    auto told = *activate;
    told.history = core.status().epochs().recoveries();
    core.send(0, SupervisorMessage(std::move(told)));
  };
}

template <class Part, class Message>
concept Receives = requires(Part& part, const Message& said, TimePoint now) {
  part.receive(said, now);
};

}  // namespace

WorldLeader::WorldLeader(WorldParts& parts)
    : parts_(parts),
      supervisor_({.size = parts.core.mpi().size(),
                   .phase_timeout = parts.core.options().phase_timeout,
                   .shrink = parts.core.options().shrink,
                   .leader = parts.rank(),
                   .standby = {.wanted = parts.core.options().standby_world,
                               .timeout = parts.core.options().phase_timeout}},
                  to_all(parts.core)),
      inquiry_(parts.core.mpi().size(), to_all(parts.core)),
      libraries_(parts.core.mpi().size()),
      slow_ranks_({.size = parts.core.mpi().size(),
                   .factor = parts.core.options().slow_factor,
                   .one_in_an_epoch = parts.core.options().leaves_slow}),
      splits_([&core = parts.core](int rank, const SupervisorMessage& message) {
        core.send(rank, message);
      }) {}

void WorldLeader::start() {
  supervisor_.start(parts_.now());
}

void WorldLeader::take_over(const WorldSupervisor::Heritage& heritage) {
  supervisor_.take_over(heritage, parts_.now());
}

void WorldLeader::hear(const RankMessage& message) {
  const auto now = parts_.now();
  std::visit(
      [&]<class Message>(const Message& said) {
        if constexpr (Receives<Inquiry, Message>) {
          inquiry_.receive(said, now);
        } else if constexpr (Receives<SplitOrder, Message>) {
          this->report(splits_.receive(said, now));
        } else if constexpr (std::is_same_v<Message, from_rank::Library>) {
          libraries_.receive(said.rank, said.library, now);
        } else {
          if constexpr (std::is_same_v<Message, from_rank::Committed>)
            this->look_for_slow_ranks(said);
          supervisor_.receive(message, now);
          this->tell_of_standby_world();
        }
      },
      message);
}

void WorldLeader::tick() {
  const auto now = parts_.now();
  supervisor_.tick(now);
  tell_of_standby_world();
  report_inquiry();
  splits_.tick(now);
  warn(libraries_.tick(now));
}

void WorldLeader::tell_of_standby_world() {
  if (parts_.core.options().standby_world)
    parts_.core.status().standbys().set_world(supervisor_.standby_world().formed());
}

void WorldLeader::look_for_slow_ranks(const from_rank::Committed& committed) {
  const auto& member = parts_.member;
  if (committed.paces.empty() || committed.epoch != member.epoch() ||
      member.phase() != Phase::active)
    return;
  for (const auto& slow : slow_ranks_.receive(committed, member.excluded()))
    parts_.core.send(slow.pace.rank, SupervisorMessage(slow));
}

void WorldLeader::report_inquiry() {
  const auto finding = inquiry_.tick(parts_.now());
  if (!finding) return;
  log::warn("world", "{}", finding->text);
  if (finding->deadlock) end_the_job(*finding->deadlock);
  if (finding->error) supervisor_.end(*finding->error);
}

void WorldLeader::report(const std::optional<SplitOrder::Finding>& finding) {
  if (!finding || supervisor_.stopped()) return;
  if (finding->in_mpi) end_the_job(finding->error);
  supervisor_.end(finding->error);
}

void WorldLeader::warn(const std::vector<std::string>& lines) {
  for (const auto& line : lines) log::warn("world", "{}", line);
}

}  // namespace troupe::rank_process
