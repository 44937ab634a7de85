#include <troupe/runtime.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <typeinfo>

#include <boost/core/demangle.hpp>

#include <troupe/actor.hpp>

#include "common/actor/cpu_binding.hpp"
#include "common/core/continuations.hpp"
#include "common/core/log.hpp"
#include "common/core/version.hpp"
#include "common/ipc/descriptors.hpp"
#include "common/wire/library_stamps.hpp"
#include "rank/exit_status.hpp"
#include "rank/job_launch.hpp"
#include "rank/launch.hpp"
#include "rank/net/session.hpp"
#include "rank/observe.hpp"
#include "rank/run/stop_signal.hpp"
#include "rank/world/world_core.hpp"

namespace troupe {
namespace {

/// How long a rank that has failed waits for others to end as well.
constexpr std::chrono::seconds kEndPatience{10};
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

struct Runtime::Parts {
  explicit Parts(const Config& given) : config(given), settings(Settings::of(given)) {}

  Config config;
  Settings settings;
  std::shared_ptr<rank_process::Session> mpi;
  std::shared_ptr<ProductionScheduler> scheduler;
  std::unique_ptr<ActorSystem> actors;
  std::optional<CpuBinding> binding;
  std::string actor_cores;
  std::unique_ptr<ActorSystem> program_actors;
  std::shared_ptr<rank_process::DeviceCore> device_core;
  std::unique_ptr<rank_process::Observer> observer;
  std::shared_ptr<rank_process::WorldCore> world_core;
  rank_process::FlightRecorder::Options flight;
  int cores = 1;       ///< that this rank has to itself
  std::string engine;  ///< of all ranks that have a device
  std::optional<Device> device;
  std::optional<World> world;

  Result<void> open_device();
  void bind_actors();
  ActorSystem& start_program_actors();
  void open(int* argc, char*** argv);
  /// Once the program's body has returned: what it has left to do for actors and functions of
  /// futures is done, and nothing of it can fail unheard any more. Waits for all ranks; `well`:
  /// also for the device.
  void conclude(bool well);
  /// The states on the nodes are of no use behind a program that has ended well on all ranks, which
  /// call it with their statuses.
  void clear_near_states(int status) const;

