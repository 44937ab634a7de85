#pragma once

#include <cstdint>
#include <vector>

#include <troupe/troupe.hpp>

#include "coloured_grid.hpp"

namespace troupe::cg {

/// Products and multigrid cycles on rows that are ordered by colours, by kernels of the program's
/// own. All ranks make the same calls, which submit and return.
///
/// A cycle is that of Multigrid, term by term. It reads less of the matrix than its sweeps would
/// one by one, because some sums of a row over its columns are the same again:
/// - A sweep from 0 reads lower colours on its way forward and higher ones on its way back.
/// - A sweep reads lower colours only forward: they do not change on the way back (Conrad and
///   Wallach, Numer. Math. 27, 1977).
/// - For the sweep after the coarser grid, the sums over higher colours are those of the way back
///   before it, but for the points that the coarser grid has corrected: the last colour.
/// - The coarser grid wants the residual at the points of the last colour alone.
class ColouredOperator {
 public:
  /// Waits for the device. Throws Exception. `kernels` outlive the operator.
  template <troupe::IndexElement I>
  ColouredOperator(Runtime& runtime, const HpcgKernels& kernels,
                   const std::vector<HpcgGrid<I>>& grids);

  [[nodiscard]] std::int64_t rows() const { return levels_[0].grid.rows; }
  /// y = A x
  void multiply(const GpuRef<double>& x, const GpuRef<double>& y);
  /// z = one cycle for A z = r from z = 0.
  void precondition(const GpuRef<double>& r, const GpuRef<double>& z) { cycle(0, r, z); }
  void register_scratch(Checkpoint& checkpoint);

  /// A vector in the old order in that of colours.
  [[nodiscard]] GpuRef<double> in_order(const GpuRef<double>& x) const;
  /// Random numbers that depend on seed and global row alone.
  void randomise(std::int64_t seed, const GpuRef<double>& x) const;
  /// The vector times what HPCG's spectral test multiplies the diagonal, and the right side, by.
  [[nodiscard]] GpuRef<double> exaggerated(const GpuRef<double>& x) const;
  /// The diagonal of the finest grid.
  [[nodiscard]] const GpuRef<double>& diagonal() const { return levels_[0].grid.diagonal; }
  void set_diagonal(const GpuRef<double>& diagonal) { levels_[0].grid.diagonal = diagonal; }

 private:
  struct Level {
    ColouredGrid grid;
    GpuRef<double> higher;      ///< a row's sum over higher colours after a sweep from 0
    GpuRef<double> rest;        ///< its right side less lower colours
    GpuRef<double> correction;  ///< from the coarser grid, of the last colour
    GpuRef<double> r, z;        ///< but of the finest grid, where they are the caller's
    GpuRef<double> outgoing, halo, foreign;  ///< the last: sums of boundary rows over the halo
  };

  void cycle(std::size_t level, const GpuRef<double>& r, const GpuRef<double>& z);
  void sweep_from_zero(Level& level, const GpuRef<double>& r, const GpuRef<double>& z);
  void restrict_residual(Level& level, Level& coarse, const GpuRef<double>& r,
                         const GpuRef<double>& z);
  void sweep_again(Level& level, const GpuRef<double>& r, const GpuRef<double>& z);
  /// `halo`: what `level.foreign` has belongs to it.
  void forward_again(Level& level, const RowsOfColour& colour, bool halo, const GpuRef<double>& r,
                     const GpuRef<double>& z);
  /// Sends `outgoing` to the neighbours, and receives theirs into `halo`.
  void exchange(Level& level);
  /// Adds up what the halo contributes to rows, of those that have one from number `begin` on.
  void sum_foreign(Level& level, std::int32_t begin);
  template <class... Arguments>
  void launch(const Kernel& kernel, const LaunchOptions& how, const Arguments&... arguments) const {
    device_->launch(kernel, how, arguments...);
  }

  Device* device_;
  World* world_;
  const HpcgKernels* kernels_;
  std::vector<Level> levels_;  ///< finest first
  GpuRef<double> none_;        ///< for what there is not where no rank has neighbours
  GpuRef<std::int32_t> no_rows_;
};

}  // namespace troupe::cg
