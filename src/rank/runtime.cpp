#include <troupe/runtime.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include <troupe/actor.hpp>

#include "common/core/continuations.hpp"
#include "common/core/log.hpp"
#include "common/ipc/descriptors.hpp"
#include "common/wire/library_stamps.hpp"
#include "rank/job_launch.hpp"
#include "rank/launch.hpp"
#include "rank/run/stop_signal.hpp"
#include "rank/runtime_parts.hpp"

namespace troupe {
namespace {

/// So often contents can be lost, in the life of a process, until tokens of the one before, which
/// had its rank, may match.
constexpr std::uint32_t kGenerationsOfProcess = 1u << 20;
constexpr int kActorWorkers = 2;  // the device's actor and the world's

rank_process::TokenPath token_path(TokenWay way) {
  switch (way) {
    case TokenWay::automatic: return rank_process::TokenPath::peer_or_network;
    case TokenWay::peer: return rank_process::TokenPath::peer;
    case TokenWay::network: return rank_process::TokenPath::network;
    case TokenWay::nccl: return rank_process::TokenPath::channel;
  }
  return rank_process::TokenPath::peer_or_network;
}

/// Ahead of main(), and so of MPI and of all else that opens descriptors.
[[gnu::constructor]] void when_loaded() {
  ipc::fill_standard_descriptors();
}

/// Whether this rank's libraries of operations are those of all others. Errors: invalid.
Result<void> compare_libraries(const rank_process::Session& mpi) {
  const auto own = wire::library_stamps();
  std::string text(sizeof(wire::LibraryStamps), '\0');
  if (own.ok()) std::memcpy(text.data(), own->data(), text.size());
  const auto of_ranks = mpi.everyone().gather_text(text);
  if (!own) return own.error();
  const auto name = [](std::size_t rank) { return "rank " + std::to_string(rank); };
  const auto self = name(static_cast<std::size_t>(mpi.rank()));
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank] == text) continue;
    wire::LibraryStamps stamps;
    if (of_ranks[rank].size() != sizeof stamps) {
      return Error{Errc::invalid, 0,
                   self + " and " + name(rank) + " are of different versions of troupe"};
    }
    std::memcpy(stamps.data(), of_ranks[rank].data(), sizeof stamps);
    if (auto alike = wire::compare_stamps(stamps, self, name(rank)); !alike) return alike;
  }
  return {};
}

/// Two ranks of this node on one GPU: Slurm or CUDA_VISIBLE_DEVICES gave them the same, or there
/// are too few.
Result<void> refuse_shared_gpus(rank_process::Session& mpi, const DeviceInfo& info,
                                const std::string& engine) {
  if (engine != "cuda") return {};
  const auto uuids = mpi.gather_local_text(info.uuid);
  if (mpi.respawns().incarnation() > 0) return {};  // it has the GPU of its place
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    const auto other =
        std::find(uuids.begin(), uuids.begin() + static_cast<std::ptrdiff_t>(i), uuids[i]);
    if (other == uuids.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    const auto distinct = std::set<std::string>(uuids.begin(), uuids.end()).size();
    return Error{Errc::invalid, 0,
                 "more ranks than GPUs on a node: " + std::to_string(uuids.size()) + " ranks, " +
                     std::to_string(distinct) + " GPUs; local ranks " +
                     std::to_string(other - uuids.begin()) + " and " + std::to_string(i) +
                     " both have " + uuids[i]};
  }
  return {};
}

}  // namespace

Runtime::Parts::~Parts() {
  conclude(false);
  world.reset();
  if (observer) observer->forget_world();
  const bool formed = world_core != nullptr;
  const auto health = formed ? world_core->status().health().events() : std::vector<HealthEvent>();
  world_core.reset();  // waits for all ranks
  if (device_core) device_core->shut_down();
  (void)detail::wait_for_continuations(std::chrono::hours(1));  // whose commands fail from now on
  if (formed && !rank_process::Session::forsaken()) observer->finish(health);
  observer.reset();
  device.reset();
  detail::set_error_account(nullptr);
  device_core.reset();
  actors.reset();
  rank_process::release_stop_signal();
}

