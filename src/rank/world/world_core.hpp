#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/world.hpp>

#include "common/actor/actor_system.hpp"
#include "rank/device/device_core.hpp"
#include "rank/net/mpi_session.hpp"
#include "rank/net/mpi_transport.hpp"
#include "rank/world/member.hpp"
#include "rank/world/supervisor.hpp"
#include "rank/world/token_router.hpp"

namespace troupe::rank {

class WorldActor;

/// Where the program's thread and the WorldActor meet: what the world is at, what the program is
/// asked to do.
class WorldCore {
 public:
  struct Options {
    std::chrono::nanoseconds phase_timeout = std::chrono::seconds(30);
    bool standby_world = true;  ///< standbys form a communicator ahead of time
    TokenRouter::Options tokens;
  };

  /// Forms the world: returns once it is active. All ranks call it. The device must have its
  /// listener set to `listener()`.
  static Result<std::shared_ptr<WorldCore>> open(ActorSystem& system, MpiSession& mpi,
                                                 std::shared_ptr<DeviceCore> device,
                                                 Options options);
  /// Waits for all ranks to leave.
  ~WorldCore();

  [[nodiscard]] MpiSession& mpi() const noexcept { return *mpi_; }
  [[nodiscard]] TokenRouter& tokens() const noexcept { return *tokens_; }
  [[nodiscard]] Epoch epoch() const noexcept {
    return Epoch(program_epoch_.load(std::memory_order_acquire));
  }
  /// Tells the WorldActor of the device's fate; any thread.
  void device_event(DeviceEvent event);

  // The program's thread.

  Result<Epoch> wait_active();
  void run(Checkpoint& checkpoint, const std::function<Step(std::int64_t)>& step,
           const RunOptions& options);
  [[nodiscard]] std::vector<Recovery> recoveries() const;
  void inject_in_phase(memory::FaultKind kind, Phase phase);

 private:
  friend class WorldActor;

  WorldCore(MpiSession& mpi, std::shared_ptr<DeviceCore> device)
      : mpi_(&mpi), device_(std::move(device)) {}

  // The WorldActor's side.
  void close();
  void ask_restore(std::uint32_t round, std::int64_t step);
  void activate(std::uint32_t epoch, std::int64_t stable,
                const std::vector<RecoveryReport>& reports);
  void set_stable(std::int64_t step);
  void set_finished();
  void stop(const Error& error);
  std::optional<memory::FaultKind> take_fault(Phase phase);

  // run()
  std::int64_t attempt(Checkpoint& checkpoint, const std::function<Step(std::int64_t)>& step,
                       std::int64_t from, const RunOptions& options);
  void commit(Checkpoint& checkpoint, std::int64_t step);
  void commit_first(Checkpoint& checkpoint, std::int64_t step);
  void finish(const Checkpoint& checkpoint);
  std::int64_t recover(Checkpoint& checkpoint);
  [[nodiscard]] bool interrupted() const;

  MpiSession* mpi_;
  std::shared_ptr<DeviceCore> device_;
  std::shared_ptr<TokenRouter> tokens_;
  std::unique_ptr<MpiTransport> transport_;
  ActorRef<WorldActor> actor_;
  std::atomic<std::uint32_t> program_epoch_{0};
  GpuRef<std::int64_t> probe_;  ///< for the verification of a new communicator
  PinnedBuffer<std::int64_t> probed_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool active_ = false;
  std::uint32_t epoch_ = 0;
  std::int64_t stable_ = -1;
  bool attached_ = false;  ///< the program is in run(): rollback is its business
  bool finished_ = false;
  std::int64_t at_step_ = -1;
  struct Restore {
    std::uint32_t round;
    std::int64_t step;
  };
  std::optional<Restore> restore_;
  std::optional<Error> stopped_;
  std::vector<Recovery> recoveries_;
  std::vector<std::pair<Phase, memory::FaultKind>> ordered_faults_;
};

}  // namespace troupe::rank
