#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/host/host_link.hpp"
#include "rank/device/host/host_table.hpp"
#include "rank/device/host/watcher.hpp"

namespace troupe::rank_process {

/// The processes of a rank's device hosts: started, watched, and reaped some time after they have
/// been left. The DeviceActor's turns.
class HostLinks {
 public:
  using Link = std::shared_ptr<HostLink>;

  explicit HostLinks(CommandPort& port) : port_(port) {}

  /// Begins to watch; what is seen goes to the handlers, on a thread of their own.
  Result<void> start(Watcher::Handlers handlers);
  /// Starts the process of a new link, and watches it.
  Result<void> spawn(Link link, bool standby);
  /// One that has been spawned before.
  void adopt(Link link);

  [[nodiscard]] const Link& at(HostId host) const { return links_.at(host); }
  /// nullptr: nullopt.
  [[nodiscard]] Link find(std::optional<HostId> host) const;
  /// nullptr: the host has been left, or never was.
  [[nodiscard]] Link known(HostId host) const;
  [[nodiscard]] std::vector<Link> of(const std::vector<HostId>& hosts) const;
  [[nodiscard]] std::size_t count() const noexcept { return links_.size(); }
  /// The reason for its end that the host has left behind; mostly empty.
  [[nodiscard]] std::string last_words(HostId host) const;

  /// A process has ended. True: it was the wrapper of a host that is there still, whose end will be
  /// told, too.
  bool was_wrapper(HostId host);
  /// The process has ended, or is killed and ends soon. Nothing waits for that: under load, or with
  /// much memory to give back, it may take long.
  void leave(HostId host);
  void reap();
  /// No host that was left is still ending.
  [[nodiscard]] bool all_reaped() const noexcept { return ending_.empty(); }

  /// Ends a host together with the program, in good order.
  void dismiss(HostId host);
  void await_dismissed();
  /// Ends all, and watches no more.
  void clear() noexcept;

 private:
  void add(Link link);

  CommandPort& port_;
  std::unique_ptr<Watcher> watcher_;
  std::map<HostId, Link> links_;  ///< of the hosts that the protocol knows
  std::vector<Link> dismissed_;
  std::vector<Link> ending_;  ///< of hosts that were left; not reaped yet
};

}  // namespace troupe::rank_process
