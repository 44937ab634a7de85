#include "csr.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

#include <troupe/error.hpp>

namespace troupe::cg {

std::int64_t RowBlocks::first(std::int32_t rank) const noexcept {
  if (!begins.empty()) return rank < ranks ? begins[static_cast<std::size_t>(rank)] : rows;
  return rank * (rows / ranks) + std::min<std::int64_t>(rank, rows % ranks);
}

std::int64_t RowBlocks::count(std::int32_t rank) const noexcept {
  return first(rank + 1) - first(rank);
}

std::int32_t RowBlocks::owner(std::int64_t row) const noexcept {
  if (!begins.empty()) {
    const auto after = std::upper_bound(begins.begin(), begins.end(), row);
    return static_cast<std::int32_t>(after - begins.begin()) - 1;
  }
  const std::int64_t small = rows / ranks, larger = rows % ranks;
  const std::int64_t in_larger = larger * (small + 1);
  const std::int64_t rank =
      row < in_larger ? row / (small + 1) : larger + (row - in_larger) / small;
  return static_cast<std::int32_t>(rank);
}

void for_ranges(std::int32_t threads, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t)>& body) {
  check(threads >= 1, "for_ranges() needs a thread");
  const std::int64_t parts = std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(count, 1));
  // Not count * part / parts: that overflows for a count near the limit.
  auto begin_of = [&](std::int64_t part) {
    return count / parts * part + std::min(part, count % parts);
  };
  std::vector<std::jthread> helpers;
  helpers.reserve(static_cast<std::size_t>(parts - 1));
  for (std::int64_t part = 1; part < parts; ++part) {
    const std::int64_t begin = begin_of(part), end = begin_of(part + 1);
    try {
      helpers.emplace_back([&body, begin, end] { body(begin, end); });
    } catch (const std::system_error&) {  // the system has no thread left: slower, not wrong
      body(begin, end);
    }
  }
  body(begin_of(0), begin_of(1));
}

}  // namespace troupe::cg
