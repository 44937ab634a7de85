#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/wire/control.hpp"
#include "common/wire/host_options.hpp"
#include "device_host/core.hpp"
#include "device_host/formation/formation.hpp"
#include "device_host/intake/intake.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/libraries/preparations.hpp"
#include "device_host/memory/mappings.hpp"
#include "device_host/requests.hpp"
#include "device_host/sequences/runs.hpp"

namespace troupe::host {

/// The process (or thread) that owns one CUDA context on behalf of a rank.
///
/// One thread, the reactor, goes round: it has commands taken from the ring and queued on the
/// engine's queues in program order (Intake), answers the batches that are done (Batches), serves
/// the rank's messages, and stamps its heartbeat. It never blocks: what may take long runs on
/// helper threads, and a command whose library is being opened or is at work, or that would wait
/// until other ranks come, is set aside. It owns nothing that cannot be made again.
class DeviceHost {
 public:
  /// Takes the descriptors in `options`.
  static Result<std::unique_ptr<DeviceHost>> create(const wire::HostOptions& options);
  ~DeviceHost();

  /// Serves until told to end or until the rank is gone; returns the exit status.
  int run();

 private:
  DeviceHost(const wire::HostOptions& options, std::unique_ptr<Core> core,
             ipc::Doorbell channels_bell);

  /// A standby that stays alone prepares first.
  void say_ready_or_prepare();
  /// One round of the loop but for messages and sleep. True if anything changed.
  bool go_round();
  /// Answers what is done; during quiescence, sees whether all is drained. True if anything
  /// changed.
  bool complete();
  /// Loses the device if it is lost by what nobody answers. True if it is.
  bool look_for_loss();
  /// Waits for something to do: spins, then sleeps.
  void wait(TimePoint now);
  /// Tells the rank how the time is spent.
  void count_time(TimePoint now);
  void sleep(bool engine_busy);

  /// Serves what the rank says. True if it said anything.
  bool serve_rank();
  /// Gives the message to each part that has an on() for it.
  void handle(wire::FromRank message);
  void on(std::uint64_t request, const wire::to_host::Promote& promote);
  void on(std::uint64_t request, const wire::to_host::Quiesce&);
  void on(std::uint64_t request, const wire::to_host::Resume& resume);
  void on(std::uint64_t request, const wire::to_host::Probe&);
  void on(std::uint64_t request, const wire::to_host::ShutDown&);

  /// Commands on their way, and what has become of them.
  struct Commands {
    Commands(Core& core, Requests& requests, Libraries& libraries, Preparations& preparations,
             Mappings& mappings, Formation& formation, std::function<bool()> more_is_known);

    SetAside set_aside;
    Outcomes outcomes;
    SequenceRuns runs;
    OwnOperations own;
    Intake intake;
  };
  /// Requests that are answered by the loop.
  struct Pending {
    std::optional<std::uint64_t> probe;    ///< when the engine's probe has ended
    std::optional<std::uint64_t> quiesce;  ///< when all lanes are drained
  };
  /// Since when the device has had nothing to do, and whether it waits for other ranks.
  struct Rest {
    std::atomic<std::uint64_t>* counter = nullptr;  ///< of the rank's; nullptr: it has
    TimePoint since{};
  };

  std::unique_ptr<Core> core_;
  Requests requests_;
  Libraries libraries_;
  Preparations preparations_;
  Mappings mappings_;
  Formation formation_;
  Commands commands_;
  Pending pending_;
  TimePoint last_progress_{};
  Rest rest_;
};

}  // namespace troupe::host
