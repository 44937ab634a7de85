#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <troupe/dtype.hpp>
#include <troupe/lib/sparse/matrix.hpp>
#include <troupe/lib/submit.hpp>

/// One description for sparse matrices of all formats: of their extents as an operation has them,
/// and of their buffers as a call takes them.
namespace troupe {

template <class Values, class Indices>
struct BasicSparseRef;

}  // namespace troupe

namespace troupe::sparse {

inline constexpr DTypes kNumbers = DTypes::of({DType::f32, DType::f64, DType::c64, DType::c128});

/// What a call whose result has no buffers for its elements asks for: it counts, which does not
/// fail.
constexpr OnFailure when_counting(bool counts, OnFailure otherwise) noexcept {
  return counts ? OnFailure::report : otherwise;
}

/// CsrMatrix, CscMatrix, CooMatrix, BsrMatrix, SellMatrix, BlockedEllMatrix: see there.
enum class Format : std::uint8_t { csr, csc, coo, bsr, sell, blocked_ell };

/// What an operation knows of a sparse matrix beside its buffers. These are three:
///
/// | format      | `outer`      | `inner` | `value`                                  |
/// |-------------|--------------|---------|------------------------------------------|
/// | csr         | row_begin    | column  | of each element                          |
/// | csc         | column_begin | row     | of each element                          |
/// | coo         | row          | column  | of each element                          |
/// | bsr         | row_begin    | column  | block^2 for each block                   |
/// | sell        | slice_begin  | column  | of each element and of the padding       |
/// | blocked_ell | none         | column  | rows x width * block of them, row-major  |
struct Form {
  Format format{};
  BlockOrder order{};   ///< of the elements of a block in bsr; else `row`
  DType index_dtype{};  ///< i32 or i64: of `outer` and `inner`
  std::uint8_t reserved[5] = {};
  std::int64_t rows = 0, columns = 0;  ///< in elements
  std::int64_t nonzeros = 0;           ///< elements without the padding of sell
  std::int64_t stored = 0;             ///< length of `value`; but for sell the same as nonzeros
  std::int64_t block = 1;              ///< rows of a block or of a slice; else 1
  std::int64_t width = 0;              ///< blocks of each row of blocks in blocked_ell; else 0

  bool operator==(const Form&) const = default;

