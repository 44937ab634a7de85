#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <troupe/error.hpp>
#include <troupe/recovery.hpp>

/// What a rating run has measured, and what HPCG makes of it: the models and the report of
/// ReportResults.cpp in HPCG 3.1 (github.com/hpcg-benchmark/hpcg; the rules are those of Heroux,
/// Dongarra, Luszczek, HPCG Technical Specification, SAND2013-8752).
namespace troupe::cg {

struct Options;

inline constexpr std::int64_t kReferenceIterations = 50;
/// So many seconds the timed sets of a run take that counts.
inline constexpr double kOfficialSeconds = 1800;

/// The parts of a set that HPCG times. A dot product consists of `dot` and `all_reduce`.
enum class Part : std::size_t { dot, all_reduce, waxpby, spmv, multigrid };
inline constexpr std::size_t kParts = 5;

struct HpcgResult {
  std::string engine;
  std::vector<std::string> devices;  ///< one line per rank
  std::array<std::int64_t, 3> points{};
  std::int32_t ranks = 0;
  std::int64_t index_bytes = 4;
  std::vector<std::int64_t> grid_rows, grid_nonzeros;  ///< of all ranks, the finest first
  double held_bytes = 0;                               ///< in the device memory of all ranks

  // Before the timed sets; seconds are rank 0's.
  double setup_seconds = 0, optimisation_seconds = 0;
  double reference_kernels_seconds = 0;   ///< a product and a cycle of the reference
  double reference_residual = 0;          ///< scaled, after kReferenceIterations
  std::vector<double> reference_history;  ///< after each of them, if that is wanted
  std::int64_t plain_iterations = 0, preconditioned_iterations = 0;  ///< of the spectral test, most
  double spmv_departure = 0, multigrid_departure = 0;
  bool reached = false;                ///< the reference's residual
  std::int64_t set_iterations = 0;     ///< that take a set at least as far as the reference
  std::array<double, kParts> parts{};  ///< of one set in which each Part is waited for
  std::array<double, 3> all_reduce{};  ///< of that: least, most, mean of all ranks

  struct Set {
    double seconds = 0, scaled_residual = 0;
    std::uint32_t epoch = 0;  ///< at its end
  };
  std::vector<Set> sets;
  double seconds = 0;  ///< of all sets, recoveries included
  std::uint32_t first_epoch = 0;
  double relative_error = 0;  ///< |x - 1| / |1| after the last set
  std::int64_t commit_every = 0;
  std::vector<Recovery> recoveries;

  [[nodiscard]] std::int64_t iterations() const {
    return static_cast<std::int64_t>(sets.size()) * set_iterations;
  }
  [[nodiscard]] bool spectral_test_passed() const;
  [[nodiscard]] bool symmetry_test_passed() const;
  /// Mean and variance of the scaled residual over the sets.
  [[nodiscard]] std::array<double, 2> residual_moments() const;
  [[nodiscard]] bool reproducible() const;
  [[nodiscard]] bool valid() const;
  /// HPCG's rating: operations of the reference's iterations alone, over the time of the sets and,
  /// for each ten of them, of setup and optimisation.
  [[nodiscard]] double gflops() const;
};

/// Operations, or bytes, of all sets by HPCG's models.
struct HpcgCounts {
  double dot = 0, waxpby = 0, spmv = 0, multigrid = 0;
  [[nodiscard]] double total() const { return dot + waxpby + spmv + multigrid; }
};
HpcgCounts operations(const HpcgResult& result);
HpcgCounts bytes_read(const HpcgResult& result);
HpcgCounts bytes_written(const HpcgResult& result);

/// What recoveries have cost.
struct RecoveryCost {
  std::int64_t struck_sets = 0;  ///< that had one
  /// By how much those were slower than the median of the others; negative if there is no other.
  double seconds = 0;
};
RecoveryCost recovery_cost(const HpcgResult& result);

/// The report in HPCG's sections, with HPCG's names.
nlohmann::ordered_json hpcg_document(const HpcgResult& result);
/// The same as HPCG writes it: a line of KEY::KEY=VALUE for each value.
std::string to_text(const HpcgResult& result);
/// The figures of the run, with that document as "hpcg".
nlohmann::json to_json(const HpcgResult& result);

}  // namespace troupe::cg
