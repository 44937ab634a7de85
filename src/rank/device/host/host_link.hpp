#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <troupe/clock.hpp>

#include "common/ipc/doorbell.hpp"
#include "common/ipc/process.hpp"
#include "common/ipc/ring.hpp"
#include "common/ipc/shared_memory.hpp"
#include "common/ipc/socket.hpp"
#include "common/wire/host_options.hpp"
#include "common/wire/port_layout.hpp"

namespace troupe::rank_process {

/// Descriptors of the rank that must be free while nothing is being replaced: a device host takes
/// six and five more while it is spawned; in a recovery a successor and a standby are started, and
/// their communicator is formed, while dumps and saved states are written.
inline constexpr unsigned kReservedDescriptors = 32;

/// How device hosts are started.
struct HostLaunch {
  std::string program;      ///< troupe-device-host
  std::string module;       ///< the engine module it loads
  bool in_process = false;  ///< isolation = thread
  int device = 0;
  int threads = 1;
  std::uint64_t memory_limit = 0;
  wire::Completion completion = wire::Completion::event;
  wire::Standby standby = wire::Standby::forming;  ///< what standbys are
  std::uint32_t spin_us = 0;
  bool other_hosts = false;             ///< some ranks of the job are on other hosts
  int channels = 0;                     ///< ends of channels (--token-path nccl) that it may have
  bool reproducible = false;            ///< sums over ranks always have the same bits
  bool check_products = false;          ///< products are looked at by checksums
  bool register_buffers = false;        ///< slabs are registered with communicators
  std::string interface;                ///< network of a cpu engine's collectives
  std::string library_folders;          ///< of libraries outside of troupe, separated by ':'
  std::uint64_t ring_bytes = 4u << 20;  ///< of the command ring, a power of two
  bool tells_at_end = false;            ///< the host has something to tell when it ends
  int flight_fd = -1;                   ///< the flight recorder's segment, owned by who launches

  friend bool operator==(const HostLaunch&, const HostLaunch&) = default;
};

/// The rank's end of one incarnation of a device host: its rings (there from the start, so that
/// commands can queue before the process exists), its socket, its process. Made and spawned by one
/// thread.
class HostLink {
 public:
  static Result<std::shared_ptr<HostLink>> create(const HostLaunch& launch, std::uint64_t id);
  ~HostLink();

  /// Starts the process (or thread). `standby`: it prepares everything ahead of promotion.
  Result<void> spawn(bool standby);
  [[nodiscard]] bool spawned() const noexcept { return spawned_; }

  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] wire::PortHeader& header() const noexcept {
    return *reinterpret_cast<wire::PortHeader*>(segment_.data());
  }
  [[nodiscard]] ipc::RingProducer producer() const;
  [[nodiscard]] ipc::RingConsumer replies() const;
  /// A reader of the commands that the host has not taken, for when it takes no more.
  [[nodiscard]] ipc::RingConsumer untaken() const;
  /// A reader of all commands that are in the ring still, taken or not: `from` holds the position
  /// of the first one as its head.
  [[nodiscard]] ipc::RingConsumer commands(ipc::RingControl& from) const;
  [[nodiscard]] const ipc::Doorbell& command_bell() const noexcept { return command_bell_; }
  [[nodiscard]] const ipc::Doorbell& reply_bell() const noexcept { return reply_bell_; }
  [[nodiscard]] const ipc::Socket& socket() const noexcept { return socket_; }
  /// Readable once the process has ended; -1 for a thread.
  [[nodiscard]] int pidfd() const noexcept { return child_.pidfd(); }
  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }

  /// Calls `died`, once and on a thread of the link, as soon as the host is dying; that is before
  /// its process has ended. Once the host is ready; not for a thread.
  void watch_life(std::function<void()> died);

  void kill() noexcept;
  /// How long a host or its wrapper has to end by itself.
  static constexpr std::chrono::seconds kOwnEnd{20};
  /// Ends a host that has served to the end of the program: at once, if it has nothing to put away.
  /// One that tells something at its end, or runs in a wrapper, as which a profiler or debugger
  /// writes its results then, is asked to end; await_end() kills what has not ended `since` +
  /// kOwnEnd.
  void dismiss() noexcept;
  void await_end(TimePoint since) noexcept;
  /// How its process has ended: it is reaped then. Nothing: it, or behind a wrapper the host, is
  /// still there. Never waits, but for a thread.
  std::optional<std::string> try_reap();
  /// Behind a wrapper: readable once the host has ended; -1: it is no process beside the one that
  /// was started, or is not known yet.
  [[nodiscard]] int host_pidfd() const noexcept { return host_pidfd_.get(); }
  /// Behind a wrapper: the host's process is still there.
  [[nodiscard]] bool host_is_there() const noexcept;

 private:
  HostLink() = default;
  void write_settings(bool standby);
  [[nodiscard]] bool ends_itself() const noexcept {
    return host_pidfd_ || (launch_.tells_at_end && !launch_.in_process);
  }
  /// Removes the names of what NCCL had in shared memory there: they would outlive the process,
  /// which mostly ends by a signal.
  void remove_names() noexcept;

  HostLaunch launch_;
  std::uint64_t id_ = 0;
  bool spawned_ = false;
  ipc::SharedMemory segment_;
  ipc::Doorbell command_bell_, reply_bell_;
  ipc::Socket socket_, host_socket_;
  ipc::ChildProcess child_;  ///< the host, or the wrapper that runs it
  UniqueFd host_pidfd_;      ///< behind a wrapper: the host, once it is ready
  std::thread thread_;       ///< isolation = thread
  std::atomic<bool> watching_{true};
  std::thread life_watch_;
};

}  // namespace troupe::rank_process
