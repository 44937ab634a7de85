#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include <troupe/lib/matrix.hpp>

/// A plain reference for operations on vectors and matrices. It computes in complex f64; of small
/// integers every order of additions gives the same bits, so that results must be equal.
namespace troupe::test::reference {

using blas::Diagonal;
using blas::Side;
using blas::Storage;
using blas::Symmetry;
using blas::Transpose;
using blas::Uplo;

using Wide = std::complex<double>;

/// What is computed with: integers from -3 to 3, or fractions in [-1, 1).
enum class Data { integers, fractions };
inline constexpr Data kData[] = {Data::integers, Data::fractions};
inline constexpr Uplo kUplos[] = {Uplo::lower, Uplo::upper};
inline constexpr Transpose kTransposes[] = {Transpose::no, Transpose::yes, Transpose::conjugate};

/// What stands where nothing may be read or written.
template <class T>
const T kFiller = T(-77);

template <FieldElement T>
T to_number(const Wide& x) {
  if constexpr (ComplexElement<T>) {
    return {static_cast<RealOf<T>>(x.real()), static_cast<RealOf<T>>(x.imag())};
  } else {
    return static_cast<T>(x.real());
  }
}
template <FieldElement T>
std::vector<T> to_numbers(const std::vector<Wide>& values) {
  std::vector<T> numbers;
  for (const auto& value : values) numbers.push_back(to_number<T>(value));
  return numbers;
}
/// The same numbers for the same seed, each representable in T.
template <FieldElement T>
std::vector<Wide> numbers(std::int64_t count, std::uint64_t seed, Data data) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto one = [&] {
    return data == Data::integers ? static_cast<int>(random() % 7) - 3
                                  : double{static_cast<RealOf<T>>(uniform(random))};
  };
  std::vector<Wide> values(static_cast<std::size_t>(count));
  for (auto& value : values) {
    value = one();
    if (ComplexElement<T>) value += Wide(0, one());
  }
  return values;
}
/// A factor: 2 - i of complex integers, and so on.
template <FieldElement T>
T number(double real, double imaginary) {
  return to_number<T>({real, imaginary});
}

template <FieldElement T>
Wide widen(const T& x) {
  return {static_cast<double>(std::real(x)), static_cast<double>(std::imag(x))};
}

/// A matrix of the reference.
struct Dense {
  std::int64_t rows = 0, columns = 0;
  std::vector<Wide> element = std::vector<Wide>(static_cast<std::size_t>(rows * columns));

  Wide& operator()(std::int64_t i, std::int64_t j) {
    return element[static_cast<std::size_t>(j * rows + i)];
  }
  const Wide& operator()(std::int64_t i, std::int64_t j) const {
    return element[static_cast<std::size_t>(j * rows + i)];
  }
};

inline Dense op(const Dense& a, Transpose transpose) {
  if (transpose == Transpose::no) return a;
  Dense result{a.columns, a.rows};
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      result(j, i) = transpose == Transpose::conjugate ? std::conj(a(i, j)) : a(i, j);
  }
  return result;
}
inline Dense operator*(const Dense& a, const Dense& b) {
  Dense product{a.rows, b.columns};
  for (std::int64_t j = 0; j < b.columns; ++j) {
    for (std::int64_t k = 0; k < a.columns; ++k) {
      for (std::int64_t i = 0; i < a.rows; ++i) product(i, j) += a(i, k) * b(k, j);
    }
  }
  return product;
}
inline Dense operator*(const Wide& factor, Dense a) {
  for (auto& x : a.element) x *= factor;
  return a;
}
inline Dense operator+(Dense a, const Dense& b) {
  for (std::size_t i = 0; i < a.element.size(); ++i) a.element[i] += b.element[i];
  return a;
}
inline Dense column(std::vector<Wide> values) {
  const auto rows = std::ssize(values);
  return {rows, 1, std::move(values)};
}

/// Vectors of n elements in memory: from the first element on, with fillers between.
inline std::vector<Wide> spread(const std::vector<Wide>& values, std::int64_t increment) {
  const auto step = static_cast<std::size_t>(std::abs(increment));
  std::vector<Wide> memory(values.empty() ? 0 : (values.size() - 1) * step + 1, kFiller<Wide>);
  for (std::size_t i = 0; i < values.size(); ++i)
    memory[(increment > 0 ? i : values.size() - 1 - i) * step] = values[i];
  return memory;
}
/// A matrix in memory, with `leading` elements from column to column.
inline std::vector<Wide> spread(const Dense& a, std::int64_t leading) {
  std::vector<Wide> memory(static_cast<std::size_t>(leading * a.columns), kFiller<Wide>);
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      memory[static_cast<std::size_t>(j * leading + i)] = a(i, j);
  }
  return memory;
}

