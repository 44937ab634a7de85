#pragma once

#include <troupe/lib/solver.hpp>

#include "dense_reference.hpp"
#include "reference/factors.hpp"

/// Matrices of factorisations on the device.
namespace troupe::test::reference {

/// One half of it in memory, and fillers elsewhere.
template <FieldElement T>
MatrixRef<GpuRef<T>> put_half(const Dense& a, Uplo uplo, std::int64_t leading) {
  const Stored half{Storage::full, uplo, a.rows, 0, leading};
  return {put_numbers<T>(half.spread(a)), a.rows, a.columns, leading};
}
/// Whether all that put_half() has filled in is still there.
template <FieldElement T>
bool rest_untouched(const MatrixRef<GpuRef<T>>& matrix, Uplo uplo) {
  const Stored half{Storage::full, uplo, matrix.rows, 0, matrix.leading};
  auto memory = device().download(matrix.buffer);
  for (std::int64_t j = 0; j < half.n; ++j) {
    for (std::int64_t i = 0; i < half.n; ++i) {
      if (half.has(i, j)) memory[half.at(i, j)] = kFiller<T>;
    }
  }
  return std::all_of(memory.begin(), memory.end(), [](T x) { return x == kFiller<T>; });
}
/// The same of put_matrix().
template <FieldElement T>
bool gaps_untouched(const MatrixRef<GpuRef<T>>& matrix) {
  const auto memory = device().download(matrix.buffer);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) % matrix.leading;
    if (row >= matrix.rows && memory[i] != kFiller<T>) return false;
  }
  return true;
}

}  // namespace troupe::test::reference
