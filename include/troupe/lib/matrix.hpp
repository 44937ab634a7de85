#pragma once

#include <algorithm>
#include <complex>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <troupe/dtype.hpp>

/// Vectors and matrices as parts of buffers, and the words that BLAS and LAPACK have for them.
namespace troupe {

template <class T>
concept ComplexElement =
    std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;
/// What all of BLAS computes in.
template <class T>
concept FieldElement = RealElement<T> || ComplexElement<T>;
/// What is stored in 16 bits and computed in f32.
template <class T>
concept NarrowElement = std::same_as<T, Half> || std::same_as<T, BFloat16>;

namespace detail {
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
}  // namespace detail
/// float of std::complex<float>, …
template <class T>
using RealOf = typename detail::RealOf<T>::type;

/// What scalars of vectors and matrices of this type are: float of the narrow ones.
template <class T>
using ScalarTypeOf = std::conditional_t<NarrowElement<T>, float, T>;
/// The same of a dtype.
constexpr DType scalar_type(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

/// `length` elements of a buffer, `increment` apart; with a negative increment the first one is
/// the last in memory. `Ref`: GpuRef<T>, or RemoteRef<T> of another rank's device.
template <class Ref>
struct VectorRef {
  using value_type = typename Ref::value_type;
  Ref buffer;
  std::int64_t length = 0, increment = 1;
};
template <class Ref>
VectorRef(Ref, std::int64_t, std::int64_t) -> VectorRef<Ref>;

/// A column-major matrix at the beginning of a buffer: columns are `leading` elements apart.
template <class Ref>
struct MatrixRef {
  using value_type = typename Ref::value_type;
  Ref buffer;
  std::int64_t rows = 0, columns = 0, leading = 1;

  MatrixRef() = default;
  /// `its_leading`: 0 stands for no gaps between the columns.
  MatrixRef(Ref its_buffer, std::int64_t its_rows, std::int64_t its_columns,
            std::int64_t its_leading = 0)
      : buffer(std::move(its_buffer)),
        rows(its_rows),
        columns(its_columns),
        leading(its_leading != 0 ? its_leading : std::max<std::int64_t>(1, its_rows)) {}
};

/// Whether each of X is a whole buffer of T, which is a vector without gaps, or a vector in one.
template <class Refs, class T, class... X>
concept VectorsOf = ((std::derived_from<X, typename Refs::template To<T>> ||
                      std::same_as<X, VectorRef<typename Refs::template To<T>>>)&&...);

namespace detail {
template <class Ref>
VectorRef<Ref> vector_of(const Ref& x) {
  return {x, x.length(), 1};
}
template <class Ref>
const VectorRef<Ref>& vector_of(const VectorRef<Ref>& x) {
  return x;
}
}  // namespace detail

namespace blas {

/// op(A): A itself, A^T or A^H.
enum class Transpose : std::uint32_t { no, yes, conjugate };
/// Whether the first vector of a product is conjugated.
enum class Conjugate : std::uint32_t { no, yes };
/// How a matrix lies in memory: its leading dimension is from column to column, or from row to row.
/// The tiled orders that cuBLASLt has for older GPUs are not there.
enum class Order : std::uint8_t { column, row };
/// Which half of a symmetric, Hermitian or triangular matrix is stored; the other one is not
/// touched.
enum class Uplo : std::uint32_t { lower, upper };
/// On which side of the other factor of a product a matrix stands.
enum class Side : std::uint32_t { left, right };
/// Whether the diagonal of a triangular matrix is stored or is all ones.
enum class Diagonal : std::uint32_t { stored, unit };
/// How a square matrix of which one half counts lies in memory: column-major; as a band, a row of
/// memory for each diagonal; or packed, its columns one behind the other without gaps (reference:
/// https://www.netlib.org/lapack/lug/node121.html).
enum class Storage : std::uint32_t { full, banded, packed };
/// What a matrix is equal to: its transpose or its conjugate transpose.
enum class Symmetry : std::uint32_t { symmetric, hermitian };

/// A row-major matrix at the beginning of a buffer, for calls that are told its order: rows are
/// `leading` elements apart; 0 stands for no gaps between them.
template <class Ref>
MatrixRef<Ref> row_major(Ref buffer, std::int64_t rows, std::int64_t columns,
                         std::int64_t leading = 0) {
  return {std::move(buffer), rows, columns,
          leading != 0 ? leading : std::max<std::int64_t>(1, columns)};
}

/// How many elements a column-major matrix spans, gaps between columns included.
constexpr std::int64_t span_of(std::int64_t rows, std::int64_t columns,
                               std::int64_t leading) noexcept {
  return rows == 0 || columns == 0 ? 0 : (columns - 1) * leading + rows;
}
/// How many elements one half of a packed matrix has.
constexpr std::int64_t packed_size(std::int64_t n) noexcept {
  return n * (n + 1) / 2;
}

}  // namespace blas
}  // namespace troupe
