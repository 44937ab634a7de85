#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/device.hpp>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/commands/index_check.hpp"
#include "rank/device/commands/preparer.hpp"
#include "rank/device/health/health_watch.hpp"
#include "rank/device/host/device_actor.hpp"
#include "rank/device/kernels/kernel_builder.hpp"
#include "rank/device/memory/loans.hpp"
#include "rank/device/memory/memory_pool.hpp"
#include "rank/device/recording/program_calls.hpp"

namespace troupe {
class KernelModule;
namespace detail {
struct ModuleState;
}
namespace kernel {
struct Launch;
}
}  // namespace troupe

namespace troupe::rank_process {

/// What stands behind a Device: the port, the pools, and the DeviceActor's address.
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
    KernelBuilder::Options kernels;
    std::string nvml;         ///< see HealthSource; empty: the driver's, where the engine has GPUs
    DeviceListener listener;  ///< empty: the device looks after itself
  };

  /// Starts the first device host and waits until it is ready. Errors: what keeps it from starting.
  static Result<std::shared_ptr<DeviceCore>> open(ActorSystem& system, Options options, int rank);
  ~DeviceCore();

  [[nodiscard]] CommandPort& port() noexcept { return port_; }
  /// Where the program's calls go, recorded or not.
  [[nodiscard]] detail::Submitter& submitter() noexcept { return calls_; }
  [[nodiscard]] detail::Submitter& preparer() noexcept { return preparer_; }
  [[nodiscard]] KernelBuilder& builder() noexcept { return builder_; }
  /// Calls the function, which may block, beside the program.
  Future<KernelModule> make_kernels(
      std::function<Result<std::shared_ptr<detail::ModuleState>>(const Device&)> make);
  /// Carries out what another rank has asked for, with the module of this rank that was made from
  /// the same.
  Future<void> launch_for_other(detail::Submitter& submitter, const kernel::Launch& op,
                                bool repeatable, const Parts& parts);
  /// The program will run commands with these records again and again: whoever takes over prepares
  /// them.
  void prepare_others(const std::vector<std::vector<std::byte>>& records);
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
  /// Whether other ranks may name any of this device's buffers: a token was made of one.
  [[nodiscard]] bool has_tokens() const noexcept { return has_tokens_.load(); }
  [[nodiscard]] FlightRecorder& flight() noexcept { return *flight_; }
  [[nodiscard]] Loans& loans() noexcept { return loans_; }
  [[nodiscard]] const ActorRef<DeviceActor>& actor() const noexcept { return actor_; }
  [[nodiscard]] const DeviceInfo& info() const noexcept { return info_; }
  [[nodiscard]] Result<std::vector<MemoryUse>> memory_use() const;
  [[nodiscard]] Result<GpuHealth> health() const { return health_->health(); }
  /// As if the GPU had said so; returns once it is heard.
  void inject_health(const HealthEvent& event);
  /// How often the GPU has said what of its health.
  [[nodiscard]] const HealthLog& health_log() const noexcept { return health_log_; }
  [[nodiscard]] std::vector<OpenedLibrary> libraries() const;
  [[nodiscard]] std::uint64_t bytes_held() const { return slabs_.held(); }
  /// Sends the device's actor a message; an actor that is gone does not matter.
  template <class M>
  void tell(M message) {
    (void)actor_.tell(std::move(message));
  }
  /// Ends the device hosts; the device answers `stopped` from now on.
  void shut_down();

  /// Called with the region of a slab that is no more, by whatever thread dropped it; must not
  /// block. Set before there are transfers.
  void on_slab_dropped(std::function<void(std::uint32_t region)> listener) {
    const std::lock_guard lock(dropped_mutex_);
    slab_dropped_ = std::move(listener);
  }

  Result<detail::Allocation> allocate(std::uint64_t length, DType dtype);
  Result<detail::PinnedAllocation> allocate_pinned(std::uint64_t length, std::size_t element);
  /// Pinned memory that no device host has until map_apart(): for large pieces, whose mapping takes
  /// seconds and must be no part of a recovery. All commands that name it must have completed when
  /// it is let go.
  Result<detail::PinnedAllocation> allocate_apart(std::uint64_t bytes);
  /// Maps it in the present device host, beside its work. Errors: device_lost (there is none just
  /// now), out_of_memory, …
  Future<void> map_apart(const Operand& memory);
  Future<void> upload(std::span<const std::byte> source, const Operand& destination, DType dtype);
  /// What a fault cuts off is done again, unless the program is to go back anyway.
  Result<void> download(const Operand& source, std::span<std::byte> destination, DType dtype);

 private:
  void remember(const std::shared_ptr<detail::ModuleState>& module);
  Result<void> download_once(const Operand& source, std::span<std::byte> destination, DType dtype);
  class Lease;

  DeviceCore(Options options, std::unique_ptr<FlightRecorder> flight, int rank);
  void watch_health();
  Result<void> make_slab(std::uint32_t region, std::uint64_t bytes);
  Result<void> make_pinned(std::uint32_t region, std::uint64_t bytes);
  void drop_slab(std::uint32_t region);
  void drop_pinned(std::uint32_t region);
  void reclaim();

  Options options_;
  int rank_;
  std::unique_ptr<FlightRecorder> flight_;
  CommandPort port_;
  Preparer preparer_{port_};
  std::function<Collectives()> collectives_;
  std::atomic<bool> has_tokens_{false};
  HealthLog health_log_;
  ActorRef<DeviceActor> actor_;
  DeviceInfo info_;
  std::shared_ptr<const HealthSource> health_;
  std::unique_ptr<HealthWatch> health_watch_;
  std::mutex dropped_mutex_;
  std::function<void(std::uint32_t)> slab_dropped_;
  std::map<std::uint32_t, std::uint64_t> slab_bytes_;  ///< by region
  Loans loans_;
  MemoryPool slabs_;
  MemoryPool pinned_;
  std::mutex pinned_mutex_;
  std::map<std::uint32_t, std::shared_ptr<ipc::SharedMemory>> pinned_memory_;
  struct Resting {
    std::vector<std::uint64_t> users;  ///< once these are answered nothing names the range
    MemoryPool::Range range;
  };
  std::uint32_t next_apart_ = 0;
  std::vector<Resting> resting_;  ///< pinned ranges that were given back
  std::mutex modules_mutex_;
  std::vector<std::weak_ptr<detail::ModuleState>> modules_;  ///< that other ranks may launch from
  KernelBuilder builder_;
  IndexCheck index_check_{port_, port_};
  ProgramCalls calls_{
      port_, options_.check_indices ? static_cast<detail::Submitter&>(index_check_) : port_};
};

}  // namespace troupe::rank_process
