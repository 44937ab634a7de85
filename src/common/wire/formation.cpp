#include "common/wire/formation.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::wire {
namespace {

/// Appends numbers, each with what follows it.
class FormationWriter {
 public:
  void put(std::uint32_t value) { put(std::as_bytes(std::span(&value, 1))); }
  void put(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what FormationWriter wrote. Past the end everything is 0, or empty, and sound() is false.
class FormationReader {
 public:
  explicit FormationReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint32_t number() {
    std::uint32_t value = 0;
    if (const auto raw = take(sizeof value); !raw.empty())
      std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take(std::size_t size) {
    if (size > bytes_.size()) sound_ = false;
    if (!sound_) return {};
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  [[nodiscard]] bool sound() const noexcept { return sound_; }
  [[nodiscard]] bool complete() const noexcept { return sound_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool sound_ = true;
};

Error malformed_formation() {
  return {Errc::internal, 0, "a contribution to the communicators is malformed"};
}

}  // namespace

std::vector<std::byte> encode_groups(const std::vector<FormingGroup>& groups) {
  FormationWriter writer;
  for (const auto& [number, state, members] : groups) {
    writer.put(number);
    writer.put(static_cast<std::uint32_t>(state));
    writer.put(static_cast<std::uint32_t>(members.size()));
    writer.put(std::as_bytes(std::span(members)));
  }
  return writer.take();
}

Result<std::vector<FormingGroup>> decode_groups(std::span<const std::byte> bytes) {
  FormationReader reader(bytes);
  std::vector<FormingGroup> groups;
  while (reader.sound() && !reader.complete()) {
    auto& group = groups.emplace_back();
    group.number = reader.number();
    group.state = static_cast<GroupState>(reader.number());
    const auto raw = reader.take(sizeof(std::int32_t) * std::size_t{reader.number()});
    group.members.resize(raw.size() / sizeof(std::int32_t));
    if (!raw.empty()) std::memcpy(group.members.data(), raw.data(), raw.size());
    if (group.state > GroupState::returning || group.number == kWorld) return malformed_formation();
  }
  if (!reader.complete()) return malformed_formation();
  return groups;
}

std::vector<std::byte> encode_contribution(const Contribution& contribution) {
  FormationWriter writer;
  for (const auto& [number, state, bytes] : contribution) {
    writer.put(number);
    writer.put(static_cast<std::uint32_t>(state));
    writer.put(static_cast<std::uint32_t>(bytes.size()));
    writer.put(bytes);
  }
  return writer.take();
}

Result<Contribution> decode_contribution(std::span<const std::byte> bytes) {
  FormationReader reader(bytes);
  Contribution contribution;
  while (reader.sound() && !reader.complete()) {
    auto& share = contribution.emplace_back();
    share.number = reader.number();
    share.state = static_cast<GroupState>(reader.number());
    const auto raw = reader.take(reader.number());
    share.bytes.assign(raw.begin(), raw.end());
    if (share.state > GroupState::returning) return malformed_formation();
  }
  if (!reader.complete()) return malformed_formation();
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
