#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <troupe/checkpoint.hpp>

#include "common/core/clock.hpp"
#include "rank/device/device_core.hpp"
#include "rank/net/background.hpp"
#include "rank/store/generations.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank {

/// Takes a run's commits out of GPU memory: to disk, and into the memory of partner ranks.
///
/// Right behind a commit the program's thread submits copies of it to pinned memory (capture). Once
/// they are done and the commit is stable, a thread of the keeper takes the checksums, exchanges
/// the part with its partners and writes it to disk, while the program computes on. One commit is
/// under way at a time.
///
/// What makes the keepers of all ranks agree without a protocol of their own: whether a commit
/// becomes stable or is rolled back is the same on all ranks, and a rank captures a commit whenever
/// it submits it. So every keeper deals with exactly the captured commits that became stable, in
/// order, and may use collectives (of its own communicator); a rank whose copies failed takes part
/// in them and says so: a commit that a fault caught on its way out of the device is not saved.
class StateKeeper {
 public:
  struct Options {
    std::filesystem::path folder;  ///< empty: nothing is written
    bool partner = false;
  };
  /// A copy in the memory of this rank of another one's part.
  struct Held {
    std::int64_t step = -1;  ///< -1: none that is complete on all ranks
    std::shared_ptr<const std::vector<std::byte>> part;
  };

  /// All ranks, from the program's thread; activated() follows. Throws CollectiveException
  /// (out_of_memory): pinned memory for the state.
  StateKeeper(MpiSession& mpi, std::shared_ptr<DeviceCore> device, Checkpoint& checkpoint,
              Options options);
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  // The program's thread.

  /// Until the keeper is free for the next commit; false if `interrupted` says so before.
  bool wait_idle(const std::function<bool()>& interrupted);
  /// Submits the copies of the commit that was submitted just before. Requires that the keeper is
  /// idle. `since`: when the program began to wait for it.
  void capture(std::int64_t step, std::uint32_t epoch, bool to_disk, TimePoint since);
  /// Finishes what is under way and ends the keeper's thread. Waits for the world's word on a
  /// commit that is not yet stable.
  void close();
  /// The run cannot go on: writes what partners hold, if that is newer than what is on disk. All
  /// ranks, after close(). The step that is on disk now, -1: none.
  std::int64_t rescue();
  /// Step of the newest state that this run has written, -1: none. The same on all ranks while the
  /// keeper is idle.
  [[nodiscard]] std::int64_t on_disk() const;
  [[nodiscard]] std::vector<SavedCheckpoint> saved() const;
  [[nodiscard]] Held held() const;

  // The WorldActor's thread.

  void stable(std::int64_t step);
  /// A new epoch began with all ranks at the commit of `step`.
  void activated(std::uint32_t epoch, std::int64_t step);
  /// The world has ended.
  void stopped();

 private:
  struct Job {
    std::int64_t step;
    std::uint32_t epoch;
    bool to_disk;
    Future<void> copies;
    TimePoint captured_at;
    double stall_seconds;
  };
  struct Written;

  void run();
  /// Gives the device host of this epoch the pinned memory: it takes a while, and is nobody's wait.
  void map_memory(std::unique_lock<std::mutex>& lock);
  /// Waits for what becomes of the job: true if its copies are good, false if they are lost,
  /// nullopt if the commit was rolled back.
  std::optional<bool> settle(std::unique_lock<std::mutex>& lock);
  void carry_out(const Job& job, bool copied);
  void give_to_partner(std::int64_t step, std::span<const std::byte> image);
  /// All ranks: this one's part goes to disk (nullptr: it has none), and when all are there they
  /// become visible. The state's bytes on all ranks; nullopt if it did not come about.
  struct Outcome {
    std::uint64_t bytes;
    double stall_seconds;
  };
  std::optional<Outcome> write_state(std::int64_t step, const PartTable* table,
                                     std::span<const std::byte> image, double stall_seconds);
  Result<void> write_part(const PartTable& table, std::span<const std::byte> image);
  bool publish(std::int64_t step, const std::vector<Written>& written);
  [[nodiscard]] std::span<std::byte> image() const;

  MpiSession* mpi_;
  Checkpoint* checkpoint_;
  BackgroundExchange exchange_;
  Generations generations_;
  Options options_;
  int partner_ = -1, ward_ = -1;  ///< who keeps this rank's part, whose part is kept here
  PartTable table_;
  std::vector<std::uint64_t> offsets_;
  std::shared_ptr<DeviceCore> device_;
  PinnedBuffer<std::uint8_t> memory_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;
  std::int64_t stable_ = -1;
  std::uint32_t mapped_in_ = 0;    ///< epoch for which the memory was mapped
  bool mapped_ = false;            ///< with success
  std::uint32_t epoch_ = 0;        ///< that began last
  std::int64_t epoch_began_ = -1;  ///< at this commit
  bool stopped_ = false, closing_ = false;
  std::int64_t on_disk_ = -1;
  std::vector<SavedCheckpoint> saved_;
  Held held_;
  std::vector<std::byte> spare_;  ///< memory of the copy before
  std::thread thread_;
};

}  // namespace troupe::rank
