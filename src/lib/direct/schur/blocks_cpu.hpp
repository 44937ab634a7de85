#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/direct/factors/factors_cpu.hpp"

/// What a Schur complement is computed from.
namespace troupe::host::direct_factors {

/// The blocks of a sound matrix A, with the rows and columns of a list last: see direct::Schur.
template <class T, class I>
class Blocks {
 public:
  using C = Computed<T>;

  /// `rows` has the op's `count` rows of A, in ascending order.
  Blocks(const Csr<T, I>& a, const direct::Schur& op, const I* rows);

  /// A11, with as much of it as is stored of A.
  [[nodiscard]] Csr<T, I> eliminated() const {
    return {std::ssize(row_begin_) - 1, std::ssize(value_), row_begin_.data(), column_.data(),
            value_.data()};
  }
  /// S, column by column. `solve(x)` replaces what x, of as many elements as A11 has rows, contains
  /// by A11's solution for it.
  template <class Solve>
  void complement(T* s, std::int64_t lds, Solve&& solve) const;

 private:
  using Column = std::vector<std::pair<std::size_t, C>>;  ///< rows and elements

  std::vector<I> row_begin_{0}, column_;
  std::vector<T> value_;
  std::vector<Column> upper_, lower_, corner_;  ///< the columns of A12, A21 and A22
};

template <class T, class I>
Blocks<T, I>::Blocks(const Csr<T, I>& a, const direct::Schur& op, const I* rows)
    : upper_(static_cast<std::size_t>(op.count)), corner_(upper_.size()) {
  std::vector<bool> listed(static_cast<std::size_t>(a.n));
  for (std::int64_t i = 0; i < op.count; ++i) listed[static_cast<std::size_t>(rows[i])] = true;
  std::vector<std::size_t> place;  // of a row among those of its kind
  std::size_t eliminated = 0, kept = 0;
  for (const bool is_listed : listed) place.push_back(is_listed ? kept++ : eliminated++);
  lower_.resize(eliminated);
  for (std::size_t row = 0; row < listed.size(); ++row) {
    if (listed[row]) continue;
    for (auto k = a.row_begin[row]; k < a.row_begin[row + 1]; ++k) {
      const auto column = static_cast<std::size_t>(a.column[k]);
      if (listed[column]) continue;
      column_.push_back(static_cast<I>(place[column]));
      value_.push_back(a.value[k]);
    }
    row_begin_.push_back(static_cast<I>(column_.size()));
  }
  direct::each_element(a.n, a.row_begin, a.column, direct::half_of(op.view),
                       [&](std::int64_t row, std::int64_t column, std::int64_t k, bool mirrored) {
                         const auto i = static_cast<std::size_t>(row),
                                    j = static_cast<std::size_t>(column);
                         if (!listed[i] && !listed[j]) return;
                         C value(a.value[k]);
                         if constexpr (ComplexElement<T>) {
                           if (mirrored && op.kind != direct::Kind::symmetric)
                             value = std::conj(value);
                         }
                         auto& columns = !listed[i] ? upper_ : !listed[j] ? lower_ : corner_;
                         columns[place[j]].emplace_back(place[i], value);
                       });
}

template <class T, class I>
template <class Solve>
void Blocks<T, I>::complement(T* s, std::int64_t lds, Solve&& solve) const {
  std::vector<C> x(lower_.size()), result(upper_.size());
  for (std::size_t j = 0; j < upper_.size(); ++j) {
    std::fill(x.begin(), x.end(), C(0));
    for (const auto& [row, value] : upper_[j]) x[row] = value;
    solve(x.data());
    std::fill(result.begin(), result.end(), C(0));
    for (const auto& [row, value] : corner_[j]) result[row] = value;
    for (std::size_t column = 0; column < lower_.size(); ++column) {
      for (const auto& [row, value] : lower_[column]) result[row] -= value * x[column];
    }
    std::transform(result.begin(), result.end(), s + static_cast<std::int64_t>(j) * lds,
                   [](const C& value) { return static_cast<T>(value); });
  }
}

}  // namespace troupe::host::direct_factors
