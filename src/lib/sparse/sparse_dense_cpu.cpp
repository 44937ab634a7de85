#include "lib/sparse/elements_cpu.hpp"
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

/// C += alpha op(A) B, an element of A after the other.
template <class T, class I>
void add_product(const sparse::Spmm& op, T alpha, const I* outer, const I* inner, const T* value,
                 const DenseView<const T>& b, const DenseView<T>& c) {
  const bool plain = op.transpose_a == blas::Transpose::no;
  const bool conjugate = op.transpose_a == blas::Transpose::conjugate;
  each_element(op.a, outer, inner, [&](std::int64_t row, std::int64_t column, std::int64_t place) {
    const T factor = times(alpha, conjugated(value[place], conjugate));
    const auto to = plain ? row : column, from = plain ? column : row;
    for (std::int64_t j = 0; j < op.n; ++j) c(to, j) += times(factor, b(from, j));
  });
}

}  // namespace

Result<void> Sparse::run(const sparse::Spmm& op, const Call& call) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.a.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return services_.submit(
          call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
                 outer = call.at<const I>(op.outer), inner = call.at<const I>(op.inner),
                 value = call.at<const T>(op.value),
                 b = DenseView<const T>(call.at<const T>(op.b), op.order_b, op.ldb),
                 c = DenseView<T>(call.at<T>(op.c), op.order_c, op.ldc)] {
            const T old = beta.get();
            for (std::int64_t i = 0; i < op.rows_of_c(); ++i) {
              for (std::int64_t j = 0; j < op.n; ++j)
                c(i, j) = old == T(0) ? T(0) : times(old, c(i, j));
            }
            add_product(op, alpha.get(), outer, inner, value, b, c);
          });
    });
  });
}

Result<void> Sparse::run(const sparse::Sddmm& op, const Call& call) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.c.index_dtype, [&](auto zero_index) {
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
                 outer = call.at<const I>(op.outer), inner = call.at<const I>(op.inner),
                 a = view(op.a, op.transpose_a, op.order_a, op.lda),
                 b = view(op.b, op.transpose_b, op.order_b, op.ldb), value = call.at<T>(op.value)] {
            each_element(
                op.c, outer, inner, [&](std::int64_t row, std::int64_t column, std::int64_t place) {
                  T sum{};
                  for (std::int64_t j = 0; j < op.k; ++j) sum += times(a(row, j), b(j, column));
                  const T product = times(alpha.get(), sum), old = beta.get();
                  value[place] = old == T(0) ? product : product + times(old, value[place]);
                });
          });
    });
  });
}

}  // namespace troupe::host::cpu
