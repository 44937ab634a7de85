#pragma once

#include <memory>

#include "common/ipc/doorbell.hpp"
#include "common/wire/host_options.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/engine/tracing.hpp"
#include "device_host/flight_log.hpp"
#include "device_host/helpers.hpp"
#include "device_host/lanes/batches.hpp"
#include "device_host/lanes/lanes.hpp"
#include "device_host/life.hpp"
#include "device_host/port.hpp"
#include "device_host/rank_line.hpp"
#include "device_host/replies.hpp"

namespace troupe::host {

/// Says how far a command has come.
enum class Step {
  queued,   ///< it is on a queue, set aside or answered: whoever had it has it no more
  blocked,  ///< it stays where it is, and is tried again
  ended     ///< nothing more is issued
};

/// Holds what all parts of a device host work with, and outlives them.
struct Core {
  /// Takes the descriptors of `options` but that of the segment.
  static Result<std::unique_ptr<Core>> make(const wire::HostOptions& options, Port port);

  Core(const wire::HostOptions& options, Port port, FlightLog flight, ipc::Doorbell batches_bell,
       ipc::Doorbell helpers_bell, std::unique_ptr<Engine> engine);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] const wire::HostSettings& settings() const { return port.settings(); }
  /// From here on the command was given to the GPU.
  void note_issued(const wire::CommandHeader& command) {
    port.note_taken(command.ticket);
    flight.issued(command.ticket, command.opcode);
  }
  /// True if commands wait on the device for other ranks: collectives of several hosts, and what
  /// goes over channels.
  [[nodiscard]] bool waits_on_device() const {
    return settings().other_hosts != 0 || settings().channels != 0;
  }

  Port port;
  FlightLog flight;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Tracing> tracing;  ///< nullptr: nobody wants to see what is given to the engine
  ipc::Doorbell command_bell;        ///< rung by the rank
  RankLine rank;
  Replies replies;
  Life life;
  Lanes lanes;
  Batches batches;
  /// Something has changed since the commands that are set aside were offered last.
  bool set_aside_due = false;
  Helpers helpers;  // Last: its threads use the rest.
};

}  // namespace troupe::host