  ~Parts() {
    conclude(false);
    world.reset();
    if (observer) observer->forget_world();
    const bool formed = world_core != nullptr;
    const auto health =
        formed ? world_core->status().health().events() : std::vector<HealthEvent>();
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
};

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
       .stop_on_loss = settings.on_loss == OnLoss::stop,
       .rejoin_after =
           mpi->respawns().in_refuge() ? std::chrono::nanoseconds(0) : settings.rejoin_after,
       .stall_report = settings.stall_report,
       .save = rank_process::save_options(settings, config),
       .rehearsal = rank_process::rehearsal_options(settings),
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

namespace {

void say(const Program& program, const std::string& line) {
  std::fprintf(stderr, "%s: %s\n", program.name.c_str(), line.c_str());
  std::fflush(stderr);
}

std::string name_of(int rank) {
  return "[rank " + std::to_string(rank) + "] ";
}

std::string line_of(const Error& error) {
  const bool named =
      error.code == Errc::invalid || error.code == Errc::io || error.code == Errc::unsupported;
  return named ? error.message : error.to_string();
}

/// One line, from rank 0: all ranks have the same to say.
int complain(const Program& program, const Error& error, int rank) {
  if (rank == 0) say(program, line_of(error));
  return rank_process::exit_status(error.code);
}

/// The exception that is being handled is known to this rank alone: the others would wait for it
/// for ever. One line, and the end of the job.
[[noreturn]] void end_the_job(const Program& program, int rank) {
  const auto end = [&](const std::string& line, int status) {
    say(program, name_of(rank) + line);
    rank_process::Session::abort(status);
  };
  try {
    throw;
  } catch (const Exception& e) {
    end(line_of(e.error()), rank_process::exit_status(e.code()));
  } catch (const std::bad_alloc&) {
    end("out_of_memory: host memory", rank_process::exit_status(Errc::out_of_memory));
  } catch (const std::exception& e) {
    end("the program ended with an exception: " + boost::core::demangle(typeid(e).name()) + ": " +
            e.what(),
        kExitFailure);
  } catch (...) {
    end("the program ended with an exception that is no std::exception", kExitFailure);
  }
  std::abort();  // not reached
}

std::string line_of(const UnreadErrors& errors) {
  if (errors.count == 0) return {};
  return (errors.count == 1 ? std::string("a command failed, and nobody read its error: ")
                            : std::to_string(errors.count) +
                                  " commands failed, and nobody read their errors; the first: ") +
         errors.first.to_string();
}

/// What any rank alone has to say at the end, empty if nothing: one line, from rank 0. All ranks
/// call it. False if there is nothing.
bool tell(const Program& program, const std::string& mine,
          const rank_process::HostGroup& everyone) {
  const auto lines = everyone.gather_text(mine);
  const auto empty = [](const auto& line) { return line.empty(); };
  const auto first = std::find_if_not(lines.begin(), lines.end(), empty);
  if (first == lines.end()) return false;
  const auto others = std::count_if(first + 1, lines.end(), std::not_fn(empty));
  if (everyone.rank() == 0) {
    say(program, name_of(static_cast<int>(first - lines.begin())) + *first +
                     (others == 0 ? ""
                                  : " (and errors on " + std::to_string(others) + " other rank" +
                                        (others == 1 ? ")" : "s)")));
  }
  return true;
}

/// Waits for the end of all ranks' programs. A rank that ends with a status of its own, while
/// others wait for it, ends the job. `unsaid`: what would be said once all have ended.
void end_body(const Program& program, rank_process::Session& mpi, int status,
              const std::string& unsaid) {
  constexpr auto kEver = std::chrono::hours(24 * 365);
  if (mpi.all_have_ended(status == kExitSuccess ? kEver : kEndPatience)) return;
  if (status == kExitSuccess || rank_process::Session::forsaken()) return;
  say(program, name_of(mpi.rank()) + "this rank's program has ended with status " +
                   std::to_string(status) + ", that of others has not: the job ends" +
                   (unsaid.empty() ? "" : " (" + unsaid + ")"));
  rank_process::Session::abort(status);
}

int answer(const Program& program, const Config& config, bool first) {
  if (!first) return kExitSuccess;
  const std::string text = config.wants_help() ? config.help_text(program.name, program.synopsis)
                           : config.wants_version()
                               ? program.name + " (troupe) " + std::string(kVersion) + "\n"
                               : config.print();
  std::fputs(text.c_str(), stdout);
  return kExitSuccess;
}

}  // namespace

namespace {

/// To troupe-run, whose launcher may have been told to go on whatever becomes of a process: what a
/// keeper tells, where there is none.
void tell_launcher(int status) {
  if (std::getenv("LIBTROUPE_TELL_STATUS") != nullptr)
    std::fprintf(stderr, "troupe-keeper: job status %d\n", status);
}

/// As a keeper, if one is wanted, or in a process that waits to become a rank. Errors: a keeper
/// cannot be had; see become_keeper().
Result<void> launch_again(const Config& config, char** argv) {
  try {
    const auto settings = Settings::of(config);
    if (auto sound = rank_process::check_settings(settings); !sound)
      return {};  // said by all ranks
    auto launched = rank_process::become_keeper(settings, argv);
    if (launched.ok()) rank_process::start_early_host(settings);
    return launched;
  } catch (const Exception&) {
    return {};  // as the Runtime says
  }
}

}  // namespace

int run_program(int argc, char** argv, const Program& program,
                const std::function<int(Runtime&)>& body,
                const std::function<Result<void>(const Config&)>& check_usage) {
  auto config = Config::parse(argc, argv, program.options);
  const bool asks =
      config.ok() && (config->wants_help() || config->wants_version() || config->wants_print());
  Result<void> usage = config.ok() ? Result<void>() : Result<void>(config.error());
  if (usage.ok() && !asks && check_usage) usage = check_usage(*config);
  if (usage.ok() && !asks) usage = launch_again(*config, argv);
  // It outlives the Runtime: no rank leaves before rank 0 has said what went wrong, for mpirun
  // kills the others once one leaves with a status that is not 0.
  const auto mpi = rank_process::Session::open(&argc, &argv);
  if (asks) return answer(program, *config, mpi->rank() == 0);
  if (!usage.ok()) {
    const int status = complain(program, usage.error(), mpi->rank());
    if (mpi->rank() == 0) tell_launcher(status);
    return status;
  }
  int status = kExitSuccess;
  std::chrono::nanoseconds patience{};
  try {
    Runtime runtime(argc, argv, *config);
    const auto& settings = runtime.parts_->settings;
    if (settings.stall_report.count() > 0)
      patience = settings.stall_report + settings.phase_timeout;
    std::string unsaid;  // what rank 0 may not know of
    std::string reason;  // what rank 0 says, unless it does not come to that
    try {
      status = body(runtime);
      if (status == kExitSuccess) runtime.parts_->world_core->wait_done();
      unsaid = line_of(runtime.device().unread_errors());
      if (unsaid.empty() && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
        unsaid = "standard output cannot be written: what was printed is lost";
    } catch (
        const rank_process::RunLeft& e) {  // unless the rank that left has ended the job by then
      status = rank_process::exit_status(e.code());
      unsaid = line_of(e.error());
    } catch (const CollectiveException& e) {  // the others end as well, spectators without it
      status = complain(program, e.error(), runtime.world().rank());
      reason = line_of(e.error());
    } catch (...) {
      end_the_job(program, mpi->rank());
    }
    mpi->respawns().expect_no_more();
    if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
    const rank_process::Whereabouts::Wait wait(runtime.parts_->world_core->whereabouts(),
                                               "the end of the program",
                                               rank_process::Awaits::end_of_program);
    end_body(program, *mpi, status, unsaid.empty() ? reason : unsaid);
    if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
    runtime.parts_->conclude(status == kExitSuccess);
    if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
    if (unsaid.empty()) unsaid = line_of(runtime.device().unread_errors());
    if (tell(program, unsaid, mpi->everyone()) && status == kExitSuccess) status = kExitFailure;
    runtime.parts_->clear_near_states(status);
  } catch (const Exception& e) {
    status = complain(program, e.error(), mpi->rank());
  } catch (...) {
    end_the_job(program, mpi->rank());
  }
  if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
  mpi->end_with(status, patience);
  return status;
}

}  // namespace troupe
