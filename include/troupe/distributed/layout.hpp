#pragma once

#include <cstdint>
#include <string>

#include <troupe/error.hpp>

namespace troupe::distributed {

/// How the rows, or the columns, of a matrix are dealt out: `block` of them to the owner `first`,
/// the next `block` to the owner after it, and round again.
struct Axis {
  std::int64_t extent = 0, block = 1;
  int first = 0, owners = 1;

  friend bool operator==(const Axis&, const Axis&) = default;
  [[nodiscard]] int owner_of(std::int64_t index) const noexcept {
    return static_cast<int>((first + index / block) % owners);
  }
  /// Where an index is among those of its owner.
  [[nodiscard]] std::int64_t place_of(std::int64_t index) const noexcept {
    return index / block / owners * block + index % block;
  }
  /// The index at a place of an owner.
  [[nodiscard]] std::int64_t index_at(int owner, std::int64_t place) const noexcept {
    const int turn = (owner - first + owners) % owners;
    return (place / block * owners + turn) * block + place % block;
  }
  /// How many an owner has.
  [[nodiscard]] std::int64_t extent_of(int owner) const noexcept;
};

/// How a matrix lies on a grid: block-cyclic in both directions, what the descriptor of ScaLAPACK
/// says (https://www.netlib.org/scalapack/slug/node76.html). Block (i, j) is on the rank in row
/// (first_row + i) mod the grid's rows and column (first_column + j) mod its columns. On each rank
/// its rows and columns form a column-major matrix without gaps, in the order of their indices.
struct Layout {
  std::int64_t rows = 0, columns = 0;
  std::int64_t block_rows = 1, block_columns = 1;
  int first_row = 0, first_column = 0;

  /// One block for each rank of a grid; the last ones may be smaller, or empty.
  static Layout blocks(std::int64_t rows, std::int64_t columns, int grid_rows, int grid_columns);
  friend bool operator==(const Layout&, const Layout&) = default;

  [[nodiscard]] Axis row_axis(int grid_rows) const noexcept {
    return {rows, block_rows, first_row, grid_rows};
  }
  [[nodiscard]] Axis column_axis(int grid_columns) const noexcept {
    return {columns, block_columns, first_column, grid_columns};
  }
  /// Errors: invalid (a negative extent, a block below 1, a first rank that the grid does not
  /// have).
  [[nodiscard]] Result<void> check(int grid_rows, int grid_columns) const;
  [[nodiscard]] std::string to_string() const;
};

}  // namespace troupe::distributed
