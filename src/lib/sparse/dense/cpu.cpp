#include "lib/sparse/common/products_cpu.hpp"

/// Products of sparse matrices with dense ones on the cpu engine.
namespace troupe::host::cpu {

Result<void> run(const sparse::Spmm& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.a.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      SparseProduct<T, I> product{op.a,
                                  op.transpose_a,
                                  call.at<const I>(op.outer),
                                  call.at<const I>(op.inner),
                                  call.at<const T>(op.value),
                                  op.n,
                                  {call.at<const T>(op.b), op.order_b, op.ldb},
                                  {call.at<T>(op.c), op.order_c, op.ldc},
                                  {},
                                  {}};
      return library.services.submit(
          call, [product, alpha = ScalarValue<T>(op.alpha, call),
                 beta = ScalarValue<T>(op.beta, call), team = library.team]() mutable {
            product.alpha = alpha.get(), product.beta = beta.get();
            multiply(product, *team);
          });
    });
  });
}

Result<void> run(const sparse::Sddmm& op, const Call& call, Sparse& library) {
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
      return library.services.submit(
          call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
                 outer = call.at<const I>(op.outer), inner = call.at<const I>(op.inner),
                 a = view(op.a, op.transpose_a, op.order_a, op.lda),
                 b = view(op.b, op.transpose_b, op.order_b, op.ldb), value = call.at<T>(op.value)] {
            each_element(
                op.c, outer, inner, [&](std::int64_t row, std::int64_t column, std::int64_t place) {
                  T sum{};
                  for (std::int64_t j = 0; j < op.k; ++j) sum += times(a(row, j), b(j, column));
                  const T product = weighed(alpha.get(), sum), old = beta.get();
                  value[place] = old == T(0) ? product : product + times(old, value[place]);
                });
          });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
