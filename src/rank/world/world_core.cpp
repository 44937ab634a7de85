#include "rank/world/world_core.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/device/commands/outcome_log.hpp"
#include "rank/exit_status.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {
namespace {

constexpr auto kConclude = std::chrono::seconds(10);  ///< it takes milliseconds

/// An error of another rank's actor, of which the program must hear: with a code by which a loss is
/// known it would pass for one of this rank's, that need not be told.
Error as_reported(const Error& error) {
  if (!OutcomeLog::is_loss(error.code)) return error;
  const auto code = error.code == Errc::stopped ? Errc::invalid : Errc::peer_lost;
  return {code, error.native, error.to_string()};
}

/// The job ends without these ranks, which do not answer; at once if it is said `again`.
void forsake(const Error& error, const std::vector<int>& ranks, bool again) {
  // The program, on its own thread, may be waiting for them in a host collective.
  if (again) Session::abort(exit_status(error.code));
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  log::warn("world", "the job ends without waiting for rank{} {}, silent since it was stopped: {}",
            ranks.size() == 1 ? "" : "s", names, error.to_string());
  Session::forsake();
}

}  // namespace

WorldCore::WorldCore(Session& mpi, std::shared_ptr<DeviceCore> device, Options options)
    : options_(std::move(options)),
      mpi_(&mpi),
      device_(std::move(device)),
      refusals_(device_->submitter()),
      groups_(std::make_shared<Groups>(mpi)),
      status_(mpi, whereabouts_) {}

Result<std::shared_ptr<WorldCore>> WorldCore::open(ActorSystem& system, Session& mpi,
                                                   std::shared_ptr<DeviceCore> device,
                                                   Options options) {
  std::shared_ptr<WorldCore> core(new WorldCore(mpi, std::move(device), std::move(options)));
  Device program(core->device_);
  auto buffers = std::make_shared<VerificationBuffers>();
  Result<void> ready;
  try {
    *buffers = {program.alloc<std::int64_t>(1), program.pinned<std::int64_t>(1)};
  } catch (const Exception& e) {
    ready = e.error();
  }
  if (auto agreed = mpi.everyone().agree(ready); !agreed) return agreed.error();
  auto tokens = TokenClient::open(mpi, core->device_, core->options_.tokens, [core = core.get()] {
    return core->status_.run().is_under_way();
  });
  if (!tokens) return tokens.error();
  core->tokens_ = std::move(*tokens);
  core->open_actors(system.scheduler());
  if (core->options_.check_collectives) {
    core->check_ = std::make_unique<CollectiveCheck>(
        mpi, core->device_->port(),
        [c = core.get()](std::uint32_t group) { return c->place_in(group); });
  }
  core->collective_digests_.emplace(program, core->check_
                                                 ? static_cast<detail::Submitter&>(*core->check_)
                                                 : core->device_->port());
  core->status_.set_parts({.port = &core->device_->port(),
                           .tokens = core->tokens_.get(),
                           .actors = core->actors_.get(),
                           .check = core->check_.get(),
                           .collector = core->options_.collector});
  core->device_->set_collectives([c = core.get()]() -> DeviceCore::Collectives {
    return {&c->collectives(), c->epoch().value};
  });
  core->actor_ = system.spawn<WorldActor>({.name = "world", .mailbox_capacity = 1u << 16},
                                          core.get(), std::move(buffers));
  mpi.respawns().set_interruption([core = core.get()] {
    if (core->status_.run().is_under_way()) return kWorldReformed;
    return Error{Errc::budget_exhausted, 0,
                 "a rank has died while the ranks exchanged host data outside of World::run, which "
                 "nothing repeats"};
  });
  core->transport_ = std::make_unique<Transport>(
      mpi, Transport::Channel::world, [actor = core->actor_](std::vector<std::byte> bytes) {
        (void)actor.tell(world_message::FromNetwork{std::move(bytes)});
      });
  core->device_->tell(device_message::Listen{[actor = core->actor_](DeviceEvent event) {
    (void)actor.tell(world_message::FromDevice{std::move(event)});
  }});
  mpi.everyone().barrier();  // every transport listens
  (void)core->actor_.tell(world_message::Begin{});
  core->device_->flight().set_whereabouts(
      [core = core.get()] { return core->whereabouts_.now().text; });
  if (auto formed = core->status_.epochs().wait_active(); !formed) return formed.error();
  return core;
}

CollectiveCheck::Place WorldCore::place_in(std::uint32_t group) const {
  const auto entry = group != wire::kWorld ? groups_->find(group) : nullptr;
  const auto* const view = entry ? &entry->view(members()) : nullptr;
  const auto& ranks = view != nullptr ? view->ranks : members().ranks();
  return {epoch().value, view != nullptr ? view->rank : members().rank(),
          static_cast<int>(ranks.size()), ranks.empty() ? 0 : ranks.front()};
}

