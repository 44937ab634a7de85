#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/distributed/grid.hpp>
#include <troupe/distributed/layout.hpp>
#include <troupe/lib/matrix.hpp>

namespace troupe::distributed {

/// This rank's part of a matrix that is spread over a grid. It owns its buffer, which always fits
/// the layout: what is wrong with arguments is therefore seen by all ranks alike. Refers to the
/// device and the grid, which must outlive it. T: float, double and their complex types.
template <FieldElement T>
class Matrix {
 public:
  /// Its contents are undefined. All ranks of the grid call it, with the same layout. Throws
  /// CollectiveException on all of them: invalid (the layout), out_of_memory.
  Matrix(Device& device, Grid& grid, const Layout& layout, std::string_view name = {});
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] Grid& grid() const noexcept { return *grid_; }
  /// local_rows() x local_columns() elements, column-major without gaps; for a Checkpoint too.
  [[nodiscard]] GpuRef<T>& local() noexcept { return local_; }
  [[nodiscard]] const GpuRef<T>& local() const noexcept { return local_; }
  [[nodiscard]] std::int64_t local_rows() const noexcept { return rows_.extent_of(grid_->row()); }
  [[nodiscard]] std::int64_t local_columns() const noexcept {
    return columns_.extent_of(grid_->column());
  }
  /// The row or column of the whole that a local one is.
  [[nodiscard]] std::int64_t row_at(std::int64_t local) const noexcept {
    return rows_.index_at(grid_->row(), local);
  }
  [[nodiscard]] std::int64_t column_at(std::int64_t local) const noexcept {
    return columns_.index_at(grid_->column(), local);
  }

  // Between host memory of one rank and all devices, over MPI: for tests, and for what is small.
  // All ranks call these from the program's thread, with the same root, and wait. They throw
  // CollectiveException (invalid) on all ranks if there is no rank `root`.

  /// `whole`: column-major without gaps; at `root` only, elsewhere it is ignored. Throws on all
  /// ranks CollectiveException (invalid: it has another length), on this one Exception as the
  /// device does.
  void scatter(std::span<const T> whole, int root = 0);
  /// All of it, column-major; empty but at `root`.
  [[nodiscard]] std::vector<T> gather(int root = 0) const;

 private:
  Device* device_;
  Grid* grid_;
  Layout layout_;
  Axis rows_, columns_;
  GpuRef<T> local_;
};

}  // namespace troupe::distributed
