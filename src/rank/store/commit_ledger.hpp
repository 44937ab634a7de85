#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/saved_state.hpp>

namespace troupe::rank_process {

/// Where the last two commits of a run lie in device memory, written down for the process that is
/// started should this one die: see Estate.
///
/// The file has a place for each half of a checkpoint. What is being overwritten is struck out
/// before; a commit counts once its copies have ended well. So whenever the process dies, what
/// counts is whole.
class CommitLedger {
 public:
  /// The parts of a commit, as StateKeeper would save it.
  struct Commit {
    struct Entry {
      SavedEntry saved;
      Checkpoint::Committed where;
    };
    std::uint32_t incarnation = 0;  ///< of the process, which names the regions of its slabs
    std::int64_t step = -1;
    std::int32_t part = 0, parts = 1;
    std::vector<Entry> entries;
  };

  /// `file` outlives the ledger; -1: nothing is written down.
  CommitLedger(int file, std::uint32_t incarnation) : file_(file), incarnation_(incarnation) {}

  [[nodiscard]] bool is_kept() const noexcept { return file_ >= 0; }

  // Any thread.

  /// The half is about to be overwritten.
  void strike(std::size_t half);
  void strike_all();
  /// A commit goes to the half; it does not count yet.
  void enter(std::size_t half, std::int64_t step, int part, int parts,
             std::span<const SavedEntry> entries, std::span<const Checkpoint::Committed> places);
  /// All commits until strike_all() have these entries: those of host data, in these places, that
  /// never change. What enter() is given of them has no bytes. If they cannot be written no commit
  /// is.
  void set_constants(std::span<const std::size_t> which,
                     std::span<const Checkpoint::Committed> places);
  [[nodiscard]] bool has_constants() const;
  /// The commit of that step, if it is the one that was entered there last, counts.
  void complete(std::size_t half, std::int64_t step);

  /// The commits that count. What was not written by a ledger is no commit.
  static std::vector<Commit> read(int file);

 private:
  /// Where one lies in the file.
  struct Constant {
    std::uint64_t offset = 0, bytes = 0, crc = 0;
  };
  static bool take_constant(int file, const Constant& constant, std::vector<std::byte>& host);

  const int file_;
  const std::uint32_t incarnation_;
  mutable std::mutex mutex_;
  std::int64_t steps_[2] = {-1, -1};
  bool has_constants_ = false;                 ///< they have been set
  bool writes_ = false;                        ///< and are written
  std::map<std::size_t, Constant> constants_;  ///< by entry
};

}  // namespace troupe::rank_process
