#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/clock.hpp>

#include "rank/device/device_core.hpp"
#include "rank/net/host_group.hpp"
#include "rank/store/copy_turns.hpp"
#include "rank/store/direct_io.hpp"
#include "rank/store/memory_state.hpp"
#include "rank/store/part_table.hpp"
#include "rank/store/state_writer.hpp"

namespace troupe::rank_process {

/// Takes a run's commits out of GPU memory: to disk, into the memory of partner ranks, and into
/// the folders of the nodes.
///
/// Right behind a commit the program's thread submits copies of it to pinned memory (capture). Once
/// they are done and the commit is stable, a thread of the keeper takes the checksums, exchanges
/// the part with its partners and writes it to disk, while the program computes on. One commit is
/// under way at a time.
///
/// With StateIo::direct what goes to disk needs no pinned memory: the keeper's thread has the
/// device host write the commit itself, once it is stable, piece by piece. Until that has ended the
/// half of the checkpoint that holds the commit must not be overwritten (reads). A piece that a
/// fault cuts off is written again once the world is re-formed.
///
/// What makes the keepers of all ranks agree without a protocol of their own: whether a commit
/// becomes stable or is rolled back is the same on all ranks, and all ranks capture the same
/// commits: those that go to disk, and those that CopyTurns chooses. So every keeper deals with
/// exactly the captured commits that became stable, in order, and may use collectives (of its own
/// communicator); a rank whose copies failed takes part in them and says so: a commit that a fault
/// caught on its way out of the device is not saved.
class StateKeeper {
 public:
  struct Options {
    Generations states{std::filesystem::path()};  ///< where to; nothing is written without a folder
    bool partner = false;
    bool every_copy = false;  ///< see SaveOptions: GPU memory has this rank's part of each of them
    StateIo io = StateIo::pinned;  ///< direct or pinned
    bool takes = false;            ///< take() may be called
    /// This rank's keeper before: what it has held and brought to disk counts as this one's.
    const StateKeeper* before = nullptr;
    /// Every commit goes to this folder of the rank's node, with a copy on another node's.
    std::optional<Generations> near = {};
    bool publishes_near = false;  ///< this rank makes what lies there visible
  };
  /// For the members of the world, all of them, from the program's thread; activated() follows.
  /// `nodes`: of each member the node, by any number. Throws CollectiveException (out_of_memory):
  /// pinned memory for the state.
  StateKeeper(const HostGroup& members, std::span<const int> nodes,
              std::shared_ptr<DeviceCore> device, Checkpoint& checkpoint, const Options& options);
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  // The program's thread.

  /// Until the keeper is free for the next commit; false if `interrupted` says so before.
  bool wait_idle(const std::function<bool()>& interrupted);
  /// The program is about to make a commit of this epoch: whether it is to be captured, if it need
  /// not go to disk.
  [[nodiscard]] bool is_due(std::uint32_t epoch);
  /// Submits the copies of the commit that was submitted just before. Requires that the keeper is
  /// idle. `since`: when the program began to wait for it.
  void capture(std::int64_t step, std::uint32_t epoch, bool to_disk, TimePoint since);
  /// Whether it still needs this half of the checkpoint, after capture().
  [[nodiscard]] bool reads(std::size_t half) const;
  /// Finishes what is under way and ends the keeper's thread. Waits for the world's word on a
  /// commit that is not yet stable.
  void close();
  /// Takes this rank's part of the commit of `step`, one of the last two, into host memory; hold()
  /// then keeps it beside what it keeps for another rank. Requires that the keeper is idle, and
  /// Options::takes. Errors: those of the copies.
  Result<void> take(std::int64_t step, std::uint32_t epoch);
  void hold();
  /// Step of the newest state that this run has written, -1: none. The same on all ranks while the
  /// keeper is idle.
  [[nodiscard]] std::int64_t on_disk() const;
  [[nodiscard]] std::vector<SavedCheckpoint> saved() const;
  /// The parts of states that this rank has in host memory: its own, its ward's.
  [[nodiscard]] std::vector<HeldPart> held() const;
  /// The newest step of which the copy for another rank is here as a whole; -1: none.
  [[nodiscard]] std::int64_t kept() const;
  /// The same of those whose state lies on the nodes.
  [[nodiscard]] std::int64_t near() const;

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
    Future<void> copies;  ///< to pinned memory
    /// What is to be written from device memory, and the half of the checkpoint where that is.
    std::shared_ptr<const std::vector<Checkpoint::Committed>> direct;
    std::size_t half;
    TimePoint captured_at;
    double stall_seconds;
  };