void Runtime::Parts::conclude(bool well) {
  if (world_core)
    world_core->leave_actors();  // the others' messages are served until they are here
  program_actors.reset();        // what they still do may need the device and the world
  const auto end = std::chrono::steady_clock::now() + kEndPatience;
  for (bool again = true; again;) {
    const auto submitted = device_core && well ? device_core->port().submitted() : 0;
    if (device_core && well) device_core->port().outcomes().fence().reached.wait_ready();
    const bool idle = detail::wait_for_continuations(kEndPatience);
    // A function may have submitted commands, and given functions to their futures.
    again = well && idle && device_core && device_core->port().submitted() != submitted &&
            std::chrono::steady_clock::now() < end;
  }
}

void Runtime::Parts::clear_near_states(int status) const {
  if (settings.checkpoint_local.empty()) return;
  const auto all = mpi->everyone().gather(status);
  if (std::any_of(all.begin(), all.end(), [](int one) { return one != kExitSuccess; })) return;
  for (const auto& folder : world_core->history().near_folders)
    rank_process::Generations(folder).clear();
}

Result<void> Runtime::Parts::open_device() {
  // A rank without a GPU is no member of the world. What it does before the run it does on the
  // host.
  const bool in_refuge = mpi->respawns().in_refuge();
  engine = rank_process::common_engine(settings, *mpi);
  const std::string own_engine = in_refuge ? "cpu" : engine;
  const char* const slurm_job = std::getenv("SLURM_JOB_ID");
  const auto job = mpi->everyone()
                       .gather_text(slurm_job != nullptr ? slurm_job : std::to_string(::getpid()))
                       .front();
  const auto clock_offset = mpi->clock_offset();
  cores = rank_process::own_cores(*mpi);
  auto options = rank_process::device_options(settings, own_engine, *mpi, cores);
  if (!options) return options.error();
  options->settings.in_world = !in_refuge;
  if (in_refuge) options->settings.standby = false;
  options->flight.job = job;
  options->first_generation = 1 + mpi->respawns().incarnation() * kGenerationsOfProcess;
  if (settings.on_rank_loss == OnRankLoss::respawn) {
    const auto& estate = mpi->respawns().estate();
    options->settings.slab_made = [estate](std::uint32_t region, std::uint64_t bytes, int memory) {
      estate->keep(region, bytes, memory);
    };
    options->settings.slab_dropped = [estate](std::uint32_t region) { estate->drop(region); };
  }
  options->flight.rank = mpi->rank();
  options->flight.size = mpi->size();
  options->flight.clock_offset_ns = clock_offset.count();
  rank_process::Observer::prepare(settings, own_engine, options->flight);
  flight = options->flight;
  auto opened = rank_process::DeviceCore::open(*actors, std::move(*options), mpi->rank());
  if (!opened) return opened.error();
  device_core = std::move(*opened);
  detail::set_error_account([port = &device_core->port()](Error error, detail::Heard heard) {
    return port->outcomes().enter(std::move(error), heard);
  });
  return {};
}

/// Where the GPU hangs is known only now that its device host has come up. Threads and device hosts
/// that actors start from here on inherit the binding.
void Runtime::Parts::bind_actors() {
  const int node = device_core->info().numa_node;
  if (settings.bind == Binding::none || node < 0) return;
  const auto bind = [&]() -> Result<void> {
    const auto allowed = allowed_cores();
    if (!allowed) return allowed.error();
    auto near = CpuBinding::near_node(node, *allowed);
    if (!near) return near.error();
    if (auto bound = scheduler->bind(*near); !bound) return bound;
    actor_cores = near->list();
    binding.emplace(std::move(*near));
    return {};
  };
  if (const auto bound = bind(); !bound) {
    log::info("runtime", "the actors are not bound near the GPU: {}", bound.error().message);
  }
}