  /// Elements stand in dense blocks, and `inner` has the column of each block.
  [[nodiscard]] constexpr bool blocked() const noexcept {
    return format == Format::bsr || format == Format::blocked_ell;
  }
  /// Length of `outer`.
  [[nodiscard]] constexpr std::int64_t outer_length() const noexcept {
    const auto groups = std::max<std::int64_t>(block, 1);
    switch (format) {
      case Format::csc: return columns + 1;
      case Format::coo: return nonzeros;
      case Format::bsr: return rows / groups + 1;
      case Format::sell: return rows / groups + (rows % groups != 0 ? 1 : 0) + 1;
      case Format::blocked_ell: return 0;
      default: return rows + 1;
    }
  }
  /// Length of `inner`.
  [[nodiscard]] constexpr std::int64_t inner_length() const noexcept {
    const auto extent = std::max<std::int64_t>(block, 1);
    if (format == Format::blocked_ell) return rows / extent * width;
    return format == Format::bsr ? stored / extent / extent : stored;
  }
  /// As the structs call them.
  [[nodiscard]] constexpr std::string_view outer_name() const noexcept {
    return format == Format::csc    ? "column_begin"
           : format == Format::coo  ? "row"
           : format == Format::sell ? "slice_begin"
                                    : "row_begin";
  }
  [[nodiscard]] constexpr std::string_view inner_name() const noexcept {
    return format == Format::csc ? "row" : "column";
  }
};

/// A product of extents; too large for any matrix where it does not fit.
constexpr std::int64_t product_of(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::int64_t{1} << 62 : product;
}

template <class Values, class Indices>
Form form_of(const BasicCsrMatrix<Values, Indices>& a) {
  return {.format = Format::csr,
          .index_dtype = dtype_of<typename Indices::value_type>,
          .rows = a.rows,
          .columns = a.columns,
          .nonzeros = a.value.length(),
          .stored = a.value.length()};
}
template <class Values, class Indices>
Form form_of(const BasicCscMatrix<Values, Indices>& a) {
  return {.format = Format::csc,
          .index_dtype = dtype_of<typename Indices::value_type>,
          .rows = a.rows,
          .columns = a.columns,
          .nonzeros = a.value.length(),
          .stored = a.value.length()};
}
template <class Values, class Indices>
Form form_of(const BasicCooMatrix<Values, Indices>& a) {
  return {.format = Format::coo,
          .index_dtype = dtype_of<typename Indices::value_type>,
          .rows = a.rows,
          .columns = a.columns,
          .nonzeros = a.value.length(),
          .stored = a.value.length()};
}
template <class Values, class Indices>
Form form_of(const BasicBsrMatrix<Values, Indices>& a) {
  return {.format = Format::bsr,
          .order = a.order,
          .index_dtype = dtype_of<typename Indices::value_type>,
          .rows = product_of(a.block_rows, a.block),
          .columns = product_of(a.block_columns, a.block),
          .nonzeros = a.value.length(),
          .stored = a.value.length(),
          .block = a.block};
}
template <class Values, class Indices>
Form form_of(const BasicSellMatrix<Values, Indices>& a) {
  return {.format = Format::sell,
          .index_dtype = dtype_of<typename Indices::value_type>,
          .rows = a.rows,
          .columns = a.columns,
          .nonzeros = a.nonzeros,
          .stored = a.value.length(),
          .block = a.slice_rows};
}
template <class Values, class Indices>
Form form_of(const BasicBlockedEllMatrix<Values, Indices>& a) {
  return {.format = Format::blocked_ell,
          .index_dtype = dtype_of<typename Indices::value_type>,
          .rows = a.rows,
          .columns = a.columns,
          .nonzeros = a.value.length(),
          .stored = a.value.length(),
          .block = a.block,
          .width = a.width};
}

/// Their buffers.
template <class Values, class Indices>
const Indices& outer_of(const BasicCsrMatrix<Values, Indices>& a) {
  return a.row_begin;
}
template <class Values, class Indices>
const Indices& outer_of(const BasicCscMatrix<Values, Indices>& a) {
  return a.column_begin;
}
template <class Values, class Indices>
const Indices& outer_of(const BasicCooMatrix<Values, Indices>& a) {
  return a.row;
}
template <class Values, class Indices>
const Indices& outer_of(const BasicBsrMatrix<Values, Indices>& a) {
  return a.row_begin;
}
template <class Values, class Indices>
const Indices& outer_of(const BasicSellMatrix<Values, Indices>& a) {
  return a.slice_begin;
}
template <class Values, class Indices>
Indices outer_of(const BasicBlockedEllMatrix<Values, Indices>&) {
  return {};
}
template <class Matrix>
auto inner_of(const Matrix& a) -> decltype((a.column)) {
  return a.column;
}
template <class Values, class Indices>
const Indices& inner_of(const BasicCscMatrix<Values, Indices>& a) {
  return a.row;
}

template <class Values, class Indices>
const Form& form_of(const BasicSparseRef<Values, Indices>& a) {
  return a.form;
}
template <class Values, class Indices>
const Indices& outer_of(const BasicSparseRef<Values, Indices>& a) {
  return a.outer;
}
template <class Values, class Indices>
const Indices& inner_of(const BasicSparseRef<Values, Indices>& a) {
  return a.inner;
}

/// What refers to a matrix's values and to its indices: a GpuRef, or a RemoteRef.
template <class Matrix>
using ValuesOf = std::remove_cvref_t<decltype(std::declval<const Matrix&>().value)>;
template <class Matrix>
using IndicesOf = std::remove_cvref_t<decltype(inner_of(std::declval<const Matrix&>()))>;

template <class Refs, class T>
using RefIn = typename Refs::template To<T>;

/// A sparse matrix in any format: one of the structs, or a BasicSparseRef.
template <class Matrix, class Values, class Indices>
concept MatrixIn = std::same_as<ValuesOf<Matrix>, Values> &&
    std::same_as<IndicesOf<Matrix>, Indices> && IndexElement<typename Indices::value_type> &&
    requires(const Matrix& a) {
  { form_of(a) } -> std::convertible_to<Form>;
};
/// The same with values of T, on the device of `Refs`.
template <class Matrix, class Refs, class T>
concept MatrixOf =
    MatrixIn<Matrix, RefIn<Refs, T>, RefIn<Refs, typename IndicesOf<Matrix>::value_type>>;

/// How long the buffers of a matrix are, and how long they must be.
template <class Matrix>
std::array<troupe::detail::Length, 3> lengths_of(const Form& form, const Matrix& a) {
  return {{{form.outer_name(), outer_of(a).length(), form.outer_length()},
           {form.inner_name(), inner_of(a).length(), form.inner_length()},
           {"value", a.value.length(),
            form.blocked() ? product_of(inner_of(a).length(), product_of(form.block, form.block))
                           : form.stored}}};
}

}  // namespace troupe::sparse

namespace troupe {

/// A sparse matrix in device memory, in any format: where a program decides on the format when it
/// runs. Made from each of the structs. Which buffer is which: see sparse::Form.
template <class Values, class Indices>
struct BasicSparseRef {
  sparse::Form form;
  Indices outer, inner;
  Values value;

  template <sparse::MatrixIn<Values, Indices> Matrix>
  BasicSparseRef(const Matrix& a)
      : form(sparse::form_of(a)),
        outer(sparse::outer_of(a)),
        inner(sparse::inner_of(a)),
        value(a.value) {}
};

template <Element T, IndexElement I>
using SparseRef = BasicSparseRef<GpuRef<T>, GpuRef<I>>;

}  // namespace troupe
