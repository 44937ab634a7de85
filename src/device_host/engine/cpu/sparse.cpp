#include "device_host/engine/cpu/cpu_engine.hpp"

namespace troupe::host::cpu {
namespace {

/// Calls visit(I{}) for i32 or i64; other dtypes are unsupported.
template <class Visit>
Result<void> with_index(DType dtype, Visit&& visit) {
  if (dtype == DType::i32) return visit(std::int32_t{});
  if (dtype == DType::i64) return visit(std::int64_t{});
  return Error{Errc::unsupported, 0, "indices are i32 or i64"};
}

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

}  // namespace

Result<void> CpuEngine::run(const sparse::Spmv& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      const Csr<T, I> a = {op.rows, call.at<const I>(op.row_begin), call.at<const I>(op.column),
                           call.at<const T>(op.value)};
      return submit(call, [a, alpha = Factor<T>(op.alpha, call), beta = Factor<T>(op.beta, call),
                           x = call.at<const T>(op.x),
                           y = call.at<T>(op.y)] { spmv(a, alpha.get(), x, beta.get(), y); });
    });
  });
}

Result<void> CpuEngine::run(const sparse::Gather& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      return submit(
          call, [count = op.count, index = call.at<const decltype(zero_index)>(op.index),
                 source = call.at<const T>(op.source), destination = call.at<T>(op.destination)] {
            for (std::int64_t i = 0; i < count; ++i) destination[i] = source[index[i]];
          });
    });
  });
}

}  // namespace troupe::host::cpu
