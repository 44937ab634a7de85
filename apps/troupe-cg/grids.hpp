#pragma once

#include <cstdint>
#include <vector>

#include "partition.hpp"
#include "stencil.hpp"

namespace troupe::cg {

/// This rank's part of a grid that is coarser than another one.
template <class Index>
struct CoarseGrid {
  LocalProblem<Index> problem;
  /// For each row (local new) the row of the finer grid that is the same point.
  std::vector<Index> fine;
};

/// How many grids a multigrid cycle has at most, the finest one among them: as in HPCG.
inline constexpr std::int32_t kMaxGrids = 4;

/// The coarser grids below `problem`, finest first, of the stencil that `whole` describes and whose
/// rows are dealt out by `blocks`; see has_coarser(). The rows of all grids, `problem` among them,
/// get other numbers, by colours: see renumber(). There is no grid of which a rank would have no
/// row. Errors: as make_stencil_problem().
template <class Index>
Result<std::vector<CoarseGrid<Index>>> make_coarse_grids(StencilOptions whole, RowBlocks blocks,
                                                         std::int32_t rank,
                                                         LocalProblem<Index>& problem);

}  // namespace troupe::cg
