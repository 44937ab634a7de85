#include "rank/device/host/host_link.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/wire/control.hpp"

namespace troupe::rank_process {
namespace {

constexpr std::uint64_t kReplyRingBytes = 1u << 20;
/// How long a link that is given up may wait for the thread that watches a host which does not die.
constexpr auto kLifeWatch = std::chrono::milliseconds(500);

/// The variables of a job's environment that the device host must not see: it is no MPI process.
const std::vector<std::string> kMpiVariables = {"OMPI_", "PMIX_", "PMI_",   "PRTE_",
                                                "MPI_",  "MV2_",  "MPICH_", "I_MPI_"};

}  // namespace

Result<std::shared_ptr<HostLink>> HostLink::create(const HostLaunch& launch, std::uint64_t id) {
  auto segment = ipc::SharedMemory::create("troupe-port",
                                           wire::port_bytes(launch.ring_bytes, kReplyRingBytes));
  if (!segment) return segment.error();
  auto command_bell = ipc::Doorbell::create();
  if (!command_bell) return command_bell.error();
  auto reply_bell = ipc::Doorbell::create();
  if (!reply_bell) return reply_bell.error();
  const auto stamps = wire::library_stamps();
  if (!stamps) return stamps.error();
  auto sockets = ipc::Socket::make_pair();
  if (!sockets) return sockets.error();
  std::shared_ptr<HostLink> link(new HostLink);
  link->launch_ = launch;
  link->id_ = id;
  link->segment_ = std::move(*segment);
  link->command_bell_ = std::move(*command_bell);
  link->reply_bell_ = std::move(*reply_bell);
  link->socket_ = std::move(sockets->first);
  link->host_socket_ = std::move(sockets->second);
  auto& header = link->header();
  header.version = wire::kPortVersion;
  header.libraries = *stamps;
  header.life.init();
  header.command_capacity = launch.ring_bytes;
  header.reply_capacity = kReplyRingBytes;
  return link;
}

HostLink::~HostLink() {
  watching_.store(false);
  if (life_watch_.joinable()) life_watch_.join();
  if (thread_.joinable()) {
    socket_.close();  // its reactor ends when the rank's end is gone
    thread_.join();
  }
}

void HostLink::write_settings(bool standby) {
  wire::HostSettings settings{.device = launch_.device,
                              .threads = launch_.threads,
                              .standby = standby ? launch_.standby : wire::Standby::no,
                              .completion = launch_.completion,
                              .memory_limit = launch_.memory_limit,
                              .spin_us = launch_.spin_us,
                              .channels = launch_.channels,
                              .other_hosts = launch_.other_hosts,
                              .reproducible = launch_.reproducible,
                              .register_buffers = launch_.register_buffers,
                              .check_products = launch_.check_products,
                              .in_process = launch_.in_process};
  check(launch_.interface.size() < settings.interface.size(), "HostLaunch: interface is too long");
  launch_.interface.copy(settings.interface.data(), settings.interface.size() - 1);
  header().settings = settings;
}

Result<void> HostLink::spawn(bool standby) {
  write_settings(standby);
  if (launch_.in_process) {
    void* module = ::dlopen(launch_.module.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) return Error{Errc::io, 0, ::dlerror()};
    const auto run = reinterpret_cast<wire::RunFunction>(::dlsym(module, wire::kRunSymbol));
    if (run == nullptr) return Error{Errc::io, 0, launch_.module + " is not an engine module"};
    wire::HostOptions host_options;
    host_options.library_folders = launch_.library_folders.c_str();
    host_options.segment_fd = ::fcntl(segment_.fd(), F_DUPFD_CLOEXEC, 0);
    host_options.command_bell_fd = ::fcntl(command_bell_.fd(), F_DUPFD_CLOEXEC, 0);
    host_options.reply_bell_fd = ::fcntl(reply_bell_.fd(), F_DUPFD_CLOEXEC, 0);
    host_options.flight_fd = ::fcntl(launch_.flight_fd, F_DUPFD_CLOEXEC, 0);
    host_options.socket_fd = host_socket_.release();
    thread_ = std::thread([run, host_options] { run(&host_options); });
    spawned_ = true;
    return {};
  }
  ipc::SpawnOptions spawn;
  spawn.program = launch_.program;
  spawn.arguments = {launch_.module, std::to_string(::getpid()), launch_.library_folders};
  spawn.strip_environment = kMpiVariables;
  spawn.descriptors = {segment_.fd(), command_bell_.fd(), reply_bell_.fd(), host_socket_.fd(),
                       launch_.flight_fd};
  spawn.blocks_job_signals = true;
  auto child = ipc::ChildProcess::spawn(spawn);
  if (!child) return child.error();
  child_ = std::move(*child);
  host_socket_.close();
  spawned_ = true;
  return {};
}

void HostLink::watch_life(std::function<void()> died) {
  if (launch_.in_process) return;
  const auto host = header().host_pid.load();
  if (host > 0 && host != child_.pid())
    host_pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, host, 0)));
  life_watch_ = std::thread([this, died = std::move(died)] {
    while (watching_.load()) {
      if (header().life.wait_for_end(kLifeWatch) == ipc::LifeLock::Wait::died) return died();
    }
  });
}

ipc::RingProducer HostLink::producer() const {
  auto& head = header();
  return {&head.command, segment_.data() + wire::kPortDataOffset, launch_.ring_bytes};
}

ipc::RingConsumer HostLink::replies() const {
  auto& head = header();
  return {&head.reply, segment_.data() + wire::kPortDataOffset + launch_.ring_bytes,
          kReplyRingBytes};
}

ipc::RingConsumer HostLink::untaken() const {
  auto& head = header();
  return {&head.command, segment_.data() + wire::kPortDataOffset, launch_.ring_bytes};
}

ipc::RingConsumer HostLink::commands(ipc::RingControl& from) const {
  return {&from, segment_.data() + wire::kPortDataOffset, launch_.ring_bytes};
}

void HostLink::remove_names() noexcept {
  for (const auto& path : header().shm_names.paths()) ::unlink(path.c_str());
}

void HostLink::kill() noexcept {
  child_.kill();
  remove_names();
}

void HostLink::dismiss() noexcept {
  if (!ends_itself() || !wire::send_control(socket_, wire::to_host::ShutDown{}).ok()) kill();
}

void HostLink::await_end(TimePoint since) noexcept {
  if (!ends_itself()) return;
  pollfd end{child_.pidfd(), POLLIN, 0};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(since + kOwnEnd -
                                                                            SteadyClock::time());
    const int ended = ::poll(&end, 1, std::max(0, static_cast<int>(left.count())));
    if (ended >= 0 || errno != EINTR) break;
  }
  kill();
}

bool HostLink::host_is_there() const noexcept {
  pollfd end{host_pidfd_.get(), POLLIN, 0};
  return host_pidfd_ && ::poll(&end, 1, 0) == 0;
}

std::optional<std::string> HostLink::try_reap() {
  if (launch_.in_process) {
    if (thread_.joinable()) thread_.join();
    return "thread ended";
  }
  if (host_is_there()) return std::nullopt;  // it dies with the wrapper, and may be at it
  auto ending = child_.try_reap();
  if (ending) remove_names();
  return ending;
}

}  // namespace troupe::rank_process
