#include <algorithm>

#include <troupe/lib/sparse.hpp>

#include "catalogue/catalogue.hpp"

// Sparse matrices times dense ones and one another, added, transposed, triangular, and with few
// diagonals.

namespace troupe::catalogue {
namespace {

/// A matrix in CSR form of which about every third element is there, and as a dense one.
template <class T>
struct Sparse {
  Dense dense;
  std::vector<std::int32_t> row_begin{0}, column;
  std::vector<Wide> value;

  Sparse(Trial& t, std::int64_t rows, std::int64_t columns) : dense{rows, columns} {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (!t.random.one_in(3)) continue;
        column.push_back(static_cast<std::int32_t>(j));
        value.push_back(t.numbers<T>(1).front());
        dense(i, j) = value.back();
      }
      row_begin.push_back(static_cast<std::int32_t>(column.size()));
    }
  }
  /// Whether there is an element, which may be 0.
  [[nodiscard]] bool has(std::int64_t i, std::int64_t j) const {
    const auto row = static_cast<std::size_t>(i);
    return std::binary_search(column.begin() + row_begin[row], column.begin() + row_begin[row + 1],
                              static_cast<std::int32_t>(j));
  }
  [[nodiscard]] CsrMatrix<T, std::int32_t> on_device(Trial& t) const {
    return {dense.rows, dense.columns, t.put_values(row_begin), t.put_values(column),
            t.put<T>(value)};
  }
};

template <class T>
void add_products(Catalogue& catalogue) {
  catalogue.add<T>("spmm", [](Trial& t) {
    const Sparse<T> a(t, 3 * t.extent(), 3 * t.extent());
    const auto transpose = t.transpose();
    const auto whole = reference::op(a.dense, transpose);
    const auto b = t.dense<T>(whole.columns, t.extent()), c = t.dense<T>(whole.rows, b.columns);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto to = t.put<T>(c, 1);
    t.call(t.device().sparse().spmm(reference::to_number<T>(alpha), a.on_device(t), t.put<T>(b, 2),
                                    reference::to_number<T>(beta), to, {.transpose_a = transpose}));
    t.expect(to, alpha * (whole * b) + beta * c);
  });
  catalogue.add<T>("sddmm", [](Trial& t) {
    const Sparse<T> c(t, t.extent(), t.extent());
    const auto a = t.dense<T>(c.dense.rows, t.extent());
    const auto b = t.dense<T>(a.columns, c.dense.columns);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto product = a * b;
    std::vector<Wide> expected;
    for (std::int64_t i = 0; i < c.dense.rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      for (auto k = c.row_begin[row]; k < c.row_begin[row + 1]; ++k) {
        const auto place = static_cast<std::size_t>(k);
        expected.push_back(alpha * product(i, c.column[place]) + beta * c.value[place]);
      }
    }
    const auto to = c.on_device(t);
    t.call(t.device().sparse().sddmm(reference::to_number<T>(alpha), t.put<T>(a, 1), t.put<T>(b, 0),
                                     reference::to_number<T>(beta), to));
    t.expect(to.value, expected);
  });
  catalogue.add<T>("transpose", [](Trial& t) {
    const Sparse<T> a(t, 3 * t.extent(), 3 * t.extent());
    const auto from = a.on_device(t);
    const auto count = std::ssize(a.column);
    const CsrMatrix<T, std::int32_t> to{a.dense.columns, a.dense.rows,
                                        t.room<std::int32_t>(a.dense.columns + 1),
                                        t.room<std::int32_t>(count), t.room<T>(count)};
    t.call(t.device().sparse().transpose(from, to));
    std::vector<Wide> begins{0}, rows, values;
    for (std::int64_t j = 0; j < a.dense.columns; ++j) {
      for (std::int64_t i = 0; i < a.dense.rows; ++i) {
        const auto row = static_cast<std::size_t>(i);
        for (auto k = a.row_begin[row]; k < a.row_begin[row + 1]; ++k) {
          if (a.column[static_cast<std::size_t>(k)] != j) continue;
          rows.emplace_back(static_cast<double>(i));
          values.push_back(a.value[static_cast<std::size_t>(k)]);
        }
      }
      begins.emplace_back(static_cast<double>(rows.size()));
    }
    t.expect(to.row_begin, begins);
    t.expect(to.column, rows);
    t.expect(to.value, values);
  });
}

