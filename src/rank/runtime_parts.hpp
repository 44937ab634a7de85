#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <troupe/actor.hpp>
#include <troupe/runtime.hpp>

#include "common/actor/cpu_binding.hpp"
#include "rank/net/session.hpp"
#include "rank/observe.hpp"
#include "rank/world/world_core.hpp"

namespace troupe {

/// How long a rank that has failed waits for others to end as well.
inline constexpr std::chrono::seconds kEndPatience{10};

/// The parts of a runtime, which begin and end in the order of their dependencies.
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

  ~Parts();
};

}  // namespace troupe
