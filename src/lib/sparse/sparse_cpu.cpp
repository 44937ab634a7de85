#include <algorithm>
#include <array>

#include "lib/sparse/sparse_cpu.hpp"
#include "lib/sparse/spgemm_cpu.hpp"

namespace troupe::host::cpu {
namespace {

template <class T, class I>
struct Csr {
  std::int64_t rows;
  const I* row_begin;
  const I* column;
  const T* value;
};

/// y = alpha A x + beta y; y is not read where beta is 0.
template <class T, class I>
void spmv(const Csr<T, I>& a, T alpha, const T* x, T beta, T* y) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    T sum = 0;
    for (I i = a.row_begin[row]; i < a.row_begin[row + 1]; ++i) sum += a.value[i] * x[a.column[i]];
    y[row] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[row];
  }
}

template <class T, class I>
struct Sell {
  std::int64_t rows, slice_rows;
  const I* slice_begin;
  const I* column;
  const T* value;
};

/// y = alpha A x + beta y; y is not read where beta is 0. The inner loop runs down a column of a
/// slice, without a dependency from one row to the next.
template <class T, class I>
void spmv(const Sell<T, I>& a, T alpha, const T* x, T beta, T* y) {
  constexpr std::int64_t kBlock = 64;  // rows of a slice whose sums stay in the first cache
  for (std::int64_t first = 0, slice = 0; first < a.rows; first += a.slice_rows, ++slice) {
    const std::int64_t begin = a.slice_begin[slice], end = a.slice_begin[slice + 1];
    const std::int64_t rows = std::min(a.slice_rows, a.rows - first);
    for (std::int64_t block = 0; block < rows; block += kBlock) {
      const std::int64_t count = std::min(kBlock, rows - block);
      std::array<T, kBlock> sums{};
      for (std::int64_t at = begin; at < end; at += a.slice_rows) {
        const I* const column = a.column + at + block;
        const T* const value = a.value + at + block;
        // Padding must not meet x, which may be infinite there.
        for (std::int64_t i = 0; i < count; ++i) {
          sums[static_cast<std::size_t>(i)] += column[i] < 0 ? T(0) : value[i] * x[column[i]];
        }
      }
      T* const result = y + first + block;
      for (std::int64_t i = 0; i < count; ++i) {
        const T product = alpha * sums[static_cast<std::size_t>(i)];
        result[i] = beta == T(0) ? product : product + beta * result[i];
      }
    }
  }
}

}  // namespace

Result<void> Sparse::run(const sparse::Spmv& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      const Csr<T, I> a = {op.rows, call.at<const I>(op.row_begin), call.at<const I>(op.column),
                           call.at<const T>(op.value)};
      return services_.submit(
          call, [a, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
                 x = call.at<const T>(op.x),
                 y = call.at<T>(op.y)] { spmv(a, alpha.get(), x, beta.get(), y); });
    });
  });
}

Result<void> Sparse::run(const sparse::SpmvSell& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      const Sell<T, I> a = {op.rows, op.slice_rows, call.at<const I>(op.slice_begin),
                            call.at<const I>(op.column), call.at<const T>(op.value)};
      return services_.submit(
          call, [a, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
                 x = call.at<const T>(op.x),
                 y = call.at<T>(op.y)] { spmv(a, alpha.get(), x, beta.get(), y); });
    });
  });
}

Result<void> Sparse::run(const sparse::Spgemm& op, const Call& call) {
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
      return services_.submit(call, [a, b, c, nonzeros = call.at<std::int64_t>(op.nonzeros)] {
        *nonzeros = spgemm(a, b, c);
      });
    });
  });
}

}  // namespace troupe::host::cpu

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cpu::Services& services) {
  return new troupe::host::cpu::Sparse(services);
}
