#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <troupe/troupe.hpp>

#include "options.hpp"

namespace troupe::cg {

/// Everything that is known after a solve; the same on all ranks where it matters, printed by rank
/// 0.
struct Report {
  std::string engine, problem;
  int ranks = 0;
  int final_ranks = 0;               ///< fewer, if the world has shrunk
  std::vector<std::string> devices;  ///< one line per rank
  std::int64_t rows = 0, nonzeros = 0;
  std::int64_t iterations = 0;
  bool converged = false;
  double relative_residual = 0;                          ///< of the recurrence
  double true_relative_residual = 0;                     ///< |b - A x| / |b|, computed from scratch
  double relative_error = 0;                             ///< |x - x_true| / |x_true|
  std::vector<std::pair<std::int64_t, double>> history;  ///< (iteration, relative residual)

  double setup_seconds = 0;   ///< reading or generating, partitioning
  double upload_seconds = 0;  ///< to the devices
  double solve_seconds = 0;   ///< the iterations, recoveries included
  double verify_seconds = 0;

  // Rank 0's kernels on their own; 0: not measured.
  double spmv_seconds = 0, spmv_bytes = 0;
  std::string spmv_format;  ///< "sliced ELL" or "CSR"
  double copy_seconds = 0, copy_bytes = 0;

  Preconditioner preconditioner = Preconditioner::none;
  /// Nonzeros of each grid of the multigrid cycle, the finest first; else empty.
  std::vector<std::int64_t> grid_nonzeros;
  std::size_t element_bytes = 8;
  std::uint32_t final_epoch = 0;
  std::vector<Recovery> recoveries;
  std::vector<Corruption> corruptions;
  std::vector<HealthEvent> health;   ///< what GPUs have said
  std::int64_t restarted_from = -1;  ///< the iteration of the saved state; -1: from the start
  std::vector<SavedCheckpoint> checkpoints;  ///< brought to disk

  /// Floating-point operations of one iteration over all ranks, counted as HPCG does (Dongarra,
  /// Heroux, Luszczek, IJHPCA 30(1), 2016): 2 per nonzero, 2 n per dot product, vector update or
  /// combination; of a multigrid cycle 10 per nonzero of each grid, of the coarsest 4.
  [[nodiscard]] double flops_per_iteration() const;
  /// Those of this run: not those before the saved state that it went on from.
  [[nodiscard]] std::int64_t iterations_done() const {
    return iterations - std::max<std::int64_t>(0, restarted_from);
  }
  /// Rate over the whole solve, in 1e9 operations per second.
  [[nodiscard]] double gflops() const;
};

/// The human-readable report.
std::string to_text(const Report& report, const Options& options);
/// The same as JSON.
nlohmann::json to_json(const Report& report, const Options& options);

}  // namespace troupe::cg
