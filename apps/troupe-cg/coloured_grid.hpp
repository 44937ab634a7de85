#pragma once

#include <cstdint>
#include <vector>

#include <troupe/troupe.hpp>

#include "hpcg_grids.hpp"
#include "hpcg_kernels.hpp"

namespace troupe::cg {

/// A grid of HPCG's problem with its rows ordered by colours, which the device makes of that in the
/// old order. Needs no more host memory than lists of the surface.
class ColouredGrid {
 public:
  ColouredGrid() = default;
  /// Waits for the device. Throws Exception; Errc::invalid if rows of one colour depend on one
  /// another.
  template <troupe::IndexElement I>
  ColouredGrid(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& grid);

  /// Its last colour is `coarse`, whose grid has its points in `fine`.
  template <troupe::IndexElement I>
  void match(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& coarse,
             const ColouredGrid& coarse_rows);

  [[nodiscard]] const RowsOfColour& colour(int which) const { return colours.of[which]; }
  [[nodiscard]] const RowsOfColour& last() const { return colours.of[kColours - 1]; }
  [[nodiscard]] const HpcgKernels::OfMatrix& kernels(const HpcgKernels& all) const {
    return narrow_offset ? all.narrow : all.wide;
  }
  [[nodiscard]] BufferArgument offset() const {
    return narrow_offset ? read(narrow_offset) : read(wide_offset);
  }

  std::int64_t rows = 0, first_row = 0;
  ColouredRows colours;
  GpuRef<double> value, diagonal;
  /// The column of entry k is base[k / kSliceRows] + offset[k], offsets being 16 bits wide where
  /// all of them are as small, else 32.
  GpuRef<std::int32_t> base, wide_offset;
  GpuRef<std::uint16_t> narrow_offset;
  GpuRef<std::int32_t> new_row, old_row;  ///< from the old number to the new one, and back
  GpuRef<std::int32_t> coarse_row;        ///< of each row of the last colour

  /// Rows with a halo, by colours, and what they have of it: entry k of such a row i is element k n
  /// + i of n. `boundary`: for each row its number among these, or -1.
  std::int64_t boundary_rows = 0;
  GpuRef<std::int32_t> boundary_row, boundary, foreign_count, foreign_column;
  GpuRef<double> foreign_value;
  std::vector<ExchangePlan<std::int32_t>::Part> messages;  ///< the same parts both ways
  GpuRef<std::int32_t> gather;                             ///< rows that others need

 private:
  template <class I>
  void order(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& grid);
  template <class I>
  void fill(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& grid);
  /// From columns to offsets.
  void compress(Device& device, const HpcgKernels& kernels, const GpuRef<std::int32_t>& column);
  template <class I>
  void fill_foreign(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& grid);
};

}  // namespace troupe::cg
