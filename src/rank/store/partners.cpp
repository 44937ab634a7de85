#include "rank/store/partners.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>

namespace troupe::rank_process {

std::vector<int> partners(std::span<const int> node_of) {
  const auto count = node_of.size();
  std::vector<int> ring(count);
  std::iota(ring.begin(), ring.end(), 0);
  std::stable_sort(ring.begin(), ring.end(), [&](int a, int b) {
    return node_of[static_cast<std::size_t>(a)] < node_of[static_cast<std::size_t>(b)];
  });
  std::map<int, std::size_t> sizes;
  std::size_t largest = 0;
  for (const int node : node_of) largest = std::max(largest, ++sizes[node]);
  const auto shift = largest == count ? std::size_t{1} : largest;
  std::vector<int> partner(count);
  for (std::size_t i = 0; i < count; ++i)
    partner[static_cast<std::size_t>(ring[i])] = ring[(i + shift) % count];
  return partner;
}

}  // namespace troupe::rank_process
