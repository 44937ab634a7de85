#include "lib/sparse/sparse_cpu.hpp"

/// Products of sparse matrices with dense ones on the cpu engine.
namespace troupe::host::cpu {
namespace {

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

template <class T>
T conjugated(T x, bool conjugate) {
  if constexpr (ComplexElement<T>) {
    return conjugate ? std::conj(x) : x;
  } else {
    return x;
  }
}

/// C += alpha op(A) B, an element of A after the other.
template <class T, class I>
void add_product(const sparse::Spmm& op, T alpha, const I* row_begin, const I* column,
                 const T* value, const DenseView<const T>& b, const DenseView<T>& c) {
  const bool plain = op.transpose_a == blas::Transpose::no;
  const bool conjugate = op.transpose_a == blas::Transpose::conjugate;
  for (std::int64_t row = 0; row < op.rows; ++row) {
    for (I i = row_begin[row]; i < row_begin[row + 1]; ++i) {
      const T factor = alpha * conjugated(value[i], conjugate);
      const auto to = plain ? row : static_cast<std::int64_t>(column[i]);
      const auto from = plain ? static_cast<std::int64_t>(column[i]) : row;
      if (to < 0 || to >= op.rows_of_c()) continue;  // a wrong column writes nothing of others
      for (std::int64_t j = 0; j < op.n; ++j) c(to, j) += factor * b(from, j);
    }
  }
}

}  // namespace

Result<void> Sparse::run(const sparse::Spmm& op, const Call& call) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return services_.submit(
          call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
                 row_begin = call.at<const I>(op.row_begin), column = call.at<const I>(op.column),
                 value = call.at<const T>(op.value),
                 b = DenseView<const T>(call.at<const T>(op.b), op.order_b, op.ldb),
                 c = DenseView<T>(call.at<T>(op.c), op.order_c, op.ldc)] {
            const T old = beta.get();
            for (std::int64_t i = 0; i < op.rows_of_c(); ++i) {
              for (std::int64_t j = 0; j < op.n; ++j) c(i, j) = old == T(0) ? T(0) : old * c(i, j);
            }
            add_product(op, alpha.get(), row_begin, column, value, b, c);
          });
    });
  });
}

Result<void> Sparse::run(const sparse::Sddmm& op, const Call& call) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      // Transposed is the same as in the other order.
      const auto view = [&](const Operand& operand, blas::Transpose transpose, blas::Order order,
                            std::int64_t leading) {
        const bool by_column = (order == blas::Order::column) == (transpose == blas::Transpose::no);
        return DenseView<const T>(call.at<const T>(operand),
                                  by_column ? blas::Order::column : blas::Order::row, leading);
      };
      return services_.submit(
          call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
                 row_begin = call.at<const I>(op.row_begin), column = call.at<const I>(op.column),
                 a = view(op.a, op.transpose_a, op.order_a, op.lda),
                 b = view(op.b, op.transpose_b, op.order_b, op.ldb), value = call.at<T>(op.value)] {
            for (std::int64_t row = 0; row < op.rows; ++row) {
              for (I i = row_begin[row]; i < row_begin[row + 1]; ++i) {
                T sum{};
                for (std::int64_t j = 0; j < op.k; ++j)
                  sum += a(row, j) * b(j, static_cast<std::int64_t>(column[i]));
                const T product = alpha.get() * sum;
                value[i] = beta.get() == T(0) ? product : product + beta.get() * value[i];
              }
            }
          });
    });
  });
}

}  // namespace troupe::host::cpu
