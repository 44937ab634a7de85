#include "grids.hpp"

#include <algorithm>
#include <utility>

namespace troupe::cg {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

template <class Index>
void order_by_colours(const StencilOptions& grid, LocalProblem<Index>& problem) {
  std::vector<std::int32_t> colours(at(problem.rows));
  for_ranges(grid.threads, problem.rows, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row)
      colours[at(row)] = colour(grid, problem.first_row + row);
  });
  renumber(problem, std::span<const std::int32_t>(colours), grid.threads);
}

/// Directly where every rank has its own box.
template <class Index>
Result<LocalProblem<Index>> make_problem(StencilOptions whole, const RowBlocks& blocks,
                                         std::int32_t rank) {
  if (whole.ranks == blocks.ranks) {
    whole.rank = rank;
    return make_stencil_problem<Index>(whole);
  }
  const auto rows = stencil_rows(whole, blocks, rank);
  if (!rows) return rows.error();
  return partition<Index>(*rows, blocks, rank);
}

bool leaves_none_without_rows(const RowBlocks& blocks) {
  for (std::int32_t rank = 0; rank < blocks.ranks; ++rank) {
    if (blocks.count(rank) == 0) return false;
  }
  return true;
}

}  // namespace

template <class Index>
Result<std::vector<CoarseGrid<Index>>> make_coarse_grids(StencilOptions whole, RowBlocks blocks,
                                                         std::int32_t rank,
                                                         LocalProblem<Index>& problem) {
  order_by_colours(whole, problem);
  std::vector<CoarseGrid<Index>> grids;
  auto fine_first = problem.first_row;
  auto fine_numbers = new_numbers(problem);
  while (std::ssize(grids) + 1 < kMaxGrids && has_coarser(whole)) {
    auto coarse_blocks = coarser_blocks(whole, blocks);
    if (!leaves_none_without_rows(coarse_blocks)) break;
    auto made = make_problem<Index>(coarser(whole), coarse_blocks, rank);
    if (!made) return made.error();
    CoarseGrid<Index> grid{std::move(*made), {}};
    order_by_colours(coarser(whole), grid.problem);
    grid.fine.reserve(at(grid.problem.rows));
    for (const auto old_row : grid.problem.permutation) {
      const auto row = fine_row(whole, grid.problem.first_row + old_row) - fine_first;
      grid.fine.push_back(fine_numbers[at(row)]);
    }
    fine_first = grid.problem.first_row;
    fine_numbers = new_numbers(grid.problem);
    grids.push_back(std::move(grid));
    whole = coarser(whole);
    blocks = std::move(coarse_blocks);
  }
  return grids;
}

template Result<std::vector<CoarseGrid<std::int32_t>>> make_coarse_grids(
    StencilOptions, RowBlocks, std::int32_t, LocalProblem<std::int32_t>&);
template Result<std::vector<CoarseGrid<std::int64_t>>> make_coarse_grids(
    StencilOptions, RowBlocks, std::int32_t, LocalProblem<std::int64_t>&);

}  // namespace troupe::cg
