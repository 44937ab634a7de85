#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actor/actor.hpp>
#include <troupe/actor/restart_budget.hpp>
#include <troupe/device.hpp>

#include "common/ipc/shared_memory.hpp"
#include "common/wire/control.hpp"
#include "common/wire/formation.hpp"
#include "rank/device/command_port.hpp"
#include "rank/device/device_events.hpp"
#include "rank/device/host_link.hpp"
#include "rank/device/tuning_file.hpp"
#include "rank/device/warm_set.hpp"
#include "rank/device/watcher.hpp"

namespace troupe::rank_process {

/// What a DeviceActor needs beside its messages; outlives it.
struct DeviceSettings {
  HostLaunch launch;
  bool standby = true;
  /// It will be told when its world is active: no standby is raised before.
  bool in_world = false;
  std::chrono::nanoseconds heartbeat_timeout = std::chrono::seconds(3);
  std::chrono::nanoseconds op_timeout{0};  ///< 0: none
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  FlightRecorder* flight = nullptr;  ///< dumps what led to a fault
  std::string tuning_file;           ///< what measurements have found; empty: it is not kept
  int restart_budget = 3;
  std::chrono::nanoseconds restart_window = std::chrono::seconds(60);
  /// When the budget is spent the world is asked to end the run, and gets one device host more to
  /// do it with.
  bool asks_to_stop = false;
};

/// Messages of the DeviceActor.
namespace device_message {
struct FromHost {
  std::uint64_t link;
  std::shared_ptr<wire::ControlMessage> message;
};
struct HostClosed {
  std::uint64_t link;
};
struct HostExited {
  std::uint64_t link;
};
struct Look {};  ///< time to look at heartbeats and deadlines
struct Listen {
  DeviceListener listener;  ///< from now on faults are its business: nothing is replaced unasked
};
struct MakeSlab {
  std::uint32_t region;
  std::uint64_t bytes;
  std::shared_ptr<Promise<void>> made;
};
struct MapPinned {
  std::uint32_t region;
  std::shared_ptr<ipc::SharedMemory> memory;
  std::shared_ptr<Promise<void>> mapped;
  /// Only in the present host, once; a host that follows it is not given the memory. Fails with
  /// device_lost where there is no host just now.
  bool apart = false;
};
struct DropRegion {
  std::uint32_t region;
};
/// A slab of this rank, for another rank of the node to map.
struct SharedSlab {
  std::shared_ptr<UniqueFd> fd;
  std::uint64_t serial = 0;  ///< unlike a region, never used again
  std::uint64_t bytes = 0;
};
struct ShareSlab {
  std::uint32_t region;
  std::shared_ptr<Promise<SharedSlab>> shared;
};
/// Maps a slab of another rank; DropRegion ends it.
struct MapForeign {
  std::uint32_t region;
  std::shared_ptr<UniqueFd> fd;
  std::uint64_t bytes;
  std::shared_ptr<Promise<void>> mapped;
};
/// What has taken how much of the device's memory.
struct AskMemory {
  std::shared_ptr<Promise<std::vector<MemoryUse>>> told;
};
/// The libraries that are open.
struct AskLibraries {
  std::shared_ptr<Promise<std::vector<OpenedLibrary>>> told;
};
/// The program will run such commands again and again: their wire::kind_key() and a record of each.
struct KindsRecur {
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> kinds;
};
struct Halt {
  std::uint32_t round;
};
struct Quiesce {
  std::uint32_t round;
};
struct Replace {
  std::uint32_t round;
};
struct Promote {
  std::uint32_t round, formation;  ///< the standby of this formation takes over, fault or no fault
};
/// What a communicator is formed for: a round of a re-formation, or (formation != 0) a standby
/// world; then it is the standby that takes part.
struct Purpose {
  std::uint32_t round, formation;
};
using Blobs = std::vector<std::vector<std::byte>>;
struct Contribute {
  Purpose purpose;
  std::int32_t rank, size;
  std::vector<wire::FormingGroup> groups;  ///< this rank's
};
struct Connect {
  Purpose purpose;
  std::int32_t rank, size;
  std::shared_ptr<const Blobs> contributions;
  std::vector<wire::FormingGroup> groups;  ///< those to form
};
/// One group, beside the work of the device host that serves. Always answered; device_lost where
/// there is none just now.
struct ContributeGroup {
  std::uint32_t number;
  std::int32_t rank, size;
  std::shared_ptr<Promise<std::vector<std::byte>>> contributed;
};
struct ConnectGroup {
  std::uint32_t number;
  std::int32_t rank, size;
  std::shared_ptr<const Blobs> contributions;
  std::shared_ptr<Promise<void>> connected;
};
/// No rank uses the group any more.
struct DropGroup {
  std::uint32_t number;
};
struct Suffer {
  std::uint32_t kind;  ///< memory::FaultKind, at once
};
struct WorldActive {};  ///< the world is formed again: time to raise a new standby
struct Revive {};       ///< a device that was given up: try once more; a success is reported
struct ShutDown {
  using Reply = bool;
};
}  // namespace device_message

/// The stable address of a rank's GPU: spawns and watches its device hosts, keeps what must outlive
/// them, and puts a new one in the place of a dead one.
///
/// It owns the slabs' descriptors and the pinned segments. A dead or lost host is seen by the end
/// of its socket or its process, by its own word (`fatal`), by a heartbeat that stands still, or by
/// an operation past its deadline. Then the world is told, and orders halt, quiesce and replace;
/// without a world (no listener) it replaces at once. Replacing is: choose a successor (the
/// standby), kill the old host and reap it, move the commands to the successor's ring, let it map
/// all memory, promote it. The successor may take part in forming a communicator before the old
/// host is reaped, which takes the driver a while: connect is reported as done when both have
/// happened.
///
/// A standby may belong to a communicator already, formed ahead of time with the standbys of the
/// other ranks. Promotion then replaces the active host even if it is healthy: drained, it hands
/// over its commands and memory and is killed.
class DeviceActor
    : public Actor<DeviceActor, device_message::FromHost, device_message::HostClosed,
                   device_message::HostExited, device_message::Look, device_message::Listen,
                   device_message::MakeSlab, device_message::MapPinned, device_message::DropRegion,
                   device_message::ShareSlab, device_message::MapForeign, device_message::AskMemory,
                   device_message::AskLibraries, device_message::KindsRecur, device_message::Halt,
                   device_message::Quiesce, device_message::Replace, device_message::Promote,
                   device_message::Contribute, device_message::Connect,
                   device_message::ContributeGroup, device_message::ConnectGroup,
                   device_message::DropGroup, device_message::Suffer, device_message::WorldActive,
                   device_message::Revive, device_message::ShutDown> {
 public:
  /// `described` is resolved with the JSON description once the first host is ready, or with its
  /// error.
  DeviceActor(DeviceSettings settings, CommandPort* port,
              std::shared_ptr<Promise<std::string>> described);

  void on_start() override;
  void on_stop(const Error& reason) noexcept override;

  void on(device_message::FromHost from);
  void on(device_message::HostClosed closed);
  void on(device_message::HostExited exited);
  void on(device_message::Look);
  void on(device_message::Listen listen);
  void on(device_message::MakeSlab make);
  void on(device_message::MapPinned map);
  void on(device_message::DropRegion drop);
  void on(device_message::ShareSlab share);
  void on(device_message::MapForeign map);
  void on(const device_message::AskMemory& ask);
  void on(const device_message::AskLibraries& ask);
  void on(device_message::KindsRecur recur);
  void on(device_message::Halt order);
  void on(device_message::Quiesce order);
  void on(device_message::Replace order);
  void on(device_message::Promote order);
  void on(device_message::Contribute order);
  void on(device_message::Connect order);
  void on(device_message::ContributeGroup order);
  void on(device_message::ConnectGroup order);
  void on(device_message::DropGroup order);
  void on(device_message::Suffer suffer);
  void on(device_message::WorldActive);
  void on(device_message::Revive);
  bool on(device_message::ShutDown);

 private:
  static constexpr auto kLookEvery = std::chrono::milliseconds(100);  ///< at deadlines

  /// One device host and how far it has come.
  struct Incarnation {
    std::shared_ptr<HostLink> link;
    TimePoint spawned_at{};
    bool ready = false;
    bool promoting = false;
    bool serving = false;
    bool exited = false;
    bool warming = false;                ///< it prepares what the hosts before it have run
    std::vector<std::uint32_t> apart{};  ///< regions that it was given by MapPinned::apart
    std::uint32_t formation = 0;  ///< of the standby world whose communicator it has; 0: none
  };
  using Answer = std::function<void(Result<wire::ControlMessage>)>;
  struct Request {
    std::uint64_t link;
    Answer answer;
  };

  Result<Incarnation> make_incarnation(bool spawn_as_standby);
  Result<void> spawn(Incarnation& incarnation, bool standby);
  void raise_standby();
  void discard(Incarnation& incarnation);
  [[nodiscard]] Incarnation* find(std::uint64_t link);
  /// The host that communicators are formed with: the one that serves or will.
  [[nodiscard]] Incarnation* next_in_line();
  [[nodiscard]] Incarnation* host_for(const device_message::Purpose& purpose);

  void fault(DeviceFault fault);
  void fault(std::string kind, Error error);
  void lose_standby(const Error& error);
  void lose_successor(const Error& error);
  static Error down(const Error& cause);
  void fail_requests(std::uint64_t link, const Error& error);
  void stop(DeviceDone::Order order, std::uint32_t round);
  void report_stopped();
  void advance_replacement();
  bool choose_successor();
  bool spend_restart();
  bool ask_to_stop();
  void hand_over();
  void revived(bool ready);
  void bury();
  void promote();
  void serve();
  void report_serving();
  void report_formed(DeviceDone::Order order, const device_message::Purpose& purpose,
                     Result<std::vector<std::byte>> outcome);
  void report_standby();
  /// A device host has opened a library: those that may follow it open it ahead of time.
  void library_opened(const std::string& told);
  void kind_recurs(const wire::ControlMessage& told);
  void plans_made(const wire::ControlMessage& told);
  /// Hands on what hosts before it have used, all of it or what is new.
  void warm_up(Incarnation& host, const WarmSet& what);
  void warm_up_others(const WarmSet& what);
  /// It has ended while it prepared: perhaps of that.
  void forget_warm_set(const Incarnation& host);
  /// Asks the active host for the free memory, before the first standby is raised and after; calls
  /// `then` in the end.
  void measure_standby(bool raised, const std::function<void()>& then);
  void give_up(const Error& error);

  void request(const Incarnation& to, wire::Control head, int fd, Answer answer);
  void send_memory(const Incarnation& incarnation);
  /// Memory that comes up now is for the active host, which has had all there was; else the next
  /// one gets it on promotion.
  [[nodiscard]] bool takes_memory() const { return active_->promoting && !fault_; }
  void report(DeviceEvent event);
  void report_done(DeviceDone::Order order, std::uint32_t round,
                   Result<std::vector<std::byte>> outcome = std::vector<std::byte>{});
  [[nodiscard]] std::string fault_kind(const std::string& ending) const;
  void look_at_deadlines();
  void look_at_operations();
  /// The flight recorder's dump of a disturbance: the first that is asked for shows what led to it.
  void record_disturbance(const std::string& what);

  DeviceSettings settings_;
  CommandPort* port_;
  std::shared_ptr<Promise<std::string>> described_;
  std::unique_ptr<Watcher> watcher_;
  DeviceListener listener_;
  WarmSet warm_;
  TuningFile tunings_;
  std::map<std::string, OpenedLibrary> opened_;  ///< by name, as a device host has said last
  RestartBudget budget_;
  bool asked_to_stop_ = false;  ///< the budget was spent, and what was left for the end is too
  std::uint64_t next_link_ = 1;
  std::uint64_t next_request_ = 1;

  std::optional<Incarnation> active_, standby_;
  std::optional<Incarnation> successor_;  ///< of an active host that is faulty and not buried yet
  std::optional<DeviceFault> fault_;      ///< of the active host
  std::vector<Incarnation> retired_;      ///< have handed over in good health; end once all is done
  std::optional<Error> failed_;           ///< given up
  bool reviving_ = false;                 ///< a new host starts in spite of it
  std::optional<std::uint32_t>
      replacing_;  ///< the round that ordered it, until a successor is ready
  std::optional<std::uint32_t>
      connected_;  ///< the round whose communicator is formed, until its host serves
  std::optional<std::uint32_t> promoting_;  ///< the round that ordered promotion, until it serves
  bool world_active_ = false;               ///< as far as this rank has heard
  struct Stopping {
    DeviceDone::Order order;  ///< halt or quiesce
    std::uint32_t round;
  };
  std::optional<Stopping> stopping_;  ///< what the host has yet to answer
  TimePoint stopping_since_{};
  bool disturbed_ = false;  ///< since a fault or a quiesce, until all is well again
  bool first_ready_ = false;
  TimePoint standby_not_before_{};
  /// Bytes that nobody but slabs had taken before the first standby came up.
  std::optional<std::uint64_t> before_standby_;
  std::uint64_t standby_bytes_ = 0;  ///< that a standby takes; 0: not known
  bool standby_measured_ = false;    ///< asked for, with the first one

  struct SlabRequest {
    std::uint64_t bytes;
    std::shared_ptr<Promise<void>> made;
  };
  struct SlabEntry {
    UniqueFd fd;
    std::uint64_t bytes;
    std::uint64_t serial;
  };
  struct ForeignSlab {
    std::shared_ptr<UniqueFd> fd;
    std::uint64_t bytes;
  };
  std::uint64_t next_serial_ = 1;
  std::map<std::uint32_t, SlabEntry> slabs_;
  std::map<std::uint32_t, ForeignSlab> foreign_;  ///< of other ranks
  std::map<std::uint32_t, std::shared_ptr<ipc::SharedMemory>> pinned_;
  std::map<std::uint32_t, SlabRequest> wanted_slabs_;  ///< asked for, not made yet
  std::map<std::uint64_t, Request> requests_;

  RestartBudget overdue_;  ///< operations that may outlast op_timeout
  /// For op_timeout: the oldest unanswered one at …
  std::uint64_t watched_ticket_ = ~std::uint64_t{0};
  TimePoint watched_since_{};  ///< … this time
};

}  // namespace troupe::rank_process
