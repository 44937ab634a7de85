#pragma once

#include <cstdint>

#include <troupe/group.hpp>

/// Matrices and arrays that are spread over a grid of ranks, and what is computed with them by all
/// of these ranks together. Built from nothing but the calls of devices and groups.
namespace troupe::distributed {

/// Ranks in rows and columns: rank r of a communicator is in row r / columns and column
/// r % columns. Each row and each column is a group, but for one that has all ranks: that is the
/// communicator itself. Refers to the communicator, which must outlive it. Like all groups, rows
/// and columns are formed again after a fault; where the communicator has other ranks than before
/// (--on-loss shrink), a grid is to be made anew.
class Grid {
 public:
  /// All ranks call it, as they call Collectives::split. Throws CollectiveException on all of them:
  /// invalid (rows x columns is not the number of ranks, or ranks want different grids), and what
  /// split throws.
  Grid(Collectives& ranks, int rows, int columns);

  [[nodiscard]] int rows() const noexcept { return rows_; }
  [[nodiscard]] int columns() const noexcept { return columns_; }
  /// This rank's place.
  [[nodiscard]] int row() const noexcept { return place_ / columns_; }
  [[nodiscard]] int column() const noexcept { return place_ % columns_; }
  [[nodiscard]] int rank_at(int row, int column) const noexcept { return row * columns_ + column; }

  [[nodiscard]] Collectives& ranks() const noexcept { return *ranks_; }
  /// The ranks of this rank's row; rank c of it is in column c.
  [[nodiscard]] Collectives& along_row() noexcept { return rows_ == 1 ? *ranks_ : along_row_; }
  /// The ranks of this rank's column; rank r of it is in row r.
  [[nodiscard]] Collectives& along_column() noexcept {
    return columns_ == 1 ? *ranks_ : along_column_;
  }
  /// Whether the communicator still has the ranks that the grid was made of.
  [[nodiscard]] bool whole() const { return ranks_->size() == rows_ * columns_; }

 private:
  Collectives* ranks_;
  int rows_, columns_;
  int place_ = 0;
  Group along_row_, along_column_;
};

}  // namespace troupe::distributed
