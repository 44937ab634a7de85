#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <troupe/error.hpp>

#include "partition.hpp"

namespace troupe::cg {

/// The ranks' arrangement in space: rank = x + px * (y + py * z).
///
/// Chosen like HPCG's: of all px * py * pz = ranks the one with the smallest sum (least surface),
/// then with the smallest largest factor, px <= py <= pz. Depends on the number of ranks alone.
struct ProcessGrid {
  std::int32_t px = 1, py = 1, pz = 1;
  static ProcessGrid of(std::int32_t ranks);
  [[nodiscard]] std::array<std::int32_t, 3> coordinates(std::int32_t rank) const noexcept;
};

/// The 27-point operator of the HPCG benchmark (Dongarra, Heroux, Luszczek, IJHPCA 30(1), 2016): 26
/// on the diagonal, -1 for each of up to 26 neighbours, points outside the global grid left out
/// (Dirichlet). Symmetric positive definite. Every rank has nx * ny * nz points; the ranks form a
/// ProcessGrid.
///
/// Global rows are numbered rank by rank, so rank r owns [r n, (r + 1) n) with n = nx ny nz, which
/// is what RowBlocks{ranks * n, ranks} says; within a rank x runs fastest, then y, then z.
struct StencilOptions {
  std::int64_t nx = 0, ny = 0, nz = 0;  ///< points per rank and axis
  std::int32_t rank = 0, ranks = 1;
  std::int32_t threads = 1;             ///< that generate the matrix
  std::int64_t memory_limit_bytes = 0;  ///< host memory that this rank may use for the result
};

/// What a stencil problem will need, known before anything is allocated.
struct StencilSize {
  std::int64_t rows = 0, interior_rows = 0, halo = 0;
  std::int64_t own_nonzeros = 0, foreign_nonzeros = 0, global_rows = 0, global_nonzeros = 0;

  [[nodiscard]] bool needs_64_bit() const noexcept;
  /// Host memory of the LocalProblem with indices of `index_bytes`.
  [[nodiscard]] std::int64_t bytes(std::int64_t index_bytes) const noexcept;
};

/// Errc::invalid if a dimension, the thread count or the rank is out of range or the global problem
/// is too large for 64-bit byte counts; Errc::out_of_memory if it exceeds the memory limit even
/// with int32 indices.
Result<StencilSize> stencil_size(const StencilOptions& options);

/// Generates this rank's part directly, without global columns, on options.threads threads. The
/// same as partition() of the same rows. Errors as stencil_size(), and Errc::invalid if Index is
/// too narrow.
template <class Index>
Result<LocalProblem<Index>> make_stencil_problem(const StencilOptions& options);

/// The rows that `blocks` gives to `rank`, of the problem that `whole` makes on whole.ranks ranks
/// (whole.rank does not matter): for partition(), where other ranks than those that the problem was
/// made for go on with it. Slower than make_stencil_problem(), on one thread. Errors as
/// stencil_size().
Result<LocalRows> stencil_rows(const StencilOptions& whole, const RowBlocks& blocks,
                               std::int32_t rank);

/// A rank's box of points and what adjoins it, as kernels take it by value. Directions are numbered
/// 9 (z + 1) + 3 (y + 1) + x + 1 with x, y, z in {-1, 0, 1}.
struct StencilBox {
  std::int64_t points[3];           ///< along x, y, z
  std::int32_t lower[3], upper[3];  ///< 1: another rank's box adjoins there
  std::int64_t halo[27];            ///< where in the halo vector the points of each direction begin
};

/// The lists by which ranks exchange for a product. `box.halo` and `halo` are those of
/// make_stencil_problem(), which makes the matrix too. `gather` are the local old rows that others
/// need: for the rank of halo[i] those from halo[i].receive_offset on, as many as come from it.
struct StencilExchange {
  StencilBox box{};
  std::vector<Neighbour> halo;
  std::vector<std::int64_t> gather;
};
/// `options` as make_stencil_problem() takes them.
StencilExchange stencil_exchange(const StencilOptions& options);

/// Multigrid on the stencil, as HPCG has it: of a rank's points those with even coordinates are the
/// points of the next coarser grid, so every rank has an eighth as many, and the operator there is
/// the same stencil.
///
/// Whether there is a coarser grid: all three numbers of points are even, and are not 2, so that no
/// grid is left without an inner edge.
[[nodiscard]] bool has_coarser(const StencilOptions& fine) noexcept;
/// The options of the next coarser grid.
[[nodiscard]] StencilOptions coarser(const StencilOptions& fine) noexcept;
/// The global row of the fine grid where a point of the coarser grid lies.
[[nodiscard]] std::int64_t fine_row(const StencilOptions& fine, std::int64_t coarse_row) noexcept;
/// The blocks of the coarser grid: each point belongs to the rank that owns it in the fine grid.
[[nodiscard]] RowBlocks coarser_blocks(const StencilOptions& fine, const RowBlocks& blocks);
/// One of eight colours for a global row: points of a box that are neighbours have different ones.
/// The points of the coarser grid have the last colour. A symmetric sweep ends with the first one
/// and leaves a residual of 0 there: if the coarser grid had these points, it would have nothing to
/// correct. All orders with its points last were tried for HPCG with 32^3 points, and the best ten
/// of them with 64^3; this one is the best.
[[nodiscard]] std::int32_t colour(const StencilOptions& grid, std::int64_t row) noexcept;

}  // namespace troupe::cg
