#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <troupe/troupe.hpp>

#include "grids.hpp"
#include "options.hpp"
#include "sell.hpp"
#include "stencil.hpp"

namespace troupe::cg {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

using AnyProblem = std::variant<LocalProblem<std::int32_t>, LocalProblem<std::int64_t>>;

/// Threads for generating and reading: this rank's share of the cores it may use.
int host_threads(const World& world);

/// The stencil of `ranks` ranks, its rank still 0.
StencilOptions stencil_options(const Options& options, const World& world, int ranks);

/// This rank's part. The stencil is made for `ranks` ranks, though others may go on with it.
Result<AnyProblem> load(const Options& options, const World& world, int ranks);

/// The grids of the multigrid cycle below that of `problem`; none with another preconditioner.
/// The rows of `problem` get other numbers.
template <class I>
Result<std::vector<CoarseGrid<I>>> coarse_grids(const Options& options, const World& world,
                                                int ranks, LocalProblem<I>& problem) {
  if (options.preconditioner != Preconditioner::multigrid) return std::vector<CoarseGrid<I>>{};
  const auto stencil = stencil_options(options, world, ranks);
  return make_coarse_grids(stencil, RowBlocks{problem.global_rows, world.size()}, world.rank(),
                           problem);
}

/// The device memory that a solve will take, against what there is, before anything is allocated.
template <class T, class I>
Result<void> check_memory(const LocalProblem<I>& problem, const std::vector<CoarseGrid<I>>& coarse,
                          const Options& options, Runtime& runtime) {
  const bool multigrid = options.preconditioner == Preconditioner::multigrid;
  const auto bytes_of = [](const LocalProblem<I>& part, std::int64_t stored,
                           std::uint64_t vectors) {
    const auto rows = static_cast<std::uint64_t>(part.rows),
               halo = static_cast<std::uint64_t>(part.halo_columns.size());
    return static_cast<std::uint64_t>(stored) * (sizeof(T) + sizeof(I)) + 2 * rows * sizeof(I) +
           vectors * rows * sizeof(T) + 3 * halo * sizeof(T);
  };
  // b, x, r, p, q, two copies of x, r, p; with a preconditioner z and the diagonal.
  std::uint64_t vectors = options.preconditioner == Preconditioner::none ? 11 : 13;
  std::uint64_t need = 0;
  if (multigrid) {
    // The analysis of a triangle takes about as much as the matrix; there are two. And a residual.
    vectors += 1;
    need = bytes_of(problem, 3 * problem.own.nonzeros() + problem.foreign.nonzeros(), vectors);
    for (const auto& grid : coarse) {
      need += bytes_of(grid.problem,
                       3 * grid.problem.own.nonzeros() + grid.problem.foreign.nonzeros(), 4);
    }
  } else {
    need = bytes_of(problem, stored_entries(problem.own) + problem.foreign.nonzeros(), vectors);
  }
  auto there = runtime.device().info().memory_bytes;
  const auto limit = runtime.config().bytes("memory-limit");
  if (limit != 0) there = std::min(there, limit);
  if (need <= there) return {};
  return Error{Errc::out_of_memory, 0,
               "the problem needs " + std::to_string(need >> 20) + " MiB on each device, of " +
                   std::to_string(there >> 20) + " MiB"};
}

}  // namespace troupe::cg