/// Of elements of In, into Out: few enough that sums are exact in both.
template <class In, class Out>
void add_narrow_products(Catalogue& catalogue, std::string_view name) {
  using Sum = detail::SumOf<Out>;
  catalogue.add<In>({name, "spmv_ex spmm_ex"}, [](Trial& t) {
    const Sparse<In> a(t, t.extent(), t.extent());
    const auto transpose = t.transpose();
    const auto whole = reference::op(a.dense, transpose);
    const auto b = t.dense<In>(whole.columns, t.extent()), c = t.dense<In>(whole.rows, b.columns);
    const auto x = t.dense<In>(whole.columns, 1), y = t.dense<In>(whole.rows, 1);
    const auto alpha = t.scalar<float>(), beta = t.scalar<float>();
    const auto factor = [](const Wide& value) { return static_cast<Sum>(value.real()); };
    const auto matrix = a.on_device(t);
    const auto to = t.put<Out>(c, 1);
    const auto to_vector = t.put<Out>(y.element);
    auto sparse = t.device().sparse();
    t.call(sparse.spmm_ex(factor(alpha), matrix, t.put<In>(b, 2), factor(beta), to,
                          {.transpose_a = transpose}));
    t.call(sparse.spmv_ex(transpose, factor(alpha), matrix, t.put<In>(x.element), factor(beta),
                          to_vector));
    t.expect(to, alpha * (whole * b) + beta * c);
    t.expect(to_vector, (alpha * (whole * x) + beta * y).element);
  });
}

/// A system of `n` equations with `reach` diagonals on each side, which is diagonally dominant:
/// what its solution is, and what stands on its right side. Diagonals by their distance.
template <class T>
struct Banded {
  std::map<std::int64_t, std::vector<Wide>> diagonal;
  std::vector<Wide> solution, right;

  Banded(Trial& t, std::int64_t n, std::int64_t reach) : solution(t.numbers<T>(n)) {
    right.assign(solution.size(), 0);
    for (auto d = -reach; d <= reach; ++d) {
      auto& values = diagonal[d];
      values = t.numbers<T>(n);
      for (std::int64_t i = 0; i < n; ++i) {
        auto& value = values[static_cast<std::size_t>(i)];
        if (d == 0) value = 64;
        if (i + d < 0 || i + d >= n) value = 0;
        if (value != Wide(0))
          right[static_cast<std::size_t>(i)] += value * solution[static_cast<std::size_t>(i + d)];
      }
    }
  }
};

template <class T>
void add_diagonals(Catalogue& catalogue) {
  catalogue.add<T>({"gtsv", "gtsv gtsv_strided gtsv_interleaved"}, [](Trial& t) {
    const auto n = t.random.between(3, 40);
    const Banded<T> a(t, n, 1);
    const Tridiagonal diagonals{t.put<T>(a.diagonal.at(-1)), t.put<T>(a.diagonal.at(0)),
                                t.put<T>(a.diagonal.at(1))};
    const auto x = t.put<T>(a.right), strided = t.put<T>(a.right), mixed = t.put<T>(a.right);
    auto sparse = t.device().sparse();
    t.call(sparse.gtsv(diagonals, MatrixRef(x, n, 1)));
    t.call(sparse.gtsv_strided(diagonals, strided, n, 1));
    t.call(sparse.gtsv_interleaved(diagonals, mixed, n, 1));  // destroys the diagonals
    for (const auto& of : {x, strided, mixed}) t.expect(of, a.solution, 8, 16);
  });
  catalogue.add<T>({"gpsv", "gpsv_interleaved"}, [](Trial& t) {
    const auto n = t.random.between(3, 40);
    const Banded<T> a(t, n, 2);
    const Pentadiagonal diagonals{t.put<T>(a.diagonal.at(-2)), t.put<T>(a.diagonal.at(-1)),
                                  t.put<T>(a.diagonal.at(0)), t.put<T>(a.diagonal.at(1)),
                                  t.put<T>(a.diagonal.at(2))};
    const auto x = t.put<T>(a.right);
    t.call(t.device().sparse().gpsv_interleaved(diagonals, x, n, 1));
    t.expect(x, a.solution, 8, 16);
  });
}

