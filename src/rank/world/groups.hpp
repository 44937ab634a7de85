#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/wire/formation.hpp"
#include "rank/net/session.hpp"

namespace troupe::rank_process {

class Groups;

/// A group that this rank is in, or was.
class GroupEntry {
 public:
  /// The ranks that are in it while the world has certain members, in the group's order.
  struct View {
    const HostGroup* world = nullptr;
    std::vector<int> ranks{};  ///< in the job
    int rank = -1;             ///< this rank's place; -1: it is a spectator
  };

  GroupEntry(Session& mpi, std::uint32_t number, std::vector<int> ranks)
      : mpi_(&mpi), number_(number), ranks_(std::move(ranks)) {}

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// This rank was out of the world when the others let it go: it cannot be used any more.
  [[nodiscard]] bool gone() const noexcept { return gone_; }
  /// Ranks of the job, in the group's order, as it was made.
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }
  /// `world`: a group of ranks that is kept to the end. Any thread.
  [[nodiscard]] const View& view(const HostGroup& world);
  /// These of its ranks, this one among them, for host collectives. Made when it is first asked
  /// for, by all of them. The program's thread.
  [[nodiscard]] const HostGroup& hosts(const std::vector<int>& ranks);

  /// The table's: no rank has the group any more, or this one was out of the world when the last of
  /// the others let it go.
  void set_gone() noexcept { gone_ = true; }
  /// Frees the host groups: all of their ranks do.
  void free_hosts() { hosts_.clear(); }

 private:
  Session* mpi_;
  std::uint32_t number_;
  std::vector<int> ranks_;
  std::atomic<bool> gone_{false};
  std::mutex mutex_;  ///< guards what follows
  std::vector<std::unique_ptr<View>> views_;
  std::map<std::vector<int>, std::shared_ptr<const HostGroup>> hosts_;
};

/// The groups of a rank, by number: what it contributes when the world is re-formed, so that all
/// of them are formed again with it. Any thread.
///
/// A group lives until the program has let it go on all of its ranks, for a communicator is formed
/// by all or none. That is known when they next contribute, or split off another group. Ranks that
/// the world goes on without have no say: a group which all others have let go is gone when they
/// come back.
class Groups {
 public:
  /// With more of them standbys form no world ahead of time: each takes some of the GPU's memory.
  static constexpr std::size_t kMaxWarm = 8;

  explicit Groups(Session& mpi) : mpi_(&mpi) {}

  /// For a formation of the world without these ranks of the job: those that it is in, dropped ones
  /// too, with the ranks of that world. `returns`: this rank is not in the world of now.
  [[nodiscard]] std::vector<wire::FormingGroup> listing(const std::vector<std::int32_t>& excluded,
                                                        bool returns) const;
  /// What all have contributed says which of these nobody has any more.
  void forget(const std::vector<wire::FormingGroup>& listed,
              const std::vector<wire::Contribution>& contributions);
  /// Whether all that the program has, or is about to have, are among these.
  [[nodiscard]] bool all_in(const std::vector<wire::FormingGroup>& formed) const;
  /// Whether some of these were freed.
  [[nodiscard]] bool lacks_any(const std::vector<wire::FormingGroup>& formed) const;

  /// The number that the next group may have, as far as this rank knows.
  [[nodiscard]] std::uint32_t next() const;
  /// A group of that number was made, of these ranks; empty: without this one.
  std::shared_ptr<GroupEntry> add(std::uint32_t number, std::vector<int> ranks);
  /// nullptr: there is none.
  [[nodiscard]] std::shared_ptr<GroupEntry> find(std::uint32_t number) const;
  void hold(const GroupEntry& entry) { set(entry, wire::GroupState::held); }
  void drop(const GroupEntry& entry) { set(entry, wire::GroupState::dropped); }
  /// Those that the program has let go, by number.
  [[nodiscard]] std::vector<std::shared_ptr<GroupEntry>> dropped() const;
  /// No rank has it any more, and all of its ranks say so now.
  void erase(std::uint32_t number);
  /// Frees the host groups, at the end: all ranks do.
  void close();

 private:
  void set(const GroupEntry& entry, wire::GroupState state);

  Session* mpi_;
  mutable std::mutex mutex_;
  std::uint32_t newest_ = wire::kWorld;
  struct Listed {
    std::shared_ptr<GroupEntry> entry;
    wire::GroupState state = wire::GroupState::forming;
  };
  /// Those that are gone stay: their host groups are freed at the end, when all ranks do.
  std::map<std::uint32_t, Listed> entries_;
};

/// What the copies of a Group share.
class GroupHandle {
 public:
  GroupHandle(std::shared_ptr<Groups> table, std::shared_ptr<GroupEntry> entry)
      : table_(std::move(table)), entry_(std::move(entry)) {}
  ~GroupHandle() { table_->drop(*entry_); }
  GroupHandle(const GroupHandle&) = delete;
  GroupHandle& operator=(const GroupHandle&) = delete;

  [[nodiscard]] GroupEntry& entry() const noexcept { return *entry_; }

 private:
  std::shared_ptr<Groups> table_;
  std::shared_ptr<GroupEntry> entry_;
};

}  // namespace troupe::rank_process
