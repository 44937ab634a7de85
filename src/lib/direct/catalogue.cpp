#include <algorithm>
#include <cmath>

#include <troupe/lib/direct.hpp>

#include "catalogue/catalogue.hpp"

// Sparse systems by their factors, which are lost with a device host: the next call makes them
// again.

namespace troupe::catalogue {
namespace {

/// A matrix of a kind whose diagonal is larger than the rest of its row and column: about a quarter
/// of it is there, of which all or one half is stored; or all, where the other half does not count.
/// Matching may have to find its diagonal.
template <class T>
struct Dominant {
  direct::Options options;
  Dense dense;
  std::vector<std::int64_t> row_begin{0}, column;
  std::vector<std::pair<std::int64_t, std::int64_t>> place;  ///< of each element that is stored

  Dominant(Trial& t, std::int64_t n, bool may_match) : dense{n, n} {
    using direct::Kind;
    using direct::View;
    options.kind = static_cast<Kind>(t.random.below(4));
    const bool general = options.kind == Kind::general;
    if (!general) options.view = static_cast<View>(t.random.below(3));
    whole_ = options.view == View::full || t.flip();
    options.matching = may_match && options.kind != Kind::positive_definite && t.random.one_in(3);
    for (std::int64_t i = 0; i < n; ++i) rows_.push_back(i);
    for (auto i = n; general && options.matching && i > 1; --i)
      std::swap(rows_[static_cast<std::size_t>(i - 1)],
                rows_[static_cast<std::size_t>(t.random.below(i))]);
    Dense straight{n, n};
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const bool decided = !general && j > i;
        if (i == j || decided || !t.random.one_in(4)) continue;
        straight(i, j) = t.numbers<T>(1).front();
        if (!general) straight(j, i) = mirrored(straight(i, j));
      }
    }
    put_in_place(t, std::move(straight));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        if (dense(i, j) == Wide(0) || !(whole_ || counts(i, j))) continue;
        column.push_back(j);
        place.emplace_back(i, j);
      }
      row_begin.push_back(std::ssize(column));
    }
  }
  /// Other values at the same places.
  void change(Trial& t) {
    for (auto& element : straight_.element) element *= -0.5;
    put_in_place(t, std::move(straight_));
  }
  [[nodiscard]] std::vector<Wide> values() const {
    std::vector<Wide> stored;
    for (const auto& [i, j] : place) stored.push_back(counts(i, j) ? dense(i, j) : Wide(9));
    return stored;
  }

 private:
  [[nodiscard]] Wide mirrored(const Wide& x) const {
    return options.kind == direct::Kind::symmetric ? x : std::conj(x);
  }
  [[nodiscard]] bool counts(std::int64_t i, std::int64_t j) const {
    if (options.view == direct::View::full) return true;
    return options.view == direct::View::lower ? j <= i : j >= i;
  }
  /// Gives it its diagonal, and exchanges its rows.
  void put_in_place(Trial& t, Dense straight) {
    for (std::int64_t i = 0; i < straight.rows; ++i) {
      double sum = 1;
      for (std::int64_t j = 0; j < straight.columns; ++j) {
        if (i != j) sum += std::abs(straight(i, j)) + std::abs(straight(j, i));
      }
      const bool negative = options.kind != direct::Kind::positive_definite && t.flip();
      straight(i, i) = std::ceil(negative ? -sum : sum);
    }
    straight_ = std::move(straight);
    for (std::int64_t i = 0; i < dense.rows; ++i) {
      for (std::int64_t j = 0; j < dense.columns; ++j)
        dense(i, j) = straight_(rows_[static_cast<std::size_t>(i)], j);
    }
  }

  bool whole_ = true;
  std::vector<std::int64_t> rows_;
  Dense straight_;  ///< before its rows are exchanged
};

template <class I>
GpuRef<I> put_indices(Trial& t, const std::vector<std::int64_t>& indices) {
  return t.put_values(std::vector<I>(indices.begin(), indices.end()));
}
template <class T, class I>
CsrMatrix<T, I> on_device(Trial& t, const Dominant<T>& a) {
  return {a.dense.rows, a.dense.columns, put_indices<I>(t, a.row_begin),
          put_indices<I>(t, a.column), t.put<T>(a.values())};
}

