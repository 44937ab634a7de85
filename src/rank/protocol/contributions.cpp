#include "rank/protocol/contributions.hpp"

namespace troupe::rank_process {

Contributions Contributions::of(const std::vector<std::vector<std::byte>>& by_rank) {
  Contributions all{static_cast<std::uint32_t>(by_rank.size()), {}};
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!by_rank[rank].empty())
      all.given.push_back({static_cast<std::int32_t>(rank), by_rank[rank]});
  }
  return all;
}

std::vector<std::vector<std::byte>> Contributions::by_rank() const {
  std::vector<std::vector<std::byte>> all(ranks);
  for (const auto& one : given) all[static_cast<std::size_t>(one.rank)] = one.bytes;
  return all;
}

bool Contributions::sound() const {
  std::int64_t before = -1;
  for (const auto& one : given) {
    if (one.rank <= before || one.rank >= static_cast<std::int64_t>(ranks) || one.bytes.empty())
      return false;
    before = one.rank;
  }
  return ranks <= kMaxRanks;
}

}  // namespace troupe::rank_process
