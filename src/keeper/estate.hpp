#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/ipc/socket.hpp"
#include "common/keeper/job.hpp"

namespace troupe::keeper {

/// The legacy of a rank's process to the one that is started here in its place: the slabs of its
/// device's memory, which live as long as somebody has their descriptors, and a file that says what
/// lies in them. One thread.
class Estate {
 public:
  Estate();

  /// The file; -1: there is none, and nothing is left.
  [[nodiscard]] int file() const noexcept { return file_.get(); }
  /// The rank's process of this incarnation has made a slab, or given it up.
  void keep(std::uint32_t incarnation, const FromRank& slab, UniqueFd memory);
  void drop(std::uint32_t incarnation, std::uint32_t region);
  /// It has what it wants of those before it.
  void drop_before(std::uint32_t incarnation);
  /// The rank is elsewhere from now on.
  void clear();

  [[nodiscard]] std::uint32_t slabs() const noexcept {
    return static_cast<std::uint32_t>(slabs_.size());
  }
  /// Gives all slabs to a process that begins; they are kept, too.
  void give(const ipc::Socket& line) const;

 private:
  struct Slab {
    std::uint64_t bytes;
    UniqueFd memory;
  };

  UniqueFd file_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Slab> slabs_;  ///< by incarnation and region
};

}  // namespace troupe::keeper
