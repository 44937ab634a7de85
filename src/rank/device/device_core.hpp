#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/device.hpp>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/commands/index_check.hpp"
#include "rank/device/commands/preparer.hpp"
#include "rank/device/health/health_watch.hpp"
#include "rank/device/host/device_actor.hpp"
#include "rank/device/host/early_host.hpp"
#include "rank/device/kernels/kernel_modules.hpp"
#include "rank/device/memory/device_pools.hpp"
#include "rank/device/memory/loans.hpp"
#include "rank/device/recording/program_calls.hpp"

namespace troupe::rank_process {

/// Stands behind a Device: has the port, the pools, the modules of kernels, and the DeviceActor's
/// address.
class DeviceCore : public std::enable_shared_from_this<DeviceCore> {
 public:
  struct Options {
    DeviceSettings settings;
    FlightRecorder::Options flight;
    std::chrono::nanoseconds spin{0};  ///< how long waiters spin before they sleep
    bool replay = true;                ///< see Incarnations::move_to
    bool check_indices = false;        ///< see IndexCheck
    std::uint64_t slab_bytes = 64u << 20;
    std::uint64_t pinned_bytes = 64u << 20;
    std::uint64_t memory_limit = 0;
    std::uint32_t first_generation = 1;  ///< of buffers' contents, see BufferTable::begin_with
    KernelBuilder::Options kernels;
    std::string nvml;         ///< see HealthSource; empty: the driver's, where the engine has GPUs
    DeviceListener listener;  ///< empty: the device looks after itself
    /// A device host that may become the first one; nullptr: there is none.
    std::shared_ptr<EarlyHost> early = {};
  };

  /// Starts the first device host and waits until it is ready. Errors: what keeps it from starting.
  static Result<std::shared_ptr<DeviceCore>> open(ActorSystem& system, Options options, int rank);
  ~DeviceCore();

  [[nodiscard]] CommandPort& port() noexcept { return port_; }
  /// Where the program's calls go, recorded or not.
  [[nodiscard]] detail::Submitter& submitter() noexcept { return calls_; }
  [[nodiscard]] detail::Submitter& preparer() noexcept { return preparer_; }
  [[nodiscard]] KernelModules& modules() noexcept { return modules_; }
  [[nodiscard]] DevicePools& pools() noexcept { return pools_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Where the program's collectives go, and the epoch that they belong to.
  struct Collectives {
    detail::Submitter* submitter = nullptr;
    std::uint32_t epoch = 0;
  };
  /// Called with every run of a sequence that has collectives. Set before there are any.
  void set_collectives(std::function<Collectives()> look) { collectives_ = std::move(look); }
  [[nodiscard]] Collectives collectives() {
    return collectives_ ? collectives_() : Collectives{&port_, 0};
  }
  [[nodiscard]] FlightRecorder& flight() noexcept { return *flight_; }
  [[nodiscard]] Loans& loans() noexcept { return loans_; }
  [[nodiscard]] const ActorRef<DeviceActor>& actor() const noexcept { return actor_; }
  [[nodiscard]] const DeviceInfo& info() const noexcept { return info_; }
  [[nodiscard]] Result<std::vector<MemoryUse>> memory_use() const;
  [[nodiscard]] Result<GpuHealth> health() const { return health_->health(); }
  /// True: sequences run command by command, because somebody looks at each command.
  [[nodiscard]] bool runs_singly() const noexcept {
    return singly_.load(std::memory_order_relaxed) || silent_faults_.follows();
  }
  void run_singly(bool singly) noexcept { singly_ = singly; }
  [[nodiscard]] SilentFaults& silent_faults() noexcept { return silent_faults_; }
  /// As if the GPU had said so; returns once it is heard.
  void inject_health(const HealthEvent& event);
  /// How often the GPU has said what of its health.
  [[nodiscard]] const HealthLog& health_log() const noexcept { return health_log_; }
  [[nodiscard]] std::vector<OpenedLibrary> libraries() const;
  /// Sends the device's actor a message; an actor that is gone does not matter.
  template <class M>
  void tell(M message) {
    (void)actor_.tell(std::move(message));
  }
  /// Ends the device hosts; the device answers `stopped` from now on.
  void shut_down();

 private:
  DeviceCore(Options options, std::unique_ptr<FlightRecorder> flight, int rank);
  void watch_health();

  Options options_;
  int rank_;
  std::unique_ptr<FlightRecorder> flight_;
  CommandPort port_;
  Preparer preparer_{port_};
  std::function<Collectives()> collectives_;
  HealthLog health_log_;
  ActorRef<DeviceActor> actor_;
  DeviceInfo info_;
  std::shared_ptr<const HealthSource> health_;
  std::unique_ptr<HealthWatch> health_watch_;
  Loans loans_;
  DevicePools pools_;
  KernelModules modules_;
  IndexCheck index_check_{port_, port_};
  SilentFaults silent_faults_;
  std::atomic<bool> singly_ = false;
  ProgramCalls calls_{
      port_, options_.check_indices ? static_cast<detail::Submitter&>(index_check_) : port_,
      silent_faults_};
};

}  // namespace troupe::rank_process
