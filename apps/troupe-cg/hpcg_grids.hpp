#pragma once

#include <cstdint>
#include <vector>

#include <troupe/troupe.hpp>

#include "distributed_matrix.hpp"
#include "hpcg_kernels.hpp"
#include "stencil.hpp"

/// HPCG's problem, made on the device.
namespace troupe::cg {

/// This rank's part of one grid, its rows in the old order, which is HPCG's.
template <troupe::IndexElement I>
struct HpcgGrid {
  StencilOptions options;
  StencilSize size;
  StencilBox box;
  ExchangePlan<I> plan;
  troupe::CsrMatrix<double, I> own;
  troupe::CsrMatrix<double, I> foreign;  ///< of all rows; empty if there is no halo
  GpuRef<double> diagonal, b;
  GpuRef<I> fine;  ///< for each row that of the finer grid; empty for the finest

  [[nodiscard]] std::int64_t rows() const { return size.rows; }
  [[nodiscard]] std::int64_t first_row() const { return options.rank * size.rows; }
};

/// The sizes of the grids that HPCG has below `finest`, that among them. Errors: as stencil_size().
Result<std::vector<StencilSize>> hpcg_sizes(StencilOptions finest);

/// Makes them, the finest first. Submits, uploads lists of the surface and returns. `finest`: for
/// which hpcg_sizes() has no error. Throws Exception.
template <troupe::IndexElement I>
std::vector<HpcgGrid<I>> make_hpcg_grids(Device& device, const HpcgKernels& kernels,
                                         StencilOptions finest);

}  // namespace troupe::cg
