#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "common/ipc/doorbell.hpp"
#include "common/wire/control.hpp"
#include "rank/device/commands/command_port.hpp"
#include "rank/device/host/host_link.hpp"

namespace troupe::rank_process {

/// The thread that sleeps on all descriptors of a rank's device hosts: control sockets, process
/// ends, reply bells. It drains replies when no waiting thread does, and hands everything else on.
class Watcher {
 public:
  struct Handlers {
    std::function<void(std::uint64_t link, wire::FromDeviceHost)> message;
    std::function<void(std::uint64_t link)> closed;  ///< the socket's other end is gone
    std::function<void(std::uint64_t link)> exited;  ///< the process has ended
  };

  static Result<std::unique_ptr<Watcher>> start(CommandPort& port, Handlers handlers);
  ~Watcher();

  /// From now on the link is watched; any thread. Call after it was spawned.
  void add(std::shared_ptr<HostLink> link);
  /// Its wrapper has ended, the host has not: `exited` comes again when it has.
  void await_host(const HostLink& link);
  /// No more events of the link but those on their way.
  void remove(std::uint64_t link);

 private:
  enum Source : std::uint64_t { socket, process, bell, host };

  Watcher(CommandPort& port, Handlers handlers, UniqueFd epoll, ipc::Doorbell wake);
  void run();
  void serve(std::uint64_t key);
  void read_socket(const std::shared_ptr<HostLink>& link);

  CommandPort* port_;
  Handlers handlers_;
  UniqueFd epoll_;
  ipc::Doorbell wake_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<HostLink>> links_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace troupe::rank_process
