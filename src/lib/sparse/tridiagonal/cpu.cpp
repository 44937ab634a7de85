#include <algorithm>
#include <array>
#include <complex>
#include <limits>
#include <string>
#include <vector>
// Else it takes C's complex types.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <cblas.h>
#include <lapacke.h>

#include "lib/sparse/cpu.hpp"

/// Matrices with three or five diagonals on the cpu engine: LAPACK's gbsv, which pivots, for all of
/// them.
namespace troupe::host::cpu {
namespace {

/// LAPACKE's function by type.
template <class T>
constexpr auto* kGbsv = LAPACKE_sgbsv_work;
template <>
constexpr auto* kGbsv<double> = LAPACKE_dgbsv_work;
template <>
constexpr auto* kGbsv<std::complex<float>> = LAPACKE_cgbsv_work;
template <>
constexpr auto* kGbsv<std::complex<double>> = LAPACKE_zgbsv_work;

Result<void> require_lapack_int(std::initializer_list<std::int64_t> extents) {
  if (std::max(extents) <= std::numeric_limits<lapack_int>::max()) return {};
  return Error{Errc::unsupported, 0, "the cpu engine's LAPACK takes extents below 2^31"};
}

/// B = the X of A X = B, or NaN if A is singular. `element(d, i)` gives what stands in row i of the
/// diagonal that is d above the main one. B is column-major.
template <class T, class ElementAt>
void solve_band(std::int64_t n, std::int64_t reach, std::int64_t columns, ElementAt&& element, T* b,
                std::int64_t leading) {
  const auto wide = 3 * reach + 1;  // what an exchange of rows fills in, too
  std::vector<T> band(static_cast<std::size_t>(wide * n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (auto j = std::max<std::int64_t>(0, i - reach); j <= std::min(n - 1, i + reach); ++j)
      band[static_cast<std::size_t>(j * wide + 2 * reach + i - j)] = element(j - i, i);
  }
  std::vector<lapack_int> pivots(static_cast<std::size_t>(n));
  const auto to_int = [](std::int64_t value) { return static_cast<lapack_int>(value); };
  const auto info =
      kGbsv<T>(LAPACK_COL_MAJOR, to_int(n), to_int(reach), to_int(reach), to_int(columns),
               band.data(), to_int(wide), pivots.data(), b, to_int(leading));
  if (info == 0) return;
  for (std::int64_t j = 0; j < columns; ++j)
    std::fill_n(b + j * leading, n, T(std::numeric_limits<decltype(std::abs(T{}))>::quiet_NaN()));
}

/// Solves for one system after the other: number j starts at element j * start, and the rows of
/// each are `step` apart. The main diagonal is in the middle.
template <class T, std::size_t kDiagonals>
void solve_each(std::int64_t n, std::int64_t batch, std::int64_t start, std::int64_t step,
                const std::array<const T*, kDiagonals>& diagonals, T* x) {
  constexpr auto kReach = static_cast<std::int64_t>(kDiagonals / 2);
  std::vector<T> right(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < batch; ++j) {
    T* const its_x = x + j * start;
    for (std::int64_t i = 0; i < n; ++i) right[static_cast<std::size_t>(i)] = its_x[i * step];
    const auto element = [&](std::int64_t d, std::int64_t i) {
      return diagonals[static_cast<std::size_t>(d + kReach)][j * start + i * step];
    };
    solve_band<T>(n, kReach, 1, element, right.data(), std::max<std::int64_t>(1, n));
    for (std::int64_t i = 0; i < n; ++i) its_x[i * step] = right[static_cast<std::size_t>(i)];
  }
}

template <class T, class Op>
std::array<const T*, 3> diagonals_of(const Op& op, const Call& call) {
  return {call.at<const T>(op.lower), call.at<const T>(op.diagonal), call.at<const T>(op.upper)};
}

}  // namespace

Sparse::Sparse(Services& its_services) : services(its_services) {
  ::openblas_set_num_threads(std::max(1, services.threads()));  // LAPACK stands on it
}

Dependencies tridiagonal_dependencies() {
  lapack_int major = 0, minor = 0, patch = 0;
  LAPACKE_ilaver(&major, &minor, &patch);
  return {
      {"LAPACK", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch),
       &LAPACKE_ilaver},
      {"OpenBLAS", ::openblas_get_config(), &::openblas_get_config}};
}

Result<void> run(const sparse::Gtsv& op, const Call& call, Sparse& library) {
  if (auto right = require_lapack_int({op.n, op.nrhs, op.ldb}); !right.ok()) return right;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, d = diagonals_of<T>(op, call), b = call.at<T>(op.b)] {
      const auto element = [&](std::int64_t diagonal, std::int64_t i) {
        return d[static_cast<std::size_t>(diagonal + 1)][i];
      };
      solve_band<T>(op.n, 1, op.nrhs, element, b, op.ldb);
    });
  });
}

Result<void> run(const sparse::GtsvStrided& op, const Call& call, Sparse& library) {
  if (auto right = require_lapack_int({op.n}); !right.ok()) return right;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, d = diagonals_of<T>(op, call), x = call.at<T>(op.x)] {
      solve_each<T>(op.n, op.batch, op.stride, 1, d, x);
    });
  });
}

Result<void> run(const sparse::GtsvInterleaved& op, const Call& call, Sparse& library) {
  if (auto right = require_lapack_int({op.n}); !right.ok()) return right;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, d = diagonals_of<T>(op, call), x = call.at<T>(op.x)] {
      solve_each<T>(op.n, op.batch, 1, op.batch, d, x);
    });
  });
}

Result<void> run(const sparse::GpsvInterleaved& op, const Call& call, Sparse& library) {
  if (auto right = require_lapack_int({op.n}); !right.ok()) return right;
  return with_number(op.dtype, [&]<class T>(T) {
    const std::array<const T*, 5> d{call.at<const T>(op.lower2), call.at<const T>(op.lower),
                                    call.at<const T>(op.diagonal), call.at<const T>(op.upper),
                                    call.at<const T>(op.upper2)};
    return library.services.submit(
        call, [op, d, x = call.at<T>(op.x)] { solve_each<T>(op.n, op.batch, 1, op.batch, d, x); });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