/// A product where a matrix of any structure has elements, and a sum.
template <class T>
void add_algebra(Catalogue& catalogue) {
  catalogue.add<T>("spgemm_reuse", [](Trial& t) {
    const Sparse<T> a(t, t.extent(), t.extent()), b(t, a.dense.columns, t.extent()),
        c(t, a.dense.rows, b.dense.columns);
    const auto product = a.dense * b.dense;
    std::vector<Wide> expected;
    for (std::int64_t i = 0; i < c.dense.rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      for (auto k = c.row_begin[row]; k < c.row_begin[row + 1]; ++k)
        expected.push_back(product(i, c.column[static_cast<std::size_t>(k)]));
    }
    const auto to = c.on_device(t);
    t.call(t.device().sparse().spgemm_reuse(a.on_device(t), b.on_device(t), to));
    t.expect(to.value, expected);
  });
  catalogue.add<T>("geam", [](Trial& t) {
    const Sparse<T> a(t, t.extent(), 3 * t.extent()), b(t, a.dense.rows, a.dense.columns);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto sum = alpha * a.dense + beta * b.dense;
    std::vector<Wide> begins{0}, columns, values;
    for (std::int64_t i = 0; i < a.dense.rows; ++i) {
      for (std::int64_t j = 0; j < a.dense.columns; ++j) {
        if (!a.has(i, j) && !b.has(i, j)) continue;
        columns.emplace_back(static_cast<double>(j));
        values.push_back(sum(i, j));
      }
      begins.emplace_back(static_cast<double>(columns.size()));
    }
    const auto count = std::ssize(columns);
    const CsrMatrix<T, std::int32_t> to{a.dense.rows, a.dense.columns,
                                        t.room<std::int32_t>(a.dense.rows + 1),
                                        t.room<std::int32_t>(count), t.room<T>(count)};
    t.call(t.device().sparse().geam(reference::to_number<T>(alpha), a.on_device(t),
                                    reference::to_number<T>(beta), b.on_device(t), to));
    t.expect(to.row_begin, begins);
    t.expect(to.column, columns);
    t.expect(to.value, values);
  });
}

/// Systems with either triangle of a matrix, whose diagonal counts as ones: with several right
/// sides, and in place with the first of them.
template <class T>
void add_triangles(Catalogue& catalogue) {
  catalogue.add<T>({"spsv", "spsv spsm"}, [](Trial& t) {
    const auto n = t.extent();
    const Sparse<T> square(t, n, n);
    const TriangularOptions options{t.uplo(), blas::Diagonal::unit, t.transpose()};
    Dense triangle{n, n};
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        if (options.uplo == blas::Uplo::lower ? j < i : j > i) triangle(i, j) = square.dense(i, j);
      }
      triangle(i, i) = 1;
    }
    const auto solution = t.dense<T>(n, t.extent());
    const auto right = reference::op(triangle, options.transpose) * solution;
    const auto alpha = t.scalar<T>();
    const auto matrix = square.on_device(t);
    const auto x = t.put<T>(t.dense<T>(n, solution.columns), 2);
    const auto first = [&](const Dense& sides) {
      return std::vector<Wide>(sides.element.begin(), sides.element.begin() + n);
    };
    const auto one = t.put<T>(first(right));
    auto sparse = t.device().sparse();
    t.call(sparse.spsm(matrix, t.put<T>(right, 1), x, options, reference::to_number<T>(alpha)));
    t.call(sparse.spsv(matrix, one, one, options));
    t.expect(x, alpha * solution);
    t.expect(one, first(solution));
  });
}

template <class... T>
void add_all_sparse(Catalogue& catalogue) {
  (add_products<T>(catalogue), ...);
  (add_diagonals<T>(catalogue), ...);
  (add_algebra<T>(catalogue), ...);
  (add_triangles<T>(catalogue), ...);
}

void add_calls_of_sparse(Catalogue& catalogue) {
  add_all_sparse<float, double, std::complex<float>, std::complex<double>>(catalogue);
  constexpr std::string_view kOwn = "narrow products", kWider = "narrow products into f32";
  add_narrow_products<std::int8_t, std::int32_t>(catalogue, kOwn);
  add_narrow_products<Half, Half>(catalogue, kOwn);
  add_narrow_products<BFloat16, BFloat16>(catalogue, kOwn);
  add_narrow_products<std::int8_t, float>(catalogue, kWider);
  add_narrow_products<Half, float>(catalogue, kWider);
  add_narrow_products<BFloat16, float>(catalogue, kWider);
}

const Subject kSparse("sparse", add_calls_of_sparse);

}  // namespace

}  // namespace troupe::catalogue