template <class T, class I>
void solve_systems(Trial& t) {
  Dominant<T> a(t, t.random.between(1, t.varies_widely() ? 90 : 40), true);
  const auto matrix = on_device<T, I>(t, a);
  auto solver = direct::on(t.device()).solver(matrix, a.options);
  const auto solve = [&] {
    using blas::Transpose;
    std::vector<Transpose> transposes{Transpose::no, Transpose::yes, Transpose::conjugate};
    if (ComplexElement<T> && a.options.kind != direct::Kind::general)
      std::erase(transposes,
                 a.options.kind == direct::Kind::symmetric ? Transpose::conjugate : Transpose::yes);
    const direct::SolveOptions how{
        .transpose = transposes[static_cast<std::size_t>(t.random.below(std::ssize(transposes)))],
        .refinement = static_cast<int>(t.random.below(3))};
    const auto x = t.dense<T>(a.dense.rows, t.random.between(1, 9));
    const auto b = t.put<T>(reference::op(a.dense, how.transpose) * x, 1);
    const auto to = t.put<T>(t.dense<T>(x.rows, x.columns), 2);
    t.call(solver.solve(b, to, how));
    t.expect(to, x, 40);
  };
  if (t.flip()) t.call(solver.analyse());
  if (t.flip()) t.call(solver.factor());
  solve();
  solve();
  a.change(t);
  t.call(t.device().template upload<T>(reference::to_numbers<T>(a.values()), matrix.value));
  solve();
  t.call(solver.release());
  solve();
}

template <class T>
void add_factors(Catalogue& catalogue) {
  catalogue.add<T>({"factors", "analyse factor solve release", Missing::itself}, [](Trial& t) {
    return t.flip() ? solve_systems<T, std::int32_t>(t) : solve_systems<T, std::int64_t>(t);
  });
}

/// The elimination of one row and column after another.
Dense eliminated(Dense a, const std::vector<bool>& kept) {
  const auto n = static_cast<std::size_t>(a.rows);
  const auto at = [&](std::size_t i, std::size_t j) -> Wide& {
    return a(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
  };
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n && !kept[k]; ++i) {
      if (i == k || (!kept[i] && i < k)) continue;
      const auto factor = at(i, k) / at(k, k);
      for (std::size_t j = 0; j < n; ++j) at(i, j) -= factor * at(k, j);
    }
  }
  const auto count = std::count(kept.begin(), kept.end(), true);
  std::vector<Wide> elements;
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      if (kept[i] && kept[j]) elements.push_back(at(i, j));
    }
  }
  return {count, count, std::move(elements)};
}

template <class T, class I>
void complement(Trial& t) {
  const Dominant<T> a(t, t.random.between(2, t.varies_widely() ? 90 : 40), false);
  std::vector<bool> kept(static_cast<std::size_t>(a.dense.rows));
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = t.random.one_in(3);
  const auto one = static_cast<std::size_t>(t.random.below(a.dense.rows));
  kept[one] = !kept[one];  // neither all of them nor none
  kept[one == 0 ? 1 : 0] = !kept[one];
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) rows.push_back(static_cast<std::int64_t>(i));
  }
  const auto count = std::ssize(rows);
  const auto s = t.put<T>(t.dense<T>(count, count), 1);
  auto solver = direct::on(t.device()).solver(on_device<T, I>(t, a), a.options);
  t.call(solver.schur(put_indices<I>(t, rows), s));
  // Its elements are at most as large as the diagonal of A.
  t.check([&t, s, expected = eliminated(a.dense, kept)]() -> std::string {
    const auto got = t.got(s);
    double largest = 0, wrong = 0;
    for (const auto& element : expected.element) largest = std::max(largest, std::abs(element));
    for (std::size_t i = 0; i < got.element.size(); ++i)
      wrong = std::max(wrong, std::abs(got.element[i] - expected.element[i]));
    if (wrong <= 1000 * Trial::epsilon<T>() * largest) return {};
    return fmt::format("S is wrong by {}, of elements up to {}", wrong, largest);
  });
}

template <class T>
void add_schur(Catalogue& catalogue) {
  catalogue.add<T>({"schur", "schur", Missing::itself}, [](Trial& t) {
    return t.flip() ? complement<T, std::int32_t>(t) : complement<T, std::int64_t>(t);
  });
}

template <class... T>
void add_all_direct(Catalogue& catalogue) {
  (add_factors<T>(catalogue), ...);
  (add_schur<T>(catalogue), ...);
}

void add_calls_of_direct(Catalogue& catalogue) {
  add_all_direct<float, double, std::complex<float>, std::complex<double>>(catalogue);
}

const Subject kDirect("direct", add_calls_of_direct);

}  // namespace

}  // namespace troupe::catalogue
