#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>

#include <troupe/lib/sparse.hpp>

/// Sparse matrices of any format on the cpu engine, an element after the other.
namespace troupe::host::cpu {

template <class T>
T conjugated(T x, bool conjugate) {
  if constexpr (ComplexElement<T>) {
    return conjugate ? std::conj(x) : x;
  } else {
    return x;
  }
}
/// a b; of complex numbers without the detour that the operator makes for infinite ones.
template <class T>
T times(T a, T b) {
  if constexpr (ComplexElement<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return a * b;
  }
}

/// a b; where a is 0, that is 0, whatever b is.
template <class T>
T weighed(T a, T b) {
  return a == T(0) ? T(0) : times(a, b);
}

/// How many lines a matrix has: columns if it is by columns, else rows.
inline std::int64_t lines_of(const sparse::Form& form) {
  return form.format == sparse::Format::csc ? form.columns : form.rows;
}

/// Calls visit(index, place) for each element of a line, in the order in which they are stored.
/// `index`: its column, or its row if the matrix is by columns; `place`: where its value is.
/// Whatever the indices say, it names only rows and columns of the matrix, and places that there
/// are; it leaves out elements outside, such as padding.
template <class I, class Visit>
void each_in_line(const sparse::Form& form, const I* outer, const I* inner, std::int64_t line,
                  Visit&& visit) {
  using sparse::Format;
  const auto extent = form.format == Format::csc ? form.rows : form.columns;
  const auto clamped = [](I offset, std::int64_t count) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(offset), 0, count);
  };
  const auto visit_entry = [&](std::int64_t k) {
    const auto index = static_cast<std::int64_t>(inner[k]);
    if (index >= 0 && index < extent) visit(index, k);
  };
  const auto block = form.block;
  // The elements of block k in this line, the first of which is at `place`.
  const auto visit_block = [&](std::int64_t k, std::int64_t place, std::int64_t step) {
    const auto index = static_cast<std::int64_t>(inner[k]);
    if (index < 0 || index >= extent / block) return;
    for (std::int64_t j = 0; j < block; ++j) visit(index * block + j, place + j * step);
  };
  switch (form.format) {
    case Format::csr:
    case Format::csc: {
      const auto end = clamped(outer[line + 1], form.stored);
      for (auto k = clamped(outer[line], form.stored); k < end; ++k) visit_entry(k);
      return;
    }
    case Format::coo: {
      const auto* const stop = outer + form.stored;
      for (auto at = std::lower_bound(outer, stop, static_cast<I>(line));
           at != stop && static_cast<std::int64_t>(*at) == line; ++at)
        visit_entry(at - outer);
      return;
    }
    case Format::sell: {
      const auto end = clamped(outer[line / block + 1], form.stored);
      for (auto k = clamped(outer[line / block], form.stored) + line % block; k < end; k += block)
        visit_entry(k);
      return;
    }
    case Format::bsr: {
      const bool by_row = form.order == BlockOrder::row;
      const auto end = clamped(outer[line / block + 1], form.inner_length());
      for (auto k = clamped(outer[line / block], form.inner_length()); k < end; ++k) {
        visit_block(k, k * block * block + line % block * (by_row ? block : 1), by_row ? 1 : block);
      }
      return;
    }
    case Format::blocked_ell:
      for (std::int64_t k = 0; k < form.width; ++k)
        visit_block(line / block * form.width + k, (line * form.width + k) * block, 1);
      return;
  }
}

/// Calls visit(row, column, place) for each element, always in the same order.
template <class I, class Visit>
void each_element(const sparse::Form& form, const I* outer, const I* inner, Visit&& visit) {
  for (std::int64_t line = 0; line < lines_of(form); ++line) {
    each_in_line(form, outer, inner, line, [&](std::int64_t index, std::int64_t place) {
      form.format == sparse::Format::csc ? visit(index, line, place) : visit(line, index, place);
    });
  }
}

}  // namespace troupe::host::cpu
