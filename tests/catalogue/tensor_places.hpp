#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// Elements of row-major tensors.
namespace troupe::catalogue {

inline std::size_t volume(const std::vector<std::int64_t>& extents) {
  std::size_t count = 1;
  for (const auto extent : extents) count *= static_cast<std::size_t>(extent);
  return count;
}
/// Calls visit(index, place) for each element of a row-major tensor.
template <class Visit>
void for_each(const std::vector<std::int64_t>& extents, const Visit& visit) {
  std::vector<std::int64_t> index(extents.size());
  for (std::size_t place = 0, count = volume(extents); place < count; ++place) {
    visit(std::as_const(index), place);
    for (auto d = extents.size(); d-- > 0 && ++index[d] == extents[d];) index[d] = 0;
  }
}
/// Where an index stands in a row-major tensor, whose extents of 1 stand for all indices.
inline std::size_t place_in(const std::vector<std::int64_t>& extents,
                            const std::vector<std::int64_t>& index) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < extents.size(); ++d)
    place = place * extents[d] + (extents[d] == 1 ? 0 : index[d]);
  return static_cast<std::size_t>(place);
}

}  // namespace troupe::catalogue
