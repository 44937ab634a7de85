#include <troupe/distributed/layout.hpp>

#include <algorithm>

namespace troupe::distributed {

std::int64_t Axis::extent_of(int owner) const noexcept {
  const std::int64_t turn = (owner - first + owners) % owners, round = block * owners,
                     left = extent % round - turn * block;
  return extent / round * block + std::clamp<std::int64_t>(left, 0, block);
}

Layout Layout::blocks(std::int64_t rows, std::int64_t columns, int grid_rows, int grid_columns) {
  const auto part = [](std::int64_t extent, int owners) {
    return std::max<std::int64_t>(1, (extent + owners - 1) / std::max(1, owners));
  };
  return {rows, columns, part(rows, grid_rows), part(columns, grid_columns), 0, 0};
}

Result<void> Layout::check(int grid_rows, int grid_columns) const {
  const auto refused = [this](const std::string& why) {
    return Error{Errc::invalid, 0, "layout " + to_string() + ": " + why};
  };
  // Products of extents and of blocks and ranks stay within 64 bits.
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (rows < 0 || columns < 0 || rows >= kMost || columns >= kMost)
    return refused("extents are from 0 to 2^31 - 1");
  if (block_rows < 1 || block_columns < 1 || block_rows >= kMost || block_columns >= kMost)
    return refused("blocks are from 1 to 2^31 - 1");
  if (first_row < 0 || first_row >= grid_rows || first_column < 0 || first_column >= grid_columns)
    return refused("the first block is outside of a grid of " + std::to_string(grid_rows) + " x " +
                   std::to_string(grid_columns));
  return {};
}

std::string Layout::to_string() const {
  return std::to_string(rows) + " x " + std::to_string(columns) + " in blocks of " +
         std::to_string(block_rows) + " x " + std::to_string(block_columns) + " from (" +
         std::to_string(first_row) + ", " + std::to_string(first_column) + ")";
}

}  // namespace troupe::distributed
