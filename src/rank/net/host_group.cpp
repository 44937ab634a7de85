#include "rank/net/host_group.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe::rank_process {

Exchange& HostGroup::host() const {
  if (host_) return *host_;
  throw Exception(Error{Errc::peer_lost, 0, "a spectator takes no part in host collectives"});
}

Exchange& HostGroup::background() const {
  check(background_ != nullptr, "a group with exchanges in the background");
  return *background_;
}

void HostGroup::all_gather(std::span<const std::byte> value, std::span<std::byte> all) const {
  auto& exchange = host();
  check(all.size() == value.size() * ranks_.size(), "all_gather: room for one value per rank");
  exchange.all_gather(value, all);
}

std::vector<std::vector<std::byte>> HostGroup::all_to_all(
    const std::vector<std::vector<std::byte>>& outgoing) const {
  auto& exchange = host();
  check(outgoing.size() == ranks_.size(), "all_to_all: one part per rank");
  return exchange.all_to_all(outgoing);
}

Result<void> HostGroup::agree(const Result<void>& outcome) const {
  struct Head {
    std::uint32_t code;
    std::int32_t native;
  };
  const auto heads = gather(
      Head{static_cast<std::uint32_t>(outcome.code()), outcome.ok() ? 0 : outcome.error().native});
  const auto first =
      std::find_if(heads.begin(), heads.end(), [](const Head& head) { return head.code != 0; });
  if (first == heads.end()) return {};
  const auto texts = gather_text(outcome.ok() ? "" : outcome.error().message);
  const auto rank = static_cast<std::size_t>(first - heads.begin());
  return Error{static_cast<Errc>(first->code), first->native, texts[rank]};
}

}  // namespace troupe::rank_process