  struct Copy {
    std::int64_t step = -1;
    HeldPart::Image part;
  };

  void run();
  /// Gives the device host of this epoch the pinned memory: it takes a while, and nobody waits for
  /// it.
  void map_memory(std::unique_lock<std::mutex>& lock);
  /// Waits for what becomes of the job: true if its copies are good, false if they are lost,
  /// nullopt if the commit was rolled back.
  std::optional<bool> settle(std::unique_lock<std::mutex>& lock);
  /// Whether copies submitted in this epoch have memory to go to.
  [[nodiscard]] Result<void> memory_in(std::uint32_t epoch) const;
  void carry_out(const Job& job, bool copied);
  /// How StateWriter gets this rank's part of the job to disk.
  [[nodiscard]] StateWriter::Share share_of(const Job& job, bool copied);
  /// Has the device host write a piece; if a fault cuts it off, the next device host.
  Result<file::Done> write_piece(const std::filesystem::path& path, const Operand& piece,
                                 std::uint64_t offset);
  void give_to_partner(std::int64_t step, std::span<const std::byte> image);
  /// Keeps this rank's part beside what it keeps for another rank: GPU memory may have it no more
  /// when that is needed.
  void keep_own(std::int64_t step, std::span<const std::byte> image);
  /// With the keepers of all ranks: which commit is captured next.
  void agree_on_next();
  void write_near(std::int64_t step, bool copied);
  [[nodiscard]] std::span<std::byte> image() const;
  StateWriter::AllGather gatherer();

  const HostGroup* members_;
  Checkpoint* checkpoint_;
  Exchange& exchange_;  ///< of the members, in the background
  StateWriter writer_;
  std::optional<StateWriter> near_writer_;
  int partner_ = -1, ward_ = -1;  ///< who keeps this rank's part, whose part is kept here
  bool ward_is_near_ = false;     ///< it is on this rank's node
  bool keeps_own_ = false;        ///< see keep_own()
  PartTable table_;
  std::vector<std::uint64_t> offsets_;
  std::shared_ptr<DeviceCore> device_;
  DirectIo direct_io_;
  bool direct_;
  bool in_host_memory_;                ///< every commit, or those that go to disk
  PinnedBuffer<std::uint8_t> memory_;  ///< empty: nothing needs it

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;
  std::int64_t stable_ = -1;
  std::uint32_t mapped_in_ = 0;    ///< epoch for which the memory was mapped
  Result<void> mapped_;            ///< what came of it
  std::uint32_t epoch_ = 0;        ///< that began last
  std::int64_t epoch_began_ = -1;  ///< at this commit
  bool stopped_ = false, closing_ = false;
  std::int64_t on_disk_ = -1, near_ = -1;
  std::vector<SavedCheckpoint> saved_;
  Copy held_;     ///< another rank's part, of a state whose copies are complete on all ranks
  Copy pending_;  ///< the same of the next one, which are complete here
  /// This rank's parts of both: those in GPU memory may be overwritten by then.
  Copy mine_, pending_mine_;
  Copy own_;                      ///< see hold()
  std::vector<std::byte> spare_;  ///< memory of the copy before
  CopyTurns turns_;
  bool deciding_ = false;  ///< the program makes no commit meanwhile
  std::thread thread_;
};

}  // namespace troupe::rank_process
