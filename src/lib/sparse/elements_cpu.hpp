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

/// Calls visit(row, column, place) for each element, `place` being where its value is, always in
/// the same order. Whatever the indices say, it names only rows and columns of the matrix, and
/// places that there are; it leaves out elements outside, such as padding.
template <class I, class Visit>
void each_element(const sparse::Form& form, const I* outer, const I* inner, Visit&& visit) {
  using sparse::Format;
  const auto within = [](std::int64_t i, std::int64_t count) { return i >= 0 && i < count; };
  const auto clamped = [&](I offset, std::int64_t count) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(offset), 0, count);
  };
  const auto block = form.block;
  const auto each_in_block = [&](std::int64_t block_row, std::int64_t block_column,
                                 std::int64_t place, std::int64_t row_step,
                                 std::int64_t column_step) {
    if (!within(block_column, form.columns / block)) return;
    for (std::int64_t i = 0; i < block; ++i) {
      for (std::int64_t j = 0; j < block; ++j)
        visit(block_row * block + i, block_column * block + j,
              place + i * row_step + j * column_step);
    }
  };
  switch (form.format) {
    case Format::csr:
      for (std::int64_t row = 0; row < form.rows; ++row) {
        const auto end = clamped(outer[row + 1], form.stored);
        for (auto k = clamped(outer[row], form.stored); k < end; ++k)
          if (within(inner[k], form.columns)) visit(row, static_cast<std::int64_t>(inner[k]), k);
      }
      return;
    case Format::csc:
      for (std::int64_t column = 0; column < form.columns; ++column) {
        const auto end = clamped(outer[column + 1], form.stored);
        for (auto k = clamped(outer[column], form.stored); k < end; ++k)
          if (within(inner[k], form.rows)) visit(static_cast<std::int64_t>(inner[k]), column, k);
      }
      return;
    case Format::coo:
      for (std::int64_t k = 0; k < form.stored; ++k) {
        if (within(outer[k], form.rows) && within(inner[k], form.columns))
          visit(static_cast<std::int64_t>(outer[k]), static_cast<std::int64_t>(inner[k]), k);
      }
      return;
    case Format::sell:
      for (std::int64_t first = 0, slice = 0; first < form.rows; first += block, ++slice) {
        const auto end = clamped(outer[slice + 1], form.stored);
        const auto rows = std::min(block, form.rows - first);
        for (auto at = clamped(outer[slice], form.stored); at + rows <= end; at += block) {
          for (std::int64_t i = 0; i < rows; ++i)
            if (within(inner[at + i], form.columns))
              visit(first + i, static_cast<std::int64_t>(inner[at + i]), at + i);
        }
      }
      return;
    case Format::bsr: {
      const bool by_row = form.order == BlockOrder::row;
      const auto blocks = form.inner_length();
      for (std::int64_t row = 0; row < form.rows / block; ++row) {
        const auto end = clamped(outer[row + 1], blocks);
        for (auto k = clamped(outer[row], blocks); k < end; ++k)
          each_in_block(row, static_cast<std::int64_t>(inner[k]), k * block * block,
                        by_row ? block : 1, by_row ? 1 : block);
      }
      return;
    }
    case Format::blocked_ell:
      for (std::int64_t row = 0; row < form.rows / block; ++row) {
        for (std::int64_t k = 0; k < form.width; ++k)
          each_in_block(row, static_cast<std::int64_t>(inner[row * form.width + k]),
                        (row * block * form.width + k) * block, form.width * block, 1);
      }
      return;
  }
}

}  // namespace troupe::host::cpu