ActorSystem& Runtime::Parts::start_program_actors() {
  if (program_actors) return *program_actors;
  const auto workers = static_cast<int>(settings.actor_workers);
  auto threads = ProductionScheduler::start({.workers = workers}).take();
  if (binding) {
    if (const auto bound = threads->bind(*binding); !bound)
      log::info("runtime", "the program's actors are not bound: {}", bound.error().message);
  }
  program_actors = std::make_unique<ActorSystem>(std::move(threads));
  return *program_actors;
}

void Runtime::Parts::open(int* argc, char*** argv) {
  if (const int signal = rank_process::stop_signal(settings))
    rank_process::catch_stop_signal(signal);
  mpi = rank_process::Session::open(argc, argv);
  const auto agree = [this](const Result<void>& outcome) {
    if (auto agreed = mpi->everyone().agree(outcome); !agreed)
      throw CollectiveException(agreed.error());
  };
  agree(rank_process::check_settings(settings));
  agree(mpi->check_threads());
  agree(log::init(Rank(mpi->rank()), settings.log_level));
  agree(compare_libraries(*mpi));
  auto started =
      ProductionScheduler::start({.workers = kActorWorkers, .runs_continuations = false});
  agree(started.ok() ? Result<void>() : Result<void>(started.error()));
  scheduler = std::move(*started);
  actors = std::make_unique<ActorSystem>(scheduler);
  agree(open_device());
  bind_actors();
  agree(refuse_shared_gpus(*mpi, device_core->info(), engine));
  auto observes = rank_process::Observer::open(settings, *mpi, *device_core, flight);
  if (!observes) throw CollectiveException(observes.error());
  observer = std::move(*observes);
  auto formed = rank_process::WorldCore::open(
      *actors, *mpi, device_core,
      {.phase_timeout = settings.phase_timeout,
       .standby_world = settings.standby == StandbyMode::world,
       .check_collectives = settings.checks("collectives"),
       .shrink = settings.on_loss == OnLoss::shrink,
       .leaves_failing = settings.on_health == OnHealth::shrink,
       .replaces_failing = settings.on_health == OnHealth::replace,
       .slow_factor = settings.slow_factor,
       .leaves_slow = settings.on_slow == OnSlow::leave,
       .stop_on_loss = settings.on_loss == OnLoss::stop,
       .rejoin_after =
           mpi->respawns().in_refuge() ? std::chrono::nanoseconds(0) : settings.rejoin_after,
       .stall_report = settings.stall_report,
       .save = rank_process::save_options(settings, config),
       .rehearsal = rank_process::rehearsal_options(settings),
       .guard =
           settings.checks("writes") ? std::optional(settings.check_writes_budget) : std::nullopt,
       .verify = settings.verify,
       .tokens = {.path = token_path(settings.token_path),
                  .timeout = settings.token_timeout,
                  .near = binding ? &*binding : nullptr},
       .collector = observer->collector()});
  agree(formed.ok() ? Result<void>() : Result<void>(formed.error()));
  world_core = std::move(*formed);
  device.emplace(device_core);
  world.emplace(*device, world_core);
  observer->watch(*world_core);
  if (settings.on_rank_loss == OnRankLoss::respawn) mpi->respawns().expect(cores);
}

Runtime::Runtime(int argc, char** argv, const Config& config)
    : parts_(std::make_unique<Parts>(config)) {
  parts_->open(&argc, &argv);
}

Runtime::Runtime(int argc, char** argv, std::span<const OptionSpec> options)
    : Runtime(argc, argv, Config::parse(argc, argv, options).take()) {}

Runtime::~Runtime() = default;

Device& Runtime::device() {
  return *parts_->device;
}
World& Runtime::world() {
  return *parts_->world;
}
const Config& Runtime::config() const {
  return parts_->config;
}
ActorSystem& Runtime::actors() {
  return parts_->start_program_actors();
}
const std::string& Runtime::actor_cores() const {
  return parts_->actor_cores;
}
std::string mpi_version() {
  return rank_process::Session::library_version();
}

}  // namespace troupe
