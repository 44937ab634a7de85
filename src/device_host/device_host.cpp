#include "device_host/device_host.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include <nlohmann/json.hpp>

#include <troupe/spin.hpp>

#include "device_host/describe.hpp"

namespace troupe::host {
namespace {

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

void relax(int times) {
  for (int i = 0; i < times; ++i) cpu_relax();
}

}  // namespace

Result<std::unique_ptr<DeviceHost>> DeviceHost::create(const wire::HostOptions& options) {
  UniqueFd segment_fd(options.segment_fd);
  auto head = ipc::SharedMemory::map(UniqueFd(::dup(segment_fd.get())), sizeof(wire::PortHeader));
  if (!head) return head.error();
  const auto& header = *reinterpret_cast<const wire::PortHeader*>(head->data());
  if (header.version != wire::kPortVersion) {
    return Error{Errc::invalid, 0,
                 "the rank and troupe-device-host are of different versions of troupe"};
  }
  if (auto same = wire::compare_stamps(header.libraries, "troupe-device-host", "the rank"); !same)
    return same.error();
  auto segment = ipc::SharedMemory::map(
      std::move(segment_fd), wire::port_bytes(header.command_capacity, header.reply_capacity));
  if (!segment) return segment.error();
  auto flight = FlightLog::open(options.flight_fd);
  if (!flight) return flight.error();
  auto host_fn_bell = ipc::Doorbell::create();
  if (!host_fn_bell) return host_fn_bell.error();
  auto helper_bell = ipc::Doorbell::create();
  if (!helper_bell) return helper_bell.error();
  auto channel_bell = ipc::Doorbell::create();
  if (!channel_bell) return channel_bell.error();
  const auto& settings = header.settings;
  auto engine = make_engine({settings.device, settings.memory_limit, settings.threads,
                             settings.interface.data(), settings.other_hosts != 0,
                             settings.channels, settings.reproducible != 0,
                             settings.register_buffers != 0, settings.in_process != 0});
  if (!engine) return engine.error();
  return std::unique_ptr<DeviceHost>(
      new DeviceHost(options, std::move(*segment), std::move(*flight), std::move(*host_fn_bell),
                     std::move(*helper_bell), std::move(*channel_bell), std::move(*engine)));
}

DeviceHost::DeviceHost(const wire::HostOptions& options, ipc::SharedMemory segment,
                       FlightLog flight, ipc::Doorbell host_fn_bell, ipc::Doorbell helper_bell,
                       ipc::Doorbell channel_bell, std::unique_ptr<Engine> engine)
    : options_(options),
      segment_(std::move(segment)),
      flight_(std::move(flight)),
      command_bell_(UniqueFd(options.command_bell_fd)),
      socket_(UniqueFd(options.socket_fd)),
      engine_(std::move(engine)),
      commands_(&header().command, segment_.data() + wire::kPortDataOffset,
                header().command_capacity),
      replies_(
          ipc::RingProducer(&header().reply,
                            segment_.data() + wire::kPortDataOffset + header().command_capacity,
                            header().reply_capacity),
          ipc::Doorbell(UniqueFd(options.reply_bell_fd)), header().halts),
      batches_(*engine_, lanes_, replies_, flight_, header().settings.completion,
               std::move(host_fn_bell)),
      set_aside_(&header().set_aside),
      helpers_(std::move(helper_bell)),
      channels_(std::move(channel_bell)),
      surrender_(header().surrenders, [this] { abort_communicators(); }) {
  ActivitySink sink;
  if (flight_.traces_gpu())
    sink = [this](std::uint64_t ticket, std::int64_t begin, std::int64_t end, std::uint32_t stream,
                  std::string_view name) { flight_.activity(ticket, begin, end, stream, name); };
  tracing_ = make_tracing(std::move(sink));
  know_libraries();
}

DeviceHost::~DeviceHost() {
  abort_communicators();  // a helper may be forming one
  // What waits for other ranks ends now; the graphs that go with this object must have.
  const auto patience = SteadyClock::time() + kEndPatience;
  while (mode_ != Mode::lost && SteadyClock::time() < patience) {
    if (const auto drained = batches_.drained(); !drained.ok() || *drained) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  batches_.discard();
}

void DeviceHost::say_ready_or_prepare() {
  const auto say_ready = [this] {
    send({.kind = wire::ControlKind::ready}, to_text(describe(engine_->description())));
  };
  const auto standby = settings().standby;
  if (standby != wire::Standby::alone) say_ready();
  if (standby == wire::Standby::no) return;
  const bool prepares = helpers_.start([this, standby, say_ready]() -> Helpers::Finish {
    (void)engine_->collectives().prepare_connect();  // forming itself will say what is wrong
    if (standby == wire::Standby::alone) return say_ready;
    return [] {};
  });
  if (!prepares && standby == wire::Standby::alone) say_ready();
}

int DeviceHost::run() {
  beat(SteadyClock::time());
  header().life.hold();
  header().host_pid.store(::getpid());
  say_ready_or_prepare();
  for (const auto lane :
       {Lane::memory, Lane::host_to_device, Lane::device_to_host, Lane::collective})
    open_lane(lane);
  // A library that loads its kernels stops all that is queued from then on until the running
  // kernels end. Within a host a collective ends by itself, because no rank launches it before all
  // are there; elsewhere it, and anywhere the end of a channel, may wait for a rank that waits for
  // the library: all are opened before the first one.
  if (waits_on_device()) {
    for (const auto& stamp : header().libraries) {
      if (const auto lane = known_library_lane(stamp.library())) open_lane(*lane);
    }
  }
  last_progress_ = SteadyClock::time();
  ::prctl(PR_SET_TIMERSLACK,
          1000);  // ns: the pauses between looks at the engine are shorter than the default slack
  for (auto looked = last_progress_; !exit_status_;) {
    if (meeting_ != nullptr && meeting_->ready()) set_aside_due_ = true;
    if (play_can_go_on()) {
      play_waits_ = false;
      set_aside_due_ = true;
    }
    const bool issued = issue();
    bool progress = complete() || issued;
    progress |= helpers_.run_finished();
    progress |= channels_.run_finished();
    if (!preparations_.empty()) progress |= advance_preparations();
    if (!dropped_pinned_.empty()) unmap_dropped();
    if (mode_ != Mode::lost) destroy_void_graphs();
    if (progress) {
      last_progress_ = SteadyClock::time();
      set_aside_due_ = true;
    }
    // A rank that submits in a burst writes the ring's tail every hundred nanoseconds, and each
    // look at it from here makes that dearer: let some gather.
    if (issued && settings().spin_us != 0) relax(kGather);
    // Of time, not of rounds: where a stream is full of long kernels, a launch takes as long as
    // one.
    const auto now = progress ? last_progress_ : SteadyClock::time();
    beat(now);
    if (now - looked >= kControlPause) {
      looked = now;
      if (serve_control()) continue;
    }
    if (!progress) wait(now);
  }
  return *exit_status_;
}

bool DeviceHost::complete() {
  if (mode_ == Mode::lost) return false;
  if (probe_ && look_at_probe()) return true;
  if (quiescing_) {
    if (working_ != 0 || channels_.busy()) return false;
    if (!plays_.empty()) abandon_plays();
    const auto drained = batches_.drained();
    if (!drained.ok()) lose(drained.error());
    if (drained.ok() && !*drained) return false;
    finish_quiesce();
    return true;
  }
  if (look_for_loss()) return true;
  if (!active()) return false;
  const auto answered = batches_.poll();
  if (answered.ok()) return *answered;
  if (answered.code() == Errc::peer_lost) {
    break_communicator(answered.error());
  } else {
    lose(answered.error());
  }
  return true;
}

bool DeviceHost::look_for_loss() {
  Result<void> health;
  if (behind_fault_) {
    const auto reached = engine_->reached(behind_fault_->get());
    if (reached.ok() && *reached) behind_fault_.reset();
    if (!reached.ok()) health = reached.error();
  }
  if (health.ok() && mode_ == Mode::paused) health = batches_.health();
  if (health.ok()) return false;
  behind_fault_.reset();
  lose(health.error());
  return true;
}

void DeviceHost::break_communicator(const Error& error) {
  if (!active()) return;  // that is how it ends where others gave it up
  mode_ = Mode::paused;   // until the world halts, nothing behind it can be trusted
  send({.kind = wire::ControlKind::communicator_broken}, error.to_string());
}

void DeviceHost::wait(TimePoint now) {
  replies_.flush();
  const bool prepares =
      std::any_of(preparations_.begin(), preparations_.end(),
                  [](const auto& one) { return one->state == Preparation::State::queued; });
  const bool engine_busy = mode_ != Mode::lost && (!batches_.empty() || behind_fault_ || probe_ ||
                                                   prepares || play_waits_);
  // As long as the rank spins for what is running: to be woken takes a thread longer than many a
  // kernel.
  const bool awaited = settings().spin_us != 0 && engine_busy && replies_.awaited();
  if (awaited || now - last_progress_ < std::chrono::microseconds(settings().spin_us)) {
    const int looks = batches_.empty() ? kSpinLooks : 1;
    for (int i = 0; i < looks && (blocked_ || commands_.empty()); ++i) cpu_relax();
    return;
  }
  engine_->arm();
  if (mode_ == Mode::active) commands_.announce_sleep();
  if (meeting_ != nullptr) meeting_->announce_sleep();
  // Whatever came before the announcements was seen by nobody: look once more.
  const bool more = (!blocked_ && !commands_.empty()) || (meeting_ != nullptr && meeting_->ready());
  bool look_again = mode_ == Mode::active && (more || play_can_go_on());
  // What ends here may be what commands that are set aside wait for.
  if (!look_again && complete()) look_again = set_aside_due_ = true;
  const bool must_poll = engine_busy && engine_->completion_fd() < 0;
  if (!look_again) {
    pollfd fds[] = {{socket_.fd(), POLLIN, 0},
                    {command_bell_.fd(), POLLIN, 0},
                    {helpers_.fd(), POLLIN, 0},
                    {channels_.fd(), POLLIN, 0},
                    {batches_.fd(), POLLIN, 0},
                    {engine_->completion_fd(), POLLIN, 0},
                    {meeting_ != nullptr ? meeting_->fd() : -1, POLLIN, 0}};
    const auto limit =
        must_poll ? std::chrono::nanoseconds(kPollPause) : std::chrono::nanoseconds(kIdleBeat);
    const timespec timeout{.tv_sec = 0, .tv_nsec = limit.count()};
    ::ppoll(fds, std::size(fds), &timeout, nullptr);
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) serve_control();
    if (fds[1].revents != 0) command_bell_.clear();
    if (fds[5].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto taken = ::read(engine_->completion_fd(), &count, sizeof count);
    }
    if (fds[4].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto taken = ::read(batches_.fd(), &count, sizeof count);
    }
    if (fds[6].revents != 0 && meeting_ != nullptr) meeting_->clear();
    if ((fds[1].revents | fds[4].revents | fds[5].revents | fds[6].revents) != 0)
      last_progress_ = SteadyClock::time();
  }
  commands_.cancel_sleep();
  if (meeting_ != nullptr) meeting_->cancel_sleep();
}

void DeviceHost::lose(const Error& error) {
  if (mode_ == Mode::lost) return;
  mode_ = Mode::lost;
  send({.kind = wire::ControlKind::fatal,
        .value = engine_->is_still_after(error) ? 1u : 0u,
        .code = static_cast<std::uint32_t>(error.code),
        .native = error.native},
       error.message);
}

}  // namespace troupe::host
