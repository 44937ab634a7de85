#pragma once

#include <cstdint>
#include <functional>

#include "rank/token/shared_slabs.hpp"
#include "rank/token/token_turn.hpp"

namespace troupe::rank_process {

/// Gives the slabs of this rank to other ranks of its node. The TokenActor's turns.
class SlabSharing {
 public:
  explicit SlabSharing(TokenTurn& turn) : turn_(turn) {}

  /// Calls `shared` with what others know the region's slab as, now or later; serial 0: it cannot
  /// be shared.
  void share(std::uint32_t region, const std::function<void(const SharedSlabs::Id&)>& shared);
  /// Withdraws what TokenParts::dropped_regions names, and tells those who may have mapped it.
  void forget_dropped();

 private:
  TokenTurn& turn_;
  SharedSlabs known_;
};

}  // namespace troupe::rank_process