void WorldCore::open_actors(Scheduler& scheduler) {
  actor_transport_ = std::make_shared<std::unique_ptr<Transport>>();
  actors_ =
      ActorPost::make({.rank = mpi_->rank(),
                       .size = mpi_->size(),
                       .scheduler = &scheduler,
                       .send =
                           [transport = actor_transport_](int rank, std::vector<std::byte> bytes) {
                             (*transport)->send(rank, std::move(bytes));
                           },
                       .report =
                           [device = device_](const Error& error) {
                             (void)device->port().outcomes().report(as_reported(error));
                           },
                       .progress = &device_->port()});
  *actor_transport_ =
      std::make_unique<Transport>(*mpi_, Transport::Channel::actors,
                                  [post = actors_.get()](const std::vector<std::byte>& bytes) {
                                    if (const auto read = post->received(bytes); !read)
                                      log::error("actor", "{}", read.error().to_string());
                                  });
}

void WorldCore::leave_actors() {
  const Whereabouts::Wait wait(whereabouts_, "the end of the program", Awaits::end_of_program);
  (*actor_transport_)->leave();
  actors_->end(Error{Errc::stopped, 0, "the runtime has ended"});
}

WorldCore::~WorldCore() {
  status_.faults().tell_left();
  if (transport_ && options_.rehearsal && !history_.rehearsed && mpi_->rank() == 0)
    log::warn("world", "--rehearse has rehearsed nothing: the program has called no World::run");
  if (transport_ && options_.verify > 0 && mpi_->rank() == 0) {
    const auto found = status_.corruptions().all().size();
    log::info("world", "verified: {} intervals were done twice, {} of them gave other numbers",
              status_.corruptions().verified(), found);
  }
  if (actors_) leave_actors();
  device_->flight().set_whereabouts(nullptr);
  const Whereabouts::Wait wait(whereabouts_, "the end of the program", Awaits::end_of_program);
  if (tokens_) tokens_->end();  // the others' requests are served until they are here too
  if (status_.run().keeper().get() != nullptr) end_abandoned_runs();
  if (check_) check_->leave();
  if (status_.run().keeper().get() != nullptr)
    status_.run()
        .keeper()
        .get()
        ->close();  // while the world can still say what becomes of its last commit
  // What the device has loaded last is on its way to rank 0 before this rank leaves.
  if (transport_ && !actor_.ended()) {
    (void)device_->libraries();
    (void)actor_.ask(world_message::Conclude{false}, kConclude).wait();
  }
  if (transport_)
    transport_->leave();  // until all have left the supervisor is needed, and the actors speak
  if (transport_ && mpi_->rank() == status_.leader() && !actor_.ended())
    (void)actor_.ask(world_message::Conclude{true}, kConclude).wait();
  actor_.stop();
  actor_.wait_ended();  // a handler may be at work here
  for (auto& maker : group_makers_) Session::forsaken() ? maker.detach() : maker.join();
  groups_->close();  // with MPI there, whatever the program still has of them
}

void WorldCore::stop(const Error& error) {
  status_.epochs().stop(error);
  // A collective with a rank that is gone would never end.
  device_->port().hosts().end(error);
  transport_->watch(options_.phase_timeout, [error](const std::vector<int>& ranks, bool again) {
    forsake(error, ranks, again);
  });
}

void WorldCore::make_group(std::vector<int> ranks, std::uint32_t round) {
  group_makers_.emplace_back([actor = actor_, mpi = mpi_, ranks = std::move(ranks), round] {
    (void)actor.tell(world_message::Regrouped{
        round, mpi->make_group(ranks, Session::GroupTag::world, static_cast<int>(round))});
  });
}

detail::Submitter& WorldCore::collectives() {
  if (collective_digests_->notes()) return *collective_digests_;
  if (!mpi_->respawns().expected() || status_.run().has_begun())
    return check_ ? static_cast<detail::Submitter&>(*check_) : device_->port();
  throw CollectiveException({Errc::invalid, 0,
                             "a collective before World::run: with --on-rank-loss respawn a rank "
                             "may die and come back, and "
                             "nobody would do this with it again; do it in RunOptions::prepare"});
}

void WorldCore::meet(const HostCall& call) {
  const Whereabouts::Wait wait(whereabouts_, call.name, Awaits::host_call);
  const auto agreed = agree_on_call(call);
  if (!agreed.ok() && agreed.code() == Errc::world_reformed) throw Exception(agreed.error());
  if (!agreed.ok()) throw WorldStopped(agreed.error());
}

Result<void> WorldCore::agree_on_call(const HostCall& call) {
  if (call.ranks.size() < 2) return {};
  if (auto begun = status_.splits().begin(); !begun) return begun;
  tell_leader(*this, from_rank::Splitting{mpi_->rank(), call});
  if (const auto answer = status_.splits().wait(call, true)) return *answer;
  // The others may have come meanwhile: the leader knows.
  tell_leader(*this, from_rank::SplitGivenUp{mpi_->rank()});
  return *status_.splits().wait(call, false);
}

void WorldCore::groups_changed() {
  (void)actor_.tell(world_message::GroupsChanged{});
}

void WorldCore::end_abandoned_runs() {
  const Whereabouts::Wait wait(whereabouts_, "World::run for the end of the run before");
  while (const auto left = status_.epochs().wait_for_abandoned_run()) {
    const auto [run, epoch] = *left;
    (void)actor_.tell(world_message::Finished{epoch, run, kAnyStep});
    status_.epochs().wait_for_end_of_run(epoch);
  }
}

void WorldCore::request_stop() {
  (void)actor_.tell(world_message::AskToStop{});
}

}  // namespace troupe::rank_process