inline Dense identity(std::int64_t n) {
  Dense a{n, n};
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

/// A square matrix of which one half is stored.
struct Stored {
  Storage storage = Storage::full;
  Uplo uplo = Uplo::lower;
  std::int64_t n = 0, k = 0, leading = 0;

  [[nodiscard]] std::int64_t size() const {
    return storage == Storage::packed ? blas::packed_size(n) : leading * n;
  }
  /// Whether the element is stored, and where.
  [[nodiscard]] bool has(std::int64_t i, std::int64_t j) const {
    const auto below = uplo == Uplo::lower ? i - j : j - i;
    return below >= 0 && (storage != Storage::banded || below <= k);
  }
  [[nodiscard]] std::size_t at(std::int64_t i, std::int64_t j) const {
    const bool lower = uplo == Uplo::lower;
    std::int64_t place = j * leading + i;
    if (storage == Storage::banded) place = j * leading + (lower ? i - j : k + i - j);
    if (storage == Storage::packed)
      place = lower ? j * n - j * (j - 1) / 2 + i - j : j * (j + 1) / 2 + i;
    return static_cast<std::size_t>(place);
  }
  /// Puts the half of `a` into memory.
  void store(const Dense& a, std::vector<Wide>& memory) const {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        if (has(i, j)) memory[at(i, j)] = a(i, j);
      }
    }
  }
  /// In memory; a diagonal of ones that is not stored is not there.
  [[nodiscard]] std::vector<Wide> spread(const Dense& a,
                                         Diagonal diagonal = Diagonal::stored) const {
    std::vector<Wide> memory(static_cast<std::size_t>(size()), kFiller<Wide>);
    store(a, memory);
    for (std::int64_t i = 0; i < n && diagonal == Diagonal::unit; ++i)
      memory[at(i, i)] = kFiller<Wide>;
    return memory;
  }
};

/// A matrix of random numbers.
template <FieldElement T>
Dense random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed, Data data) {
  return {rows, columns, numbers<T>(rows * columns, seed, data)};
}
/// What `half` has of it, with the symmetry; zero outside of a band.
template <FieldElement T>
Dense symmetric_matrix(const Stored& half, Symmetry symmetry, std::uint64_t seed, Data data) {
  auto a = random_matrix<T>(half.n, half.n, seed, data);
  for (std::int64_t j = 0; j < half.n; ++j) {
    for (std::int64_t i = 0; i < half.n; ++i) {
      if (half.storage == Storage::banded && std::abs(i - j) > half.k) a(i, j) = 0;
      if (i == j && symmetry == Symmetry::hermitian) a(i, j) = a(i, j).real();
    }
  }
  for (std::int64_t j = 0; j < half.n; ++j) {
    for (std::int64_t i = 0; i < j; ++i) {
      auto &stored = half.uplo == Uplo::lower ? a(j, i) : a(i, j),
           &mirrored = half.uplo == Uplo::lower ? a(i, j) : a(j, i);
      mirrored = symmetry == Symmetry::hermitian ? std::conj(stored) : stored;
    }
  }
  return a;
}
/// A triangular matrix whose inverse is as harmless as itself: of integers that of a matrix of
/// integers, with units on the diagonal.
template <FieldElement T>
Dense triangular_matrix(const Stored& half, Diagonal diagonal, std::uint64_t seed, Data data) {
  auto a = random_matrix<T>(half.n, half.n, seed, data);
  std::mt19937_64 random(seed + 1);
  for (std::int64_t j = 0; j < half.n; ++j) {
    for (std::int64_t i = 0; i < half.n; ++i) {
      auto& x = a(i, j);
      if (!half.has(i, j)) {
        x = 0;
      } else if (i == j && diagonal == Diagonal::unit) {
        x = 1;
      } else if (data == Data::integers) {
        const double unit = random() % 2 == 0 ? 1 : -1;
        x = i != j && random() % 3 == 0 ? 0 : unit;
        if (ComplexElement<T> && random() % 2 == 0) x *= Wide(0, 1);
      } else {
        x = widen(to_number<T>(i == j ? x + 3.0 : x / static_cast<double>(2 * half.n)));
      }
    }
  }
  return a;
}

}  // namespace troupe::test::reference
