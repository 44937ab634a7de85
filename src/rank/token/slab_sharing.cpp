#include "rank/token/slab_sharing.hpp"

#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {

void SlabSharing::share(std::uint32_t region,
                        const std::function<void(const SharedSlabs::Id&)>& shared) {
  forget_dropped();
  if (const auto known = known_.find(region)) return shared(*known);
  auto promise = std::make_shared<Promise<device_message::SharedSlab>>();
  const auto slab = promise->future();
  turn_.device().tell(device_message::ShareSlab{region, std::move(promise)});
  turn_.then(slab, [this, region, shared,
                    asked = known_.now()](const Result<device_message::SharedSlab>& given) {
    if (!given.ok()) return shared({});
    forget_dropped();
    const SharedSlabs::Id id{given->serial, given->bytes};
    if (!known_.add(region, id, asked)) return share(region, shared);
    turn_.parts().fds->offer(given->serial, given->fd);
    shared(id);
  });
}

void SlabSharing::forget_dropped() {
  auto& parts = turn_.parts();
  std::vector<std::uint32_t> regions;
  {
    const std::lock_guard lock(parts.dropped_mutex);
    regions.swap(parts.dropped_regions);
  }
  for (const auto region : regions) {
    const auto known = known_.drop(region);
    if (!known) continue;
    parts.fds->withdraw(known->serial);
    for (int rank = 0; rank < parts.size; ++rank) {
      if (rank != parts.rank && parts.fds->reaches(rank))
        turn_.send(rank, routed::SlabGone{known->serial});
    }
  }
}

}  // namespace troupe::rank_process
