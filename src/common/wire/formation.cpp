#include "common/wire/formation.hpp"

#include <algorithm>

#include "common/wire/wire_fields.hpp"

namespace troupe::wire {

std::vector<std::byte> encode_contribution(const Contribution& contribution) {
  FieldWriter writer;
  writer.put(contribution);
  return writer.take();
}

Result<Contribution> decode_contribution(std::span<const std::byte> bytes) {
  FieldReader reader(bytes);
  Contribution contribution;
  reader.get(contribution);
  if (!reader.complete())
    return Error{Errc::internal, 0, "a contribution to the communicators is malformed"};
  return contribution;
}

const Share* share_of(const Contribution& contribution, std::uint32_t number) {
  const auto found = std::find_if(contribution.begin(), contribution.end(),
                                  [&](const Share& share) { return share.number == number; });
  return found != contribution.end() ? &*found : nullptr;
}

std::vector<FormingGroup> groups_to_form(const std::vector<FormingGroup>& groups,
                                         const std::vector<Contribution>& contributions) {
  std::vector<FormingGroup> wanted;
  for (const auto& group : groups) {
    bool known = !group.members.empty(), held = false, dropped = false;
    for (const auto member : group.members) {
      const auto rank = static_cast<std::size_t>(member);
      const auto* const share =
          rank < contributions.size() ? share_of(contributions[rank], group.number) : nullptr;
      known = known && share != nullptr;
      if (share == nullptr) continue;
      held = held || share->state == GroupState::held || share->state == GroupState::forming;
      dropped = dropped || share->state == GroupState::dropped;
    }
    if (known && (held || !dropped)) wanted.push_back(group);
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const FormingGroup& a, const FormingGroup& b) { return a.number < b.number; });
  return wanted;
}

}  // namespace troupe::wire
