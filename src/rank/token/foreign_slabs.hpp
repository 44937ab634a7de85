#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "rank/token/token_turn.hpp"

namespace troupe::rank_process {

/// Slabs of other ranks of this node that this rank's device host has mapped. The TokenActor's
/// turns.
class ForeignSlabs {
 public:
  /// The regions of its mappings have this number or a greater one.
  static constexpr std::uint32_t kFirst = 1024;

  using Id = std::pair<int, std::uint64_t>;  ///< rank and serial

  explicit ForeignSlabs(TokenTurn& turn) : turn_(turn) {}

  /// Calls `mapped` with the region under which the device host knows the slab, now or later.
  void map(const Id& id, std::uint64_t bytes, std::function<void(Result<std::uint32_t>)> mapped);
  /// Once nobody uses it any more.
  void unmap(const Id& id);
  void unmap_all_of(int rank);
  /// A slab that is used stays mapped.
  void begin_use(const Id& id) { ++mappings_.at(id).users; }
  void end_use(const Id& id);

  void on(int from, const routed::SlabGone& slab) { unmap({from, slab.serial}); }

 private:
  struct Mapping {
    std::uint32_t region = 0;
    std::uint64_t bytes = 0;
    std::uint32_t users = 0;
    bool ready = false;
    bool gone = false;
    std::vector<std::function<void(Result<std::uint32_t>)>> waiting;
  };
  void came(const Id& id, const Result<void>& outcome);

  TokenTurn& turn_;
  std::map<Id, Mapping> mappings_;
  std::uint32_t next_ = kFirst;
};

}  // namespace troupe::rank_process
