#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "lib/sparse/algebra/spgemm_cpu.hpp"
#include "lib/sparse/cpu.hpp"

/// Sums of sparse matrices, and products whose structure is known, on the cpu engine.
namespace troupe::host::cpu {
namespace {

template <class T, class I>
bool has_sorted_rows(const CsrFactor<T, I>& a) {
  if (!a.sound()) return false;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const I* const end = a.column + a.row_begin[row + 1];
    if (std::adjacent_find(a.column + a.row_begin[row], end, std::greater_equal<I>()) != end)
      return false;
  }
  return true;
}

/// Calls visit(column, i, j) for each element of the sum's row, in their order. i and j are its
/// elements of A and B, -1 where there is none.
template <class T, class I, class Visit>
void merge_row(const CsrFactor<T, I>& a, const CsrFactor<T, I>& b, std::int64_t row,
               Visit&& visit) {
  std::int64_t i = a.row_begin[row], j = b.row_begin[row];
  const std::int64_t a_end = a.row_begin[row + 1], b_end = b.row_begin[row + 1];
  while (i < a_end || j < b_end) {
    const bool of_a = i < a_end && (j == b_end || a.column[i] <= b.column[j]);
    const bool of_b = j < b_end && (i == a_end || b.column[j] <= a.column[i]);
    visit(of_a ? a.column[i] : b.column[j], of_a ? i : -1, of_b ? j : -1);
    if (of_a) ++i;
    if (of_b) ++j;
  }
}

/// The number of nonzeros, or -1 if A or B is not a matrix with sorted rows. Then C is not one
/// either. What I cannot count any more stands as its maximum: verdict() refuses such a sum.
template <class T, class I>
std::int64_t count_sum(const CsrFactor<T, I>& a, const CsrFactor<T, I>& b, I* row_begin) {
  std::fill_n(row_begin, a.rows + 1, I{0});
  if (!has_sorted_rows(a) || !has_sorted_rows(b)) return -1;
  constexpr std::int64_t kMost = std::numeric_limits<I>::max();
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    merge_row(a, b, row, [&](I, std::int64_t, std::int64_t) { ++count; });
    row_begin[row + 1] = static_cast<I>(std::min(count, kMost));
  }
  return count;
}

template <class T, class I>
void fill_sum(T alpha, const CsrFactor<T, I>& a, T beta, const CsrFactor<T, I>& b,
              const CsrProduct<T, I>& c) {
  std::int64_t at = 0;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    merge_row(a, b, row, [&](I column, std::int64_t i, std::int64_t j) {
      T sum{};
      if (i >= 0 && alpha != T(0)) sum += alpha * a.value[i];
      if (j >= 0 && beta != T(0)) sum += beta * b.value[j];
      c.column[at] = column;
      c.value[at++] = sum;
    });
  }
}

/// The values of the product of A and B where C has elements. In the order of the elements of A.
template <class T, class I>
void multiply_into(const CsrFactor<T, I>& a, const CsrFactor<T, I>& b, const CsrFactor<T, I>& c,
                   T* value) {
  if (!a.sound() || !b.sound() || !c.sound()) {
    std::fill_n(value, c.nonzeros, T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
    return;
  }
  std::vector<std::int64_t> place(static_cast<std::size_t>(c.columns), -1);  // by column, in C
  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (I k = c.row_begin[row]; k < c.row_begin[row + 1]; ++k) {
      place[static_cast<std::size_t>(c.column[k])] = k;
      value[k] = T{};
    }
    for (I i = a.row_begin[row]; i < a.row_begin[row + 1]; ++i) {
      const I of_b = a.column[i];
      for (I j = b.row_begin[of_b]; j < b.row_begin[of_b + 1]; ++j) {
        const auto at = place[static_cast<std::size_t>(b.column[j])];
        if (at >= 0) value[at] += a.value[i] * b.value[j];
      }
    }
    for (I k = c.row_begin[row]; k < c.row_begin[row + 1]; ++k)
      place[static_cast<std::size_t>(c.column[k])] = -1;
  }
}

}  // namespace

