#pragma once

#include <array>
#include <type_traits>
#include <vector>

#include "common/core/narrow.hpp"
#include "lib/sparse/common/elements_cpu.hpp"
#include "lib/sparse/cpu.hpp"

/// Products of sparse matrices of any format with dense ones on the cpu engine.
namespace troupe::host::cpu {

/// A dense matrix in either order: (i, j) is at i * row_step + j * column_step.
template <class T>
struct DenseView {
  T* element;
  std::int64_t row_step, column_step;

  DenseView(T* its_element, blas::Order order, std::int64_t leading)
      : element(its_element),
        row_step(order == blas::Order::column ? 1 : leading),
        column_step(order == blas::Order::column ? leading : 1) {}
  [[nodiscard]] T& operator()(std::int64_t i, std::int64_t j) const {
    return element[i * row_step + j * column_step];
  }
};

/// C = alpha op(A) B + beta C, C having n columns. Elements of A and B are of T, those of C of
/// Result; products are added up in Sum, which is std::uint32_t for integers.
template <class T, class I, class Result = T, class Sum = T>
struct SparseProduct {
  sparse::Form form;
  blas::Transpose transpose;
  const I *outer, *inner;
  const T* value;
  std::int64_t n;
  DenseView<const T> b;
  DenseView<Result> c;
  Sum alpha, beta;

  /// An element of A or B, or of C.
  template <class X>
  static Sum wide(const X& x) {
    if constexpr (NarrowElement<X>) {
      return to_float(x);
    } else {
      return static_cast<Sum>(x);
    }
  }
  /// Element `place` of A.
  [[nodiscard]] Sum factor(std::int64_t place) const {
    return conjugated(wide(value[place]), transpose == blas::Transpose::conjugate);
  }
  void store(std::int64_t i, std::int64_t j, Sum sum) const {
    auto& result = c(i, j);
    Sum scaled = weighed(alpha, sum);
    if (beta != Sum(0)) scaled += times(beta, wide(result));
    if constexpr (NarrowElement<Result>) {
      result = from_float<Result>(scaled);
    } else {
      result = static_cast<Result>(scaled);
    }
  }
};

/// With fewer products than that a thread is done before others are awake.
constexpr std::int64_t kSharedProducts = 1 << 15;

/// Rows [first, last) of C, where these are lines of A.
template <class... Types>
void multiply_lines(const SparseProduct<Types...>& product, std::int64_t first, std::int64_t last) {
  using Sum = std::remove_const_t<decltype(product.alpha)>;
  constexpr std::int64_t kColumns = 64;  // of C, whose sums stay in the first cache
  for (auto line = first; line < last; ++line) {
    for (std::int64_t begin = 0; begin < product.n; begin += kColumns) {
      const auto columns = std::min(kColumns, product.n - begin);
      std::array<Sum, kColumns> sums{};
      each_in_line(product.form, product.outer, product.inner, line,
                   [&](std::int64_t index, std::int64_t place) {
                     const Sum factor = product.factor(place);
                     for (std::int64_t j = 0; j < columns; ++j)
                       sums[static_cast<std::size_t>(j)] +=
                           times(factor, product.wide(product.b(index, begin + j)));
                   });
      for (std::int64_t j = 0; j < columns; ++j)
        product.store(line, begin + j, sums[static_cast<std::size_t>(j)]);
    }
  }
}

/// Columns [first, last) of C, where its rows lie across the lines of A. `sums` has n zeros for
/// each row of C.
template <class Sum, class... Types>
void multiply_across(const SparseProduct<Types...>& product, std::vector<Sum>& sums,
                     std::int64_t first, std::int64_t last) {
  const auto at = [&](std::int64_t i, std::int64_t j) -> Sum& {
    return sums[static_cast<std::size_t>(i * product.n + j)];
  };
  const auto& form = product.form;
  for (std::int64_t line = 0; line < lines_of(form); ++line) {
    each_in_line(form, product.outer, product.inner, line,
                 [&](std::int64_t index, std::int64_t place) {
                   const Sum factor = product.factor(place);
                   for (auto j = first; j < last; ++j)
                     at(index, j) += times(factor, product.wide(product.b(line, j)));
                 });
  }
  const auto rows = std::ssize(sums) / product.n;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (auto j = first; j < last; ++j) product.store(i, j, at(i, j));
  }
}

/// An element of C is summed up by one thread, in an order that A alone decides: so the same bits
/// come with any number of threads.
template <class... Types>
void multiply(const SparseProduct<Types...>& product, Team& team) {
  using sparse::Format;
  using Sum = std::remove_const_t<decltype(product.alpha)>;
  const auto& form = product.form;
  if (product.n == 0) return;
  const auto share = [&](std::int64_t items, const Team::Part& part) {
    sparse::product_of(form.stored, product.n) < kSharedProducts ? part(0, items)
                                                                 : team.share(items, part);
  };
  const bool by_columns = form.format == Format::csc;
  if ((product.transpose == blas::Transpose::no) != by_columns) {
    share(lines_of(form),
          [&](std::int64_t first, std::int64_t last) { multiply_lines(product, first, last); });
  } else {
    const auto rows = by_columns ? form.rows : form.columns;
    std::vector<Sum> sums(static_cast<std::size_t>(rows * product.n));
    share(product.n, [&](std::int64_t first, std::int64_t last) {
      multiply_across(product, sums, first, last);
    });
  }
}

}  // namespace troupe::host::cpu
