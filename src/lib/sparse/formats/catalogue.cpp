#include <algorithm>
#include <numeric>

#include <troupe/lib/sparse.hpp>

#include "catalogue/catalogue.hpp"

// Vectors of few elements, matrices that change their form, and a look at indices.

namespace troupe::catalogue {
namespace {

/// Some of the places below n, each once, in any order.
std::vector<std::int32_t> some_places(Trial& t, std::int64_t n) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  for (std::size_t i = places.size(); i > 1; --i)
    std::swap(places[i - 1], places[t.random.below(static_cast<int>(i))]);
  places.resize(static_cast<std::size_t>(t.random.between(1, n)));
  return places;
}
/// A matrix of which about every third element is not 0.
template <class T>
Dense with_holes(Trial& t, std::int64_t rows, std::int64_t columns) {
  auto dense = t.dense<T>(rows, columns);
  for (auto& element : dense.element) {
    if (!t.random.one_in(3)) element = 0;
  }
  return dense;
}
void expect_size(Trial& t, const Future<std::int64_t>& size, std::int64_t expected) {
  t.call(size);
  t.check([size, expected]() -> std::string {
    return size.get() == expected ? "" : fmt::format("{} elements, not {}", size.get(), expected);
  });
}

template <class T>
void add_few_elements(Catalogue& catalogue) {
  catalogue.add<T>({"few elements", "scatter axpby rot spvv"}, [](Trial& t) {
    const auto n = 3 * t.extent();
    const auto places = some_places(t, n);
    const auto count = std::ssize(places);
    const auto x = t.numbers<T>(count), y = t.numbers<T>(n);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const bool conjugate = t.flip();
    auto scattered = y, combined = y, rotated_y = y, rotated_x = x;
    Wide dot = 0;
    for (auto& value : combined) value *= beta;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto at = static_cast<std::size_t>(places[i]);
      scattered[at] = x[i];
      combined[at] += alpha * x[i];
      rotated_x[i] = 2.0 * x[i] + alpha * y[at];
      rotated_y[at] = 2.0 * y[at] - std::conj(alpha) * x[i];
      dot += (conjugate ? std::conj(x[i]) : x[i]) * y[at];
    }
    const auto index = t.put_values(places);
    const auto dx = t.put<T>(x), dy = t.put<T>(y), to_x = t.put<T>(x), to_y = t.put<T>(y),
               to_combined = t.put<T>(y), to_scattered = t.put<T>(y), result = t.room<T>(1);
    auto sparse = t.device().sparse();
    const auto number = reference::to_number<T>(alpha);
    t.call(sparse.scatter(dx, index, to_scattered));
    t.call(sparse.axpby(number, dx, index, reference::to_number<T>(beta), to_combined));
    t.call(sparse.rot(to_x, index, to_y, RealOf<T>(2), number));
    t.call(
        sparse.spvv(dx, index, dy, result, conjugate ? blas::Conjugate::yes : blas::Conjugate::no));
    t.expect(to_scattered, scattered);
    t.expect(to_combined, combined);
    t.expect(to_x, rotated_x);
    t.expect(to_y, rotated_y);
    t.expect(result, {dot});
  });
}

template <class I>
void add_rows(Catalogue& catalogue) {
  catalogue.add<I>({"rows", "csr2coo coo2csr"}, [](Trial& t) {
    std::vector<I> begins{0}, rows;
    const auto count = t.extent();
    for (std::int64_t row = 0; row < count; ++row) {
      rows.insert(rows.end(), static_cast<std::size_t>(t.random.below(4)), static_cast<I>(row));
      begins.push_back(static_cast<I>(rows.size()));
    }
    if (rows.empty()) rows.push_back(static_cast<I>(count - 1)), begins.back() = 1;
    const auto wide = [](const std::vector<I>& values) {
      return std::vector<Wide>(values.begin(), values.end());
    };
    const auto to_rows = t.put_values(std::vector<I>(rows.size())),
               to_begins = t.put_values(std::vector<I>(begins.size()));
    t.call(t.device().sparse().csr2coo(t.put_values(begins), to_rows));
    t.call(t.device().sparse().coo2csr(to_rows, to_begins));
    const auto expect = [&t, wide](const GpuRef<I>& buffer, const std::vector<I>& values) {
      t.check([&t, buffer, values]() -> std::string {
        return t.device().download(buffer) == values ? "" : "the rows are others";
      });
    };
    expect(to_rows, rows);
    expect(to_begins, begins);
  });
}

