#pragma once

#include "catalogue/catalogue.hpp"

/// Matrices of factorisations for the catalogue, with fillers where nothing may be written.
namespace troupe::catalogue {

/// A half of it, with fillers elsewhere.
template <class T>
MatrixRef<GpuRef<T>> put_half(Trial& t, const Dense& a, blas::Uplo uplo, std::int64_t leading) {
  const reference::Stored half{blas::Storage::full, uplo, a.rows, 0, leading};
  return {t.put<T>(half.spread(a)), a.rows, a.columns, leading};
}

/// `may_be_written(i, j)`: of all else in memory the fillers must still be there.
template <class T, class MayBeWritten>
void demand_fillers(Trial& t, const MatrixRef<GpuRef<T>>& at, MayBeWritten may_be_written) {
  t.demand(
      "elements that were written beside the matrix",
      [&t, at, may_be_written] {
        const auto memory = t.got(at.buffer);
        double written = 0;
        for (std::int64_t j = 0; j < at.columns; ++j) {
          for (std::int64_t i = 0; i < at.leading; ++i) {
            if (i < at.rows && may_be_written(i, j)) continue;
            const auto is = memory[static_cast<std::size_t>(j * at.leading + i)];
            written += is == reference::kFiller<Wide> ? 0 : 1;
          }
        }
        return written;
      },
      0);
}
/// Nothing is written beside a half, nor its diagonal where that is not stored.
template <class T>
void demand_rest(Trial& t, const MatrixRef<GpuRef<T>>& at, blas::Uplo uplo, bool unit = false) {
  const reference::Stored half{blas::Storage::full, uplo, at.rows, 0, at.leading};
  demand_fillers<T>(t, at, [half, unit](std::int64_t i, std::int64_t j) {
    return half.has(i, j) && !(unit && i == j);
  });
}
/// Nothing is written between columns.
template <class T>
void demand_gaps(Trial& t, const MatrixRef<GpuRef<T>>& at) {
  demand_fillers<T>(t, at, [](std::int64_t, std::int64_t) { return true; });
}
/// Room for a matrix, with fillers between its columns.
template <class T>
MatrixRef<GpuRef<T>> room_with_gaps(Trial& t, std::int64_t rows, std::int64_t columns) {
  const auto to = t.put<T>(Dense{rows, columns}, t.random.below(3));
  demand_gaps<T>(t, to);
  return to;
}

inline Dense diagonal(const std::vector<Wide>& values, std::int64_t first, std::int64_t count) {
  Dense matrix{count, count};
  for (std::int64_t i = 0; i < count; ++i)
    matrix(i, i) = values[static_cast<std::size_t>(first + i)];
  return matrix;
}
inline Dense columns_of(const Dense& a, std::int64_t first, std::int64_t count) {
  Dense part{a.rows, count};
  std::copy_n(a.element.begin() + first * a.rows, count * a.rows, part.element.begin());
  return part;
}
template <class R>
void demand_same_values(Trial& t, const GpuRef<R>& some, const GpuRef<R>& others,
                        std::int64_t count, double most) {
  t.demand(
      "the distance of values that are computed twice",
      [&t, some, others, count] {
        const auto a = t.got(some), b = t.got(others);
        double apart = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
          apart = std::max(apart, std::abs(a[i] - b[i]));
        return apart;
      },
      most);
}
/// The call tells that it has converged, and of its iterations what may be.
template <class Told>
void demand_told(Trial& t, const Future<Told>& told) {
  t.check([told]() -> std::string {
    const auto is = told.get();
    bool right = is.info == 0;
    if constexpr (std::is_same_v<Told, solver::Sweeps>) right &= is.sweeps >= 0 && is.residual >= 0;
    if constexpr (std::is_same_v<Told, solver::Perturbation>) right &= is.error >= 0;
    return right ? "" : "what the call tells";
  });
}

}  // namespace troupe::catalogue
