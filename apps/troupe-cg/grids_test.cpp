#include "grids.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::cg {
namespace {

constexpr std::int64_t kPlentyOfMemory = std::int64_t{1} << 40;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

using Point = std::array<std::int64_t, 3>;

/// Where a global row lies in the global grid.
Point point_of(const StencilOptions& grid, std::int64_t row) {
  const auto points = grid.nx * grid.ny * grid.nz;
  const auto box = ProcessGrid::of(grid.ranks).coordinates(static_cast<std::int32_t>(row / points));
  const auto inside = row % points;
  return {box[0] * grid.nx + inside % grid.nx, box[1] * grid.ny + inside / grid.nx % grid.ny,
          box[2] * grid.nz + inside / (grid.nx * grid.ny)};
}

using Operator = std::map<std::pair<Point, Point>, double>;

/// Adds a rank's part, by the places of its points.
void add(const StencilOptions& grid, const LocalProblem<std::int32_t>& problem, Operator& whole) {
  const auto where = [&](std::int64_t local_new) {
    return point_of(grid, problem.first_row + problem.permutation[at(local_new)]);
  };
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    for (auto k = problem.own.row_begin[at(row)]; k < problem.own.row_begin[at(row + 1)]; ++k)
      whole[{where(row), where(problem.own.column[at(k)])}] += problem.own.value[at(k)];
    if (row < problem.interior_rows) continue;
    const auto boundary = at(row - problem.interior_rows);
    for (auto k = problem.foreign.row_begin[boundary]; k < problem.foreign.row_begin[boundary + 1];
         ++k) {
      const auto column = problem.halo_columns[at(problem.foreign.column[at(k)])];
      whole[{where(row), point_of(grid, column)}] += problem.foreign.value[at(k)];
    }
  }
}

/// The stencil on all points of the global grid.
Operator stencil_on(const StencilOptions& grid) {
  const auto ranks = ProcessGrid::of(grid.ranks);
  const Point size{grid.nx * ranks.px, grid.ny * ranks.py, grid.nz * ranks.pz};
  Operator whole;
  for (std::int64_t z = 0; z < size[2]; ++z) {
    for (std::int64_t y = 0; y < size[1]; ++y) {
      for (std::int64_t x = 0; x < size[0]; ++x) {
        for (int d = 0; d < 27; ++d) {
          const Point other{x + d % 3 - 1, y + d / 3 % 3 - 1, z + d / 9 - 1};
          const bool inside = other[0] >= 0 && other[1] >= 0 && other[2] >= 0 &&
                              other[0] < size[0] && other[1] < size[1] && other[2] < size[2];
          if (inside) whole[{{x, y, z}, other}] = d == 13 ? 26 : -1;
        }
      }
    }
  }
  return whole;
}

/// Of no two rows of one colour in the same box does one depend on the other, and the rows of a
/// colour follow one another.
void expect_colours(const StencilOptions& grid, const LocalProblem<std::int32_t>& problem) {
  const auto box = grid.nx * grid.ny * grid.nz;
  const auto global = [&](std::int64_t local_new) {
    return problem.first_row + problem.permutation[at(local_new)];
  };
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    if (row > 0 && row != problem.interior_rows) {
      EXPECT_LE(colour(grid, global(row - 1)), colour(grid, global(row)));
    }
    for (auto k = problem.own.row_begin[at(row)]; k < problem.own.row_begin[at(row + 1)]; ++k) {
      const std::int64_t column = problem.own.column[at(k)];
      if (column == row || global(column) / box != global(row) / box) continue;
      EXPECT_NE(colour(grid, global(column)), colour(grid, global(row)));
    }
  }
}

