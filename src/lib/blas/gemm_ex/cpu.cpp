#include <vector>

#include "lib/blas/common/products_cpu.hpp"

/// Products of all types on the cpu engine: what OpenBLAS does not have is computed in f32 or i32
/// and rounded once.
namespace troupe::host::cpu {
namespace {

/// The matrix in type W, with the same gaps.
template <class W, class T>
std::vector<W> widened_to(const T* matrix, std::int64_t span) {
  std::vector<W> result(static_cast<std::size_t>(span));
  std::transform(matrix, matrix + span, result.begin(), [](T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<W>(x);
    else
      return static_cast<W>(to_float(x));
  });
  return result;
}

/// A and B of another type than f32.
template <class A, class C>
void multiply_in_f32(const blas::GemmEx& op, float alpha, const A* a, const A* b, float beta,
                     C* c) {
  const auto [span_a, span_b, span_c] = blas::spans_of(op);
  const auto wide_a = widened_to<float>(a, span_a), wide_b = widened_to<float>(b, span_b);
  if constexpr (std::is_same_v<C, float>) {
    multiply(op, alpha, wide_a.data(), wide_b.data(), beta, c);
  } else {
    auto wide_c = widened_to<float>(c, span_c);
    multiply(op, alpha, wide_a.data(), wide_b.data(), beta, wide_c.data());
    for (std::int64_t j = 0; j < op.n; ++j) {
      for (std::int64_t i = 0; i < op.m; ++i)
        c[j * op.ldc + i] = from_float<C>(wide_c[static_cast<std::size_t>(j * op.ldc + i)]);
    }
  }
}

/// Modulo 2^32, as on a GPU.
void multiply_integers(const blas::GemmEx& op, std::int32_t alpha, const std::int8_t* a,
                       const std::int8_t* b, std::int32_t beta, std::int32_t* c) {
  for (std::int64_t j = 0; j < op.n; ++j) {
    for (std::int64_t i = 0; i < op.m; ++i) {
      auto& out = c[j * op.ldc + i];
      const auto before =
          beta == 0 ? 0 : static_cast<std::uint32_t>(beta) * static_cast<std::uint32_t>(out);
      out = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(alpha) * integer_dot(op, a, b, i, j) + before);
    }
  }
}

}  // namespace

Result<void> run(const blas::GemmEx& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  // Calls work(alpha, beta, a, b, c) with scalars of F, matrices of A and C.
  const auto queue = [&]<class F, class A, class C>(F, A, C, auto&& work) {
    return library.services.submit(
        call,
        [op, work, alpha = ScalarValue<F>(op.alpha, call), beta = ScalarValue<F>(op.beta, call),
         a = call.at<const A>(op.a), b = call.at<const A>(op.b),
         c = call.at<C>(op.c)] { work(op, alpha.get(), a, b, beta.get(), c); });
  };
  const auto in_f32 = [&]<class A, class C>(A a, C c) {
    return queue(float{}, a, c, [](const auto&... all) { multiply_in_f32(all...); });
  };
  switch (op.dtype.value) {
    case DType::f16:
      if (op.compute == blas::Compute::f16) {
        return queue(
            Half{}, Half{}, Half{},
            [](const blas::GemmEx& what, Half alpha, const Half* a, const Half* b, Half beta,
               Half* c) { multiply_in_f32(what, to_float(alpha), a, b, to_float(beta), c); });
      }
      return op.c_dtype == DType::f32 ? in_f32(Half{}, float{}) : in_f32(Half{}, Half{});
    case DType::bf16:
      return op.c_dtype == DType::f32 ? in_f32(BFloat16{}, float{})
                                      : in_f32(BFloat16{}, BFloat16{});
    case DType::i8:
      if (op.compute == blas::Compute::f32) return in_f32(std::int8_t{}, float{});
      return queue(std::int32_t{}, std::int8_t{}, std::int32_t{},
                   [](const auto&... all) { multiply_integers(all...); });
    default:
      return with_number(op.dtype, [&]<class T>(T zero) {
        return queue(zero, zero, zero,
                     [](const blas::GemmEx& what, T alpha, const T* a, const T* b, T beta, T* c) {
                       multiply(what, alpha, a, b, beta, c);
                     });
      });
  }
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
