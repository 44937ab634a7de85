#include <cmath>

#include "common/core/narrow_float.hpp"
#include "lib/blas/cpu.hpp"

/// Changes of order on the cpu engine, element by element in the type of the scalars.
namespace troupe::host::cpu {
namespace {

template <class T>
using ComputedIn = std::conditional_t<FieldElement<T>, T, float>;

template <class T>
ComputedIn<T> wide(const T& x) {
  if constexpr (FieldElement<T>)
    return x;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<float>(x);
  else
    return widen(x);
}
template <class T>
T stored(const ComputedIn<T>& x) {
  if constexpr (FieldElement<T>) {
    return x;
  } else if constexpr (std::is_integral_v<T>) {
    return integer_of<T>(x);
  } else {
    return narrow<T>(x);
  }
}

/// Where element (i, j) is.
std::int64_t place(blas::Order order, std::int64_t leading, std::int64_t i, std::int64_t j) {
  return order == blas::Order::column ? j * leading + i : i * leading + j;
}
template <class T>
ComputedIn<T> element(const T* a, blas::Transpose transpose, blas::Order order,
                      std::int64_t leading, std::int64_t i, std::int64_t j) {
  if (transpose == blas::Transpose::no) return wide(a[place(order, leading, i, j)]);
  const auto value = wide(a[place(order, leading, j, i)]);
  return transpose == blas::Transpose::conjugate ? conjugate(value) : value;
}

template <class T>
void transform(const blas::Transform& op, ComputedIn<T> alpha, ComputedIn<T> beta, const T* a,
               const T* b, T* c) {
  using F = ComputedIn<T>;
  for (std::int64_t of = 0; of < op.batch; ++of) {
    for (std::int64_t j = 0; j < op.n; ++j) {
      for (std::int64_t i = 0; i < op.m; ++i) {
        F x{};  // what a scalar of zero belongs to may be anything, also NaN
        if (alpha != F(0))
          x = alpha * element(a + of * op.stride_a, op.transpose_a, op.order_a, op.lda, i, j);
        if (beta != F(0))
          x += beta * element(b + of * op.stride_b, op.transpose_b, op.order_b, op.ldb, i, j);
        c[of * op.stride_c + place(op.order_c, op.ldc, i, j)] = stored<T>(x);
      }
    }
  }
}

template <class Visit>
Result<void> with_any(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::i8: return visit(std::int8_t{});
    case DType::i32: return visit(std::int32_t{});
    case DType::f8e4m3: return visit(Float8E4M3{});
    case DType::f8e5m2: return visit(Float8E5M2{});
    default: return with_number_or_narrow(dtype, visit);
  }
}

}  // namespace

Result<void> run(const blas::Transform& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  return with_any(op.dtype, [&]<class T>(T) {
    using F = ComputedIn<T>;
    const T* const b = op.b.present() ? call.at<const T>(op.b) : nullptr;
    return library.services.submit(
        call, [op, a = call.at<const T>(op.a), b, c = call.at<T>(op.c),
               alpha = ScalarValue<F>(op.alpha, call), beta = ScalarValue<F>(op.beta, call)] {
          transform<T>(op, alpha.get(), beta.get(), a, b, c);
        });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