/// All ranks of a world go on with the stencil that was made for as many as `options` says.
std::size_t expect_grids(StencilOptions options, std::int32_t ranks) {
  SCOPED_TRACE(std::to_string(options.ranks) + " ranks' on " + std::to_string(ranks));
  const auto rows = options.nx * options.ny * options.nz * options.ranks;
  const RowBlocks blocks{rows, ranks};
  std::vector<Operator> operators(1);
  std::vector<std::set<Point>> points(1);
  std::size_t levels = 0;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    auto part = partition<std::int32_t>(stencil_rows(options, blocks, rank).take(), blocks, rank);
    auto finest = std::move(part).take();
    const auto grids = make_coarse_grids(options, blocks, rank, finest).take();
    if (rank == 0) levels = grids.size();
    EXPECT_EQ(grids.size(), levels) << "all ranks have the same grids";
    operators.resize(levels + 1);
    points.resize(levels + 1);
    auto grid = options;
    add(grid, finest, operators[0]);
    expect_colours(grid, finest);
    const auto* finer = &finest;
    for (std::size_t level = 1; level <= levels; ++level) {
      const auto& coarse = grids[level - 1];
      const auto coarse_grid = coarser(grid);
      add(coarse_grid, coarse.problem, operators[level]);
      expect_colours(coarse_grid, coarse.problem);
      EXPECT_EQ(std::ssize(coarse.fine), coarse.problem.rows);
      for (std::int64_t row = 0; row < coarse.problem.rows; ++row) {
        const auto there =
            point_of(coarse_grid, coarse.problem.first_row + coarse.problem.permutation[at(row)]);
        const auto in_finer =
            point_of(grid, finer->first_row + finer->permutation[at(coarse.fine[at(row)])]);
        EXPECT_EQ(in_finer, (Point{2 * there[0], 2 * there[1], 2 * there[2]}));
        EXPECT_TRUE(points[level].insert(there).second) << "one rank has it";
      }
      finer = &coarse.problem;
      grid = coarse_grid;
    }
  }
  auto grid = options;
  for (std::size_t level = 0; level <= levels; ++level) {
    EXPECT_EQ(operators[level], stencil_on(grid)) << "grid " << level;
    grid = coarser(grid);
  }
  return levels;
}

TEST(CoarseGrids, AreTheStencilOnEverySecondPoint) {
  EXPECT_EQ(expect_grids({8, 8, 8, 0, 1, 1, kPlentyOfMemory}, 1), 2u);
  EXPECT_EQ(expect_grids({4, 8, 12, 0, 2, 1, kPlentyOfMemory}, 2), 1u);
  EXPECT_EQ(expect_grids({4, 4, 4, 0, 8, 2, kPlentyOfMemory}, 8), 1u);
  EXPECT_EQ(expect_grids({16, 4, 8, 0, 3, 1, kPlentyOfMemory}, 3), 1u);
  EXPECT_EQ(expect_grids({5, 4, 4, 0, 2, 1, kPlentyOfMemory}, 2), 0u) << "an odd number of points";
}

TEST(CoarseGrids, GoOnWithOtherNumbersOfRanks) {
  for (const std::int32_t ranks : {1, 2, 3, 5})
    EXPECT_EQ(expect_grids({4, 4, 8, 0, 4, 1, kPlentyOfMemory}, ranks), 1u);
  EXPECT_EQ(expect_grids({8, 8, 8, 0, 2, 1, kPlentyOfMemory}, 3), 2u);
  EXPECT_EQ(expect_grids({4, 4, 4, 0, 1, 1, kPlentyOfMemory}, 17), 0u)
      << "some rank would have no point";
}

TEST(CoarseGrids, AreAtMostFour) {
  LocalProblem<std::int32_t> finest =
      make_stencil_problem<std::int32_t>({32, 32, 32, 0, 1, 2, kPlentyOfMemory}).take();
  const auto grids =
      make_coarse_grids({32, 32, 32, 0, 1, 2, kPlentyOfMemory}, {32 * 32 * 32, 1}, 0, finest)
          .take();
  ASSERT_EQ(grids.size(), 3u);
  EXPECT_EQ(grids.back().problem.rows, 4 * 4 * 4);
}

}  // namespace
}  // namespace troupe::cg