Result<void> run(const sparse::Geam& op, const Call& call, Sparse& library) {
  using sparse::Geam;
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      const auto part = [&](Geam::Part which) { return sparse::find_tagged(call.tail(), which); };
      const CsrFactor<T, I> a = {op.rows,
                                 op.columns,
                                 op.nonzeros_a,
                                 call.at<const I>(op.a_row_begin),
                                 call.at<const I>(op.a_column),
                                 call.at<const T>(part(Geam::a))};
      const CsrFactor<T, I> b = {op.rows,
                                 op.columns,
                                 op.nonzeros_b,
                                 call.at<const I>(op.b_row_begin),
                                 call.at<const I>(op.b_column),
                                 call.at<const T>(part(Geam::b))};
      const CsrProduct<T, I> c = {call.tail().empty() ? -1 : op.capacity,
                                  call.at<I>(op.c_row_begin), call.at<I>(part(Geam::c_column)),
                                  call.at<T>(part(Geam::c))};
      return library.services.submit(call, [a, b, c, alpha = ScalarValue<T>(op.alpha, call),
                                            beta = ScalarValue<T>(op.beta, call),
                                            nonzeros = call.at<std::int64_t>(op.nonzeros)] {
        *nonzeros = count_sum(a, b, c.row_begin);
        const bool fits = *nonzeros <= c.capacity && *nonzeros <= std::numeric_limits<I>::max();
        if (*nonzeros >= 0 && fits) fill_sum(alpha.get(), a, beta.get(), b, c);
      });
    });
  });
}

Result<void> run(const sparse::SpgemmReuse& op, const Call& call, Sparse& library) {
  using sparse::SpgemmReuse;
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      const auto values = [&](SpgemmReuse::Matrix matrix) {
        return sparse::find_tagged(call.tail(), matrix);
      };
      const CsrFactor<T, I> a = {op.rows,
                                 op.inner,
                                 op.nonzeros_a,
                                 call.at<const I>(op.a_row_begin),
                                 call.at<const I>(op.a_column),
                                 call.at<const T>(values(SpgemmReuse::a))};
      const CsrFactor<T, I> b = {op.inner,
                                 op.columns,
                                 op.nonzeros_b,
                                 call.at<const I>(op.b_row_begin),
                                 call.at<const I>(op.b_column),
                                 call.at<const T>(values(SpgemmReuse::b))};
      const CsrFactor<T, I> c = {op.rows,
                                 op.columns,
                                 op.nonzeros_c,
                                 call.at<const I>(op.c_row_begin),
                                 call.at<const I>(op.c_column),
                                 nullptr};
      return library.services.submit(call, [a, b, c, value = call.at<T>(values(SpgemmReuse::c))] {
        multiply_into(a, b, c, value);
      });
    });
  });
}

Result<void> run(const sparse::Spgemm& op, const Call& call, Sparse& library) {
  using sparse::Spgemm;
  const auto values = [&](Spgemm::Matrix matrix) {
    return sparse::find_values(call.tail(), matrix);
  };
  return with_real(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      const CsrFactor<T, I> a = {op.rows,
                                 op.inner,
                                 op.nonzeros_a,
                                 call.at<const I>(op.a_row_begin),
                                 call.at<const I>(op.a_column),
                                 call.at<const T>(values(Spgemm::a))};
      const CsrFactor<T, I> b = {op.inner,
                                 op.columns,
                                 op.nonzeros_b,
                                 call.at<const I>(op.b_row_begin),
                                 call.at<const I>(op.b_column),
                                 call.at<const T>(values(Spgemm::b))};
      const CsrProduct<T, I> c = {call.tail().empty() ? 0 : op.capacity, call.at<I>(op.c_row_begin),
                                  call.at<I>(op.c_column), call.at<T>(values(Spgemm::c))};
      return library.services.submit(call,
                                     [a, b, c, nonzeros = call.at<std::int64_t>(op.nonzeros)] {
                                       *nonzeros = spgemm(a, b, c);
                                     });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
