#include "hpcg_result.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::cg {
namespace {

// What CheckProblem's counterparts TestCG, TestSymmetry and TestNorms allow.
constexpr std::int64_t kPlainIterations = 12, kPreconditionedIterations = 2;
constexpr double kDeparture = 1, kVariance = 1e-6;

/// Of the grids but the coarsest, and of that, what a multigrid cycle does.
template <class Fine, class Coarsest>
double over_grids(const HpcgResult& r, Fine fine, Coarsest coarsest) {
  double sum = 0;
  for (std::size_t grid = 0; grid < r.grid_rows.size(); ++grid) {
    const auto rows = static_cast<double>(r.grid_rows[grid]),
               nonzeros = static_cast<double>(r.grid_nonzeros[grid]);
    sum += grid + 1 == r.grid_rows.size() ? coarsest(rows, nonzeros) : fine(rows, nonzeros);
  }
  return sum * static_cast<double>(r.iterations());
}

/// Products by the matrix: one in each iteration and one before the first.
double products(const HpcgResult& r) {
  return static_cast<double>(r.iterations()) + static_cast<double>(r.sets.size());
}
/// Dot products, and as many updates of vectors.
double dots(const HpcgResult& r) {
  return 3 * static_cast<double>(r.iterations()) + static_cast<double>(r.sets.size());
}

}  // namespace

HpcgCounts operations(const HpcgResult& r) {
  const auto rows = static_cast<double>(r.grid_rows.at(0)),
             nonzeros = static_cast<double>(r.grid_nonzeros.at(0));
  // Two sweeps and a residual, at 4 and 2 operations for each nonzero.
  return {dots(r) * 2 * rows, dots(r) * 2 * rows, products(r) * 2 * nonzeros,
          over_grids(
              r, [](double, double n) { return 10 * n; }, [](double, double n) { return 4 * n; })};
}

HpcgCounts bytes_read(const HpcgResult& r) {
  const auto rows = static_cast<double>(r.grid_rows.at(0)),
             nonzeros = static_cast<double>(r.grid_nonzeros.at(0));
  const double entry = sizeof(double) + static_cast<double>(r.index_bytes);
  return {dots(r) * 2 * rows * sizeof(double), dots(r) * 2 * rows * sizeof(double),
          products(r) * (nonzeros * entry + rows * sizeof(double)),
          over_grids(
              r, [&](double m, double n) { return 5 * n * entry + 3 * m * sizeof(double); },
              [&](double m, double n) { return 2 * n * entry + m * sizeof(double); })};
}

HpcgCounts bytes_written(const HpcgResult& r) {
  const auto rows = static_cast<double>(r.grid_rows.at(0));
  // HPCG counts a value for each nonzero, not for each row, for the residual and the second sweep.
  return {dots(r) * sizeof(double), dots(r) * rows * sizeof(double),
          products(r) * rows * sizeof(double),
          over_grids(
              r, [](double m, double n) { return (m + 2 * n) * sizeof(double); },
              [](double m, double) { return m * sizeof(double); })};
}

bool HpcgResult::spectral_test_passed() const {
  return plain_iterations <= kPlainIterations &&
         preconditioned_iterations <= kPreconditionedIterations;
}

bool HpcgResult::symmetry_test_passed() const {
  return spmv_departure <= kDeparture && multigrid_departure <= kDeparture;
}

std::array<double, 2> HpcgResult::residual_moments() const {
  const auto count = static_cast<double>(sets.size());
  const double first = sets.at(0).scaled_residual;
  double mean = 0, variance = 0;
  for (const auto& set : sets) mean += set.scaled_residual - first;
  mean = first + mean / count;
  for (const auto& set : sets)
    variance += (set.scaled_residual - mean) * (set.scaled_residual - mean) / count;
  return {mean, variance};
}

bool HpcgResult::reproducible() const {
  return residual_moments()[1] < kVariance;
}

bool HpcgResult::valid() const {
  return spectral_test_passed() && symmetry_test_passed() && reached && reproducible();
}

double HpcgResult::gflops() const {
  const double counted = operations(*this).total() * static_cast<double>(kReferenceIterations) /
                         static_cast<double>(set_iterations);
  const double overhead =
      static_cast<double>(sets.size()) * (optimisation_seconds + setup_seconds) / 10;
  return counted / (seconds + overhead) / 1e9;
}

RecoveryCost recovery_cost(const HpcgResult& r) {
  RecoveryCost cost{0, -1};
  std::vector<double> struck, calm;
  auto epoch = r.first_epoch;
  for (const auto& set : r.sets) {
    (set.epoch == epoch ? calm : struck).push_back(set.seconds);
    epoch = set.epoch;
  }
  cost.struck_sets = std::ssize(struck);
  if (calm.empty() || struck.empty()) return cost;
  std::sort(calm.begin(), calm.end());
  const double median = (calm[(calm.size() - 1) / 2] + calm[calm.size() / 2]) / 2;
  cost.seconds = std::accumulate(struck.begin(), struck.end(), 0.0) -
                 static_cast<double>(struck.size()) * median;
  return cost;
}

}  // namespace troupe::cg
