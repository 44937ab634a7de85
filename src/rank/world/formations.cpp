#include "rank/world/formations.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {

using Order = DeviceDone::Order;

void Formations::order(DeviceOrder order) {
  if (const auto possible = complete(order); !possible.ok()) {
    return parts_.member.device_event(DeviceDone{
        order.what, order.round, order.prepares() ? order.formation : 0, possible.error()});
  }
  parts_.core.device().tell(std::move(order));
}

Result<void> Formations::complete(DeviceOrder& order) {
  switch (order.what) {
    case Order::contribute: return complete_contribute(order);
    case Order::connect: return complete_connect(order);
    case Order::promote:
      // One that was made since the standbys formed theirs would be missing.
      if (!parts_.core.groups()->all_in(prepared_))
        return Error{Errc::device_lost, 0, "the standby has not formed all groups"};
      return {};
    default: return {};
  }
}

Result<void> Formations::complete_contribute(DeviceOrder& order) {
  auto& core = parts_.core;
  const auto& out = core.status().members().excluded();  // now, which only this actor changes
  const bool returns =
      !order.prepares() && std::binary_search(out.begin(), out.end(), parts_.rank());
  auto groups = core.groups()->listing(parts_.member.excluded(), returns);
  (order.prepares() ? prepared_ : contributed_) = groups;
  if (order.prepares() && groups.size() > Groups::kMaxWarm) {
    return Error{Errc::unsupported, 0,
                 "there are more than " + std::to_string(Groups::kMaxWarm) + " groups"};
  }
  order.rank = place();
  order.size = members();
  order.groups = std::move(groups);
  return {};
}

Result<void> Formations::complete_connect(DeviceOrder& order) {
  auto& listed = order.prepares() ? prepared_ : contributed_;
  auto contributions = *order.contributions;
  const auto& excluded = parts_.member.excluded();
  for (auto rank = excluded.rbegin(); rank != excluded.rend(); ++rank) {
    if (*rank < static_cast<std::int32_t>(contributions.size()))
      contributions.erase(contributions.begin() + *rank);
  }
  std::vector<wire::Contribution> decoded;
  for (const auto& bytes : contributions) {
    auto one = wire::decode_contribution(bytes);
    if (!one.ok()) return one.error();
    decoded.push_back(std::move(*one));
  }
  // It does not matter for a standby world: the active device hosts still have those groups.
  if (!order.prepares()) parts_.core.groups()->forget(listed, decoded);
  order.rank = place();
  order.size = members();
  order.groups = wire::groups_to_form(listed, decoded);
  order.contributions = std::make_shared<const DeviceOrder::Blobs>(std::move(contributions));
  if (order.prepares()) listed = order.groups;
  return {};
}

void Formations::groups_changed() {
  const auto& groups = *parts_.core.groups();
  if (!groups.all_in(prepared_) || groups.lacks_any(prepared_))
    parts_.member.groups_changed(parts_.core.status().standbys().own_ready());
}

std::int32_t Formations::place() const {
  const auto& excluded = parts_.member.excluded();
  const auto rank = parts_.rank();
  const auto before = std::lower_bound(excluded.begin(), excluded.end(), rank) - excluded.begin();
  return rank - static_cast<std::int32_t>(before);
}

std::int32_t Formations::members() const {
  return parts_.core.mpi().size() - static_cast<std::int32_t>(parts_.member.excluded().size());
}

}  // namespace troupe::rank_process
