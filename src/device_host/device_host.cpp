#include "device_host/device_host.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include <troupe/spin.hpp>

#include "device_host/describe.hpp"

namespace troupe::host {
namespace {

namespace to_host = wire::to_host;

constexpr auto kIdleBeat =
    std::chrono::milliseconds(250);  ///< heartbeat while there is nothing to do
constexpr auto kControlPause =
    std::chrono::microseconds(100);  ///< between looks at the control socket while busy
constexpr int kGather = 4;           ///< pauses after commands were issued, some 50 to 300 ns
constexpr int kSpinLooks =
    16;  ///< looks at the ring between those at everything else, while spinning
constexpr auto kEndPatience =
    std::chrono::seconds(2);  ///< with what ends because its communicator is given up
constexpr auto kPollPause =
    std::chrono::microseconds(20);  ///< between looks at the engine once spinning is over

/// The part has an on() for messages of this kind.
template <class Part, class Kind>
concept Hears = requires(Part& part, std::uint64_t request, Kind& kind) {
  part.on(request, kind);
};

void relax(int times) {
  for (int i = 0; i < times; ++i) cpu_relax();
}

void clear_counter(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(fd, &count, sizeof count);
}

}  // namespace

Result<std::unique_ptr<DeviceHost>> DeviceHost::create(const wire::HostOptions& options) {
  auto port = Port::open(UniqueFd(options.segment_fd));
  if (!port) return port.error();
  auto channels_bell = ipc::Doorbell::create();
  if (!channels_bell) return channels_bell.error();
  auto core = Core::make(options, std::move(*port));
  if (!core) return core.error();
  return std::unique_ptr<DeviceHost>(
      new DeviceHost(options, std::move(*core), std::move(*channels_bell)));
}

DeviceHost::Commands::Commands(Core& core, Requests& requests, Libraries& libraries,
                               Preparations& preparations, Mappings& mappings, Formation& formation,
                               std::function<bool()> more_is_known)
    : set_aside(&core.port.header().set_aside),
      outcomes(core, requests, libraries),
      runs(core, libraries, mappings, outcomes, set_aside),
      own(core, libraries, preparations, mappings, formation, outcomes, set_aside),
      intake({core, libraries, preparations, mappings, formation, outcomes, set_aside, runs, own},
             std::move(more_is_known)) {}

DeviceHost::DeviceHost(const wire::HostOptions& options, std::unique_ptr<Core> core,
                       ipc::Doorbell channels_bell)
    : core_(std::move(core)),
      requests_(*core_),
      libraries_(
          *core_, requests_,
          {.opened =
               [this](Lane lane, bool open) {
                 if (lane == Lane::collective) return formation_.lane_opened();
                 if (open) preparations_.library_opened(lane);
               },
           .plans_made = [this](Lane lane,
                                const auto& plans) { preparations_.tell_plans(lane, plans); }}),
      preparations_(*core_, requests_, libraries_),
      mappings_(*core_, requests_),
      formation_(*core_, requests_, libraries_, std::move(channels_bell)),
      commands_(*core_, requests_, libraries_, preparations_, mappings_, formation_,
                [this] { return serve_rank(); }) {
  libraries_.know(options.library_folders);
}

DeviceHost::~DeviceHost() {
  formation_.abort();  // a helper may be forming a communicator
  // What waits for other ranks ends now; the graphs that go with this object must have.
  const auto patience = SteadyClock::time() + kEndPatience;
  while (!core_->life.lost() && SteadyClock::time() < patience) {
    if (const auto drained = core_->batches.drained(); !drained.ok() || *drained) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  core_->batches.discard();
  core_->helpers.join();  // their jobs use what goes now
}

void DeviceHost::say_ready_or_prepare() {
  const auto say_ready = [this] {
    core_->rank.send(wire::from_host::Ready{to_text(describe(core_->engine->description()))});
  };
  const auto standby = core_->settings().standby;
  if (standby != wire::Standby::alone) say_ready();
  if (standby == wire::Standby::no) return;
  const bool prepares = core_->helpers.start([this, standby, say_ready]() -> Helpers::Finish {
    (void)core_->engine->collectives().prepare_connect();  // forming itself will say what is wrong
    if (standby == wire::Standby::alone) return say_ready;
    return [] {};
  });
  if (!prepares && standby == wire::Standby::alone) say_ready();
}

int DeviceHost::run() {
  const auto& port = core_->port;
  port.beat(SteadyClock::time());
  port.header().life.hold();
  port.header().host_pid.store(::getpid());
  say_ready_or_prepare();
  libraries_.open_first();
  last_progress_ = SteadyClock::time();
  ::prctl(PR_SET_TIMERSLACK,
          1000);  // ns: the pauses between looks at the engine are shorter than the default slack
  for (auto looked = last_progress_; !core_->life.exit_status();) {
    const bool progress = go_round();
    // Of time, not of rounds: where a stream is full of long kernels, a launch takes as long as
    // one.
    const auto now = progress ? last_progress_ : SteadyClock::time();
    port.beat(now);
    count_time(now);
    if (now - looked >= kControlPause) {
      looked = now;
      if (serve_rank()) continue;
    }
    if (!progress) wait(now);
  }
  return *core_->life.exit_status();
}

bool DeviceHost::go_round() {
  auto& [set_aside, outcomes, runs, own, intake] = commands_;
  if (formation_.meetings().ready() || runs.goes_on()) core_->set_aside_due = true;
  const bool issued = intake.issue();
  bool progress = complete() || issued;
  progress |= core_->helpers.run_finished();
  progress |= formation_.channels().run_finished();
  progress |= preparations_.advance();
  if (mappings_.has_dropped() && formation_.rests()) mappings_.unmap_dropped();
  if (!core_->life.lost()) runs.graphs().destroy_void();
  if (progress) {
    last_progress_ = SteadyClock::time();
    core_->set_aside_due = true;
  }
  // A rank that submits in a burst writes the ring's tail every hundred nanoseconds, and each look
  // at it from here makes that dearer: let some gather.
  if (issued && core_->settings().spin_us != 0) relax(kGather);
  return progress;
}

bool DeviceHost::complete() {
  auto& life = core_->life;
  if (life.lost()) return false;
  if (pending_.probe) {
    const auto ended = core_->engine->probe_ended();
    if (!ended.ok() || *ended) {
      requests_.answer(*std::exchange(pending_.probe, std::nullopt),
                       ended.ok() ? Result<void>() : ended.error());
      return true;
    }
  }
  if (pending_.quiesce) {
    if (libraries_.at_work() || formation_.channels().busy()) return false;
    commands_.runs.abandon();
    const auto drained = core_->batches.drained();
    if (!drained.ok()) life.lose(drained.error());
    if (drained.ok() && !*drained) return false;
    core_->lanes.complete_all();
    commands_.runs.clear();
    commands_.set_aside.clear();
    commands_.outcomes.drop_held();
    preparations_.drop(Preparation::For::command);  // the rank submits them anew
    requests_.answer(*std::exchange(pending_.quiesce, std::nullopt), {});
    return true;
  }
  if (look_for_loss()) return true;
  if (!life.active()) return false;
  const auto answered = core_->batches.poll();
  if (answered.ok()) return *answered;
  if (answered.code() == Errc::peer_lost) {
    life.break_communicator(answered.error());
  } else {
    life.lose(answered.error());
  }
  return true;
}

void DeviceHost::count_time(TimePoint now) {
  auto& times = core_->flight.times();
  Rest rest{.since = now};
  if (core_->batches.empty() && core_->life.active()) {
    if (formation_.meetings().waits()) {
      rest.counter = &times.meeting;
    } else if (commands_.set_aside.empty()) {
      rest.counter = &times.idle;
    }
  }
  if (rest.counter == rest_.counter && now - rest_.since < kControlPause) return;
  if (rest_.counter != nullptr)
    rest_.counter->fetch_add(static_cast<std::uint64_t>((now - rest_.since).count()),
                             std::memory_order_relaxed);
  rest_ = rest;
}

bool DeviceHost::look_for_loss() {
  auto health = commands_.own.look_for_fault();
  if (health.ok() && core_->life.mode() == Life::Mode::paused) health = core_->batches.health();
  if (health.ok()) return false;
  core_->life.lose(health.error());
  return true;
}

void DeviceHost::wait(TimePoint now) {
  const auto& settings = core_->settings();
  const auto& batches = core_->batches;
  core_->replies.flush();
  const bool engine_busy =
      !core_->life.lost() && (!batches.empty() || commands_.own.expects_fault() || pending_.probe ||
                              preparations_.is_queued() || commands_.runs.waits_at_branch());
  // As long as the rank spins for what is running: to be woken takes a thread longer than many a
  // kernel.
  const bool awaited = settings.spin_us != 0 && engine_busy && core_->replies.awaited();
  if (awaited || now - last_progress_ < std::chrono::microseconds(settings.spin_us)) {
    const int looks = batches.empty() ? kSpinLooks : 1;
    for (int i = 0; i < looks && !commands_.intake.has_more(); ++i) cpu_relax();
    return;
  }
  auto& meetings = formation_.meetings();
  const bool active = core_->life.mode() == Life::Mode::active;
  core_->engine->arm();
  if (active) commands_.intake.announce_sleep();
  meetings.announce_sleep();
  // Whatever came before the announcements was seen by nobody: look once more.
  bool look_again =
      active && (commands_.intake.has_more() || meetings.ready() || commands_.runs.can_go_on());
  // What ends here may be what commands that are set aside wait for.
  if (!look_again && complete()) look_again = core_->set_aside_due = true;
  if (!look_again) sleep(engine_busy);
  commands_.intake.cancel_sleep();
  meetings.cancel_sleep();
}

void DeviceHost::sleep(bool engine_busy) {
  auto& meetings = formation_.meetings();
  const int engine = core_->engine->completion_fd();
  pollfd fds[] = {{core_->rank.fd(), POLLIN, 0},    {core_->command_bell.fd(), POLLIN, 0},
                  {core_->helpers.fd(), POLLIN, 0}, {formation_.channels().fd(), POLLIN, 0},
                  {core_->batches.fd(), POLLIN, 0}, {engine, POLLIN, 0},
                  {meetings.fd(), POLLIN, 0}};
  const auto& [rank, commands, helpers, channels, batches, completion, meeting] = fds;
  const bool must_poll = engine_busy && engine < 0;
  const auto limit =
      must_poll ? std::chrono::nanoseconds(kPollPause) : std::chrono::nanoseconds(kIdleBeat);
  const timespec timeout{.tv_sec = 0, .tv_nsec = limit.count()};
  ::ppoll(fds, std::size(fds), &timeout, nullptr);
  if ((rank.revents & (POLLIN | POLLHUP | POLLERR)) != 0) serve_rank();
  if (commands.revents != 0) core_->command_bell.clear();
  if (completion.revents != 0) clear_counter(engine);
  if (batches.revents != 0) clear_counter(batches.fd);
  if (meeting.revents != 0) meetings.clear();
  if ((commands.revents | batches.revents | completion.revents | meeting.revents) != 0)
    last_progress_ = SteadyClock::time();
}

bool DeviceHost::serve_rank() {
  bool any = false;
  while (!core_->life.exit_status()) {
    auto message = core_->rank.receive();
    if (!message) break;
    handle(std::move(*message));
    any = true;
  }
  return any || core_->rank.gone();
}

void DeviceHost::handle(wire::FromRank message) {
  const auto request = message.request;
  const bool whole = message.whole.ok();
  std::visit(
      [&]<class Kind>(Kind& kind) {
        if (!whole) {
          if constexpr (std::is_same_v<Kind, to_host::MapSlab> ||
                        std::is_same_v<Kind, to_host::MapPinned>)
            mappings_.failed(message.whole.error());
          return requests_.answer(request, message.whole);
        }
        const auto give_to = [&]<class Part>(Part& part) {
          if constexpr (Hears<Part, Kind>) part.on(request, kind);
        };
        give_to(commands_.runs);
        give_to(commands_.own);
        give_to(mappings_);
        give_to(libraries_);
        give_to(preparations_);
        give_to(formation_);
        give_to(requests_);
        constexpr bool own = kIsOneOf<Kind, to_host::Promote, to_host::Quiesce, to_host::Resume,
                                      to_host::Probe, to_host::ShutDown>;
        if constexpr (own) on(request, kind);
        static_assert(own || Hears<SequenceRuns, Kind> || Hears<OwnOperations, Kind> ||
                          Hears<Mappings, Kind> || Hears<Libraries, Kind> ||
                          Hears<Preparations, Kind> || Hears<Formation, Kind> ||
                          Hears<Requests, Kind>,
                      "nobody hears this message");
      },
      message.message);
}

void DeviceHost::on(std::uint64_t request, const to_host::Promote& promote) {
  if (mappings_.failure()) return requests_.answer(request, *mappings_.failure());
  preparations_.drop(Preparation::For::rank);  // there are commands to run
  core_->life.promote(promote.halts);
  last_progress_ = SteadyClock::time();
  requests_.answer(request, {});
}

void DeviceHost::on(std::uint64_t request, const to_host::Quiesce&) {
  formation_.surrender().catch_up();
  core_->life.pause();
  if (core_->life.lost()) return requests_.answer(request, {});  // it can do no more harm
  formation_.abandon();
  pending_.quiesce = request;
}

void DeviceHost::on(std::uint64_t, const to_host::Resume& resume) {
  core_->life.resume(resume.halts);
}

void DeviceHost::on(std::uint64_t request, const to_host::Probe&) {
  if (const auto begun = core_->engine->begin_probe(); !begun.ok())
    return requests_.answer(request, begun);
  pending_.probe = request;
}

void DeviceHost::on(std::uint64_t, const to_host::ShutDown&) {
  core_->life.end(wire::kExitOk);
}

}  // namespace troupe::host