/// A matrix whose rows ascend, in which one column may be too large.
template <class I>
void add_examination(Catalogue& catalogue) {
  catalogue.add<I>({"examination", "examine"}, [](Trial& t) {
    const auto rows = t.extent(), columns = 3 * t.extent();
    std::vector<I> begins{0}, column;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < columns; ++j)
        if (j == 0 || t.random.one_in(2)) column.push_back(static_cast<I>(j));
      begins.push_back(static_cast<I>(column.size()));
    }
    const bool wrong = t.flip();
    const auto place = t.random.below(static_cast<int>(column.size()));
    if (wrong) column[static_cast<std::size_t>(place)] += static_cast<I>(columns);
    const CsrMatrix<float, I> a{rows, columns, t.put_values(begins), t.put_values(column),
                                t.room<float>(std::ssize(column))};
    const auto rule =
        sparse::rule_of(sparse::form_of(a), a.row_begin.operand(), a.column.operand(), true);
    const auto finding = detail::submit_for_value<sparse::Finding>(
        t.device().submitter(), sparse::examination_of(rule, OnFailure::report));
    t.call(finding);
    t.check([finding, wrong, place]() -> std::string {
      const auto found = finding.get();
      const bool right = wrong ? found.fault == sparse::Fault::inner_outside && found.place == place
                               : found.fault == sparse::Fault::none;
      return right ? "" : "another index is found wrong than the one that is";
    });
  });
}

/// Elements in any order, by rows and by places.
template <class T>
void add_sorts(Catalogue& catalogue) {
  catalogue.add<T>({"order", "coosort csrsort"}, [](Trial& t) {
    const auto rows = t.extent(), columns = t.extent();
    const auto places = some_places(t, rows * columns);
    const auto values = t.numbers<T>(std::ssize(places));
    std::vector<std::size_t> by_place(places.size());
    std::iota(by_place.begin(), by_place.end(), std::size_t{0});
    auto by_row = by_place;
    const auto row_of = [&](std::size_t i) { return places[i] / static_cast<int>(columns); };
    const auto column_of = [&](std::size_t i) { return places[i] % static_cast<int>(columns); };
    std::sort(by_place.begin(), by_place.end(),
              [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
    std::stable_sort(by_row.begin(), by_row.end(),
                     [&](std::size_t a, std::size_t b) { return row_of(a) < row_of(b); });
    std::vector<std::int32_t> row, column, column_by_row,
        begins(static_cast<std::size_t>(rows) + 1), sorted_row, sorted_column;
    std::vector<Wide> value_by_row, sorted_value;
    for (std::size_t i = 0; i < places.size(); ++i) {
      row.push_back(row_of(i)), column.push_back(column_of(i));
      column_by_row.push_back(column_of(by_row[i])), value_by_row.push_back(values[by_row[i]]);
      sorted_row.push_back(row_of(by_place[i])), sorted_column.push_back(column_of(by_place[i]));
      sorted_value.push_back(values[by_place[i]]);
      ++begins[static_cast<std::size_t>(row_of(i)) + 1];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    const auto n = std::ssize(places);
    const auto indices = [&] { return t.put_values(std::vector<std::int32_t>(places.size())); };
    const CooMatrix<T, std::int32_t> any{rows, columns, t.put_values(row), t.put_values(column),
                                         t.put<T>(values)},
        sorted{rows, columns, indices(), indices(), t.room<T>(n)};
    const auto row_begin = t.put_values(begins);
    const CsrMatrix<T, std::int32_t> by_rows{rows, columns, row_begin, t.put_values(column_by_row),
                                             t.put<T>(value_by_row)},
        sorted_rows{rows, columns, row_begin, indices(), t.room<T>(n)};
    t.call(t.device().sparse().coosort(any, sorted));
    t.call(t.device().sparse().csrsort(by_rows, sorted_rows));
    t.expect(sorted.value, sorted_value);
    t.expect(sorted_rows.value, sorted_value);
    t.check([&t, sorted, sorted_rows, sorted_row, sorted_column]() -> std::string {
      auto& device = t.device();
      const bool right = device.download(sorted.row) == sorted_row &&
                         device.download(sorted.column) == sorted_column &&
                         device.download(sorted_rows.column) == sorted_column;
      return right ? "" : "the elements are in another order";
    });
  });
}

/// From dense to sparse, to blocks, back to rows, and to dense again.
template <class T>
void add_blocks(Catalogue& catalogue) {
  catalogue.add<T>({"blocks", "dense_to_sparse csr2bsr bsr2csr sparse_to_dense"}, [](Trial& t) {
    const std::int64_t block = t.random.between(1, 3);
    const auto rows = block * t.extent(), columns = block * t.extent();
    const auto dense = with_holes<T>(t, rows, columns);
    const auto nonzeros = std::count_if(dense.element.begin(), dense.element.end(),
                                        [](const Wide& value) { return value != Wide(0); });
    const auto indices = [&](std::int64_t count) {
      return t.put_values(std::vector<std::int32_t>(static_cast<std::size_t>(count)));
    };
    std::vector<bool> there(static_cast<std::size_t>(rows / block * (columns / block)));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (dense(i, j) != Wide(0))
          there[static_cast<std::size_t>(i / block * (columns / block) + j / block)] = true;
      }
    }
    const auto blocks = std::count(there.begin(), there.end(), true);
    const auto elements = blocks * block * block;
    const CsrMatrix<T, std::int32_t> csr{rows, columns, indices(rows + 1), indices(nonzeros),
                                         t.room<T>(nonzeros)},
        again{rows, columns, indices(rows + 1), indices(elements), t.room<T>(elements)};
    const BsrMatrix<T, std::int32_t> bsr{rows / block,
                                         columns / block,
                                         block,
                                         t.flip() ? BlockOrder::row : BlockOrder::column,
                                         indices(rows / block + 1),
                                         indices(blocks),
                                         t.room<T>(elements)};
    const auto back = t.room<T>(rows, columns);
    auto sparse = t.device().sparse();
    expect_size(t, sparse.dense_to_sparse(t.put<T>(dense, 2), csr), nonzeros);
    expect_size(t, sparse.csr2bsr(csr, bsr), blocks);
    t.call(sparse.bsr2csr(bsr, again));
    t.call(sparse.sparse_to_dense(again, back));
    t.expect(back, dense);
  });
}

/// To blocked ELL and back, and to sliced ELL, which is multiplied with.
template <class T>
void add_ell(Catalogue& catalogue) {
  catalogue.add<T>({"ELL", "csr2sell csr2blocked_ell blocked_ell_to_dense"}, [](Trial& t) {
    const std::int64_t block = t.random.between(1, 3), slice = t.random.between(1, 4);
    const auto rows = block * t.extent(), columns = block * t.extent();
    const auto dense = with_holes<T>(t, rows, columns);
    std::vector<std::int32_t> begins{0}, column;
    std::vector<Wide> value;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (dense(i, j) == Wide(0)) continue;
        column.push_back(static_cast<std::int32_t>(j)), value.push_back(dense(i, j));
      }
      begins.push_back(static_cast<std::int32_t>(column.size()));
    }
    const CsrMatrix<T, std::int32_t> csr{rows, columns, t.put_values(begins), t.put_values(column),
                                         t.put<T>(value)};
    const auto slices = (rows + slice - 1) / slice;
    std::int64_t stored = 0;
    for (std::int64_t first = 0; first < rows; first += slice) {
      std::int32_t longest = 0;
      for (auto row = first; row < std::min(first + slice, rows); ++row) {
        const auto at = static_cast<std::size_t>(row);
        longest = std::max(longest, begins[at + 1] - begins[at]);
      }
      stored += longest * slice;
    }
    const auto indices = [&](std::int64_t count) {
      return t.put_values(std::vector<std::int32_t>(static_cast<std::size_t>(count), -1));
    };
    const SellMatrix<T, std::int32_t> sell{rows,
                                           columns,
                                           csr.value.length(),
                                           slice,
                                           indices(slices + 1),
                                           indices(stored),
                                           t.room<T>(stored)};
    const BlockedEllMatrix<T, std::int32_t> ell{rows,
                                                columns,
                                                block,
                                                columns / block,
                                                indices(rows / block * (columns / block)),
                                                t.room<T>(rows * columns)};
    const auto back = t.room<T>(rows, columns);
    const auto x = t.dense<T>(columns, 1);
    const auto y = t.room<T>(rows, 1);
    auto sparse = t.device().sparse();
    expect_size(t, sparse.csr2sell(csr, sell), stored);
    t.call(sparse.spmv(sell, t.put<T>(x, 0).buffer, y.buffer));
    t.call(sparse.csr2blocked_ell(csr, ell));
    t.call(sparse.sparse_to_dense(ell, back));
    t.expect(y, dense * x);
    t.expect(back, dense);
  });
}

template <class... T>
void add_forms(Catalogue& catalogue) {
  (add_few_elements<T>(catalogue), ...);
  (add_sorts<T>(catalogue), ...);
  (add_blocks<T>(catalogue), ...);
  (add_ell<T>(catalogue), ...);
}

void add_calls_of_sparse_forms(Catalogue& catalogue) {
  add_forms<float, double, std::complex<float>, std::complex<double>>(catalogue);
  add_rows<std::int32_t>(catalogue);
  add_rows<std::int64_t>(catalogue);
  add_examination<std::int32_t>(catalogue);
  add_examination<std::int64_t>(catalogue);
}

const Subject kSparseForms("sparse", add_calls_of_sparse_forms);

}  // namespace

}  // namespace troupe::catalogue
