#include <utility>
#include <vector>

#include "lib/blas/common/products_cpu.hpp"

/// Lists of matrices on the cpu engine, one after the other.
namespace troupe::host::cpu {
namespace {

/// y = alpha op(A) x + beta y of 16-bit numbers, added up in f32 and rounded once.
template <NarrowElement T, class Y>
void multiply_vector(const blas::GemvBatched& op, float alpha, const T* a, const T* x, float beta,
                     Y* y) {
  const bool plain = op.transpose == blas::Transpose::no;
  for (std::int64_t i = 0; i < op.length_y(); ++i) {
    float sum = 0;
    for (std::int64_t j = 0; j < op.length_x() && alpha != 0; ++j) {
      sum += to_float(a[plain ? j * op.lda + i : i * op.lda + j]) *
             to_float(element(x, op.length_x(), op.incx, j));
    }
    auto& out = element(y, op.length_y(), op.incy, i);
    out = from_float<Y>(alpha * sum + (beta == 0 ? 0 : beta * to_float(out)));
  }
}
template <FieldElement T>
void multiply_vector(const blas::GemvBatched& op, T alpha, const T* a, const T* x, T beta, T* y) {
  // BLAS itself leaves y as it is where A is empty.
  if (op.m == 0 || op.n == 0) return scale(op.length_y(), beta, y, op.incy);
  Cblas<T>::gemv(CblasColMajor, flag(op.transpose), to_int(op.m), to_int(op.n), pass(alpha), a,
                 to_int(op.lda), x, to_int(op.incx), pass(beta), y, to_int(op.incy));
}

std::vector<std::byte*> addresses_of(const Call& call) {
  std::vector<std::byte*> addresses;
  for (const auto& part : call.tail()) addresses.push_back(call.at(part.range));
  return addresses;
}

}  // namespace

Result<void> run(const blas::GemvBatched& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.incx, op.incy}); !fits) return fits;
  const auto queue = [&]<class T, class Y>(T, Y) {
    using F = ScalarTypeOf<T>;
    return library.services.submit(
        call, [op, list = addresses_of(call), alpha = ScalarValue<F>(op.alpha, call),
               beta = ScalarValue<F>(op.beta, call), a = call.at<const T>(op.a),
               x = call.at<const T>(op.x), y = call.at<Y>(op.y)] {
          const auto count = static_cast<std::size_t>(op.batch);
          for (std::size_t i = 0; i < count; ++i) {
            const auto at = static_cast<std::int64_t>(i);
            if (list.empty()) {
              multiply_vector(op, alpha.get(), a + at * op.stride_a, x + at * op.stride_x,
                              beta.get(), y + at * op.stride_y);
            } else {
              multiply_vector(op, alpha.get(), reinterpret_cast<const T*>(list[i]),
                              reinterpret_cast<const T*>(list[count + i]), beta.get(),
                              reinterpret_cast<Y*>(list[2 * count + i]));
            }
          }
        });
  };
  return with_number_or_narrow(op.dtype, [&]<class T>(T zero) {
    if constexpr (NarrowElement<T>) {
      if (op.y_dtype == DType::f32) return queue(zero, float{});
    }
    return queue(zero, zero);
  });
}

Result<void> run(const blas::GemmGrouped& op, const Call& call, Blas& library) {
  const auto* const first = reinterpret_cast<const blas::GemmGroup*>(call.data().data());
  std::vector<blas::GemmGroup> groups(first, first + op.groups);
  std::size_t products = 0;
  for (const auto& group : groups) {
    if (auto fits = require_int({group.m, group.n, group.k, group.lda, group.ldb, group.ldc});
        !fits)
      return fits;
    products += static_cast<std::size_t>(group.batch);
  }
  return with_number_or_narrow(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [groups, products, list = addresses_of(call)] {
      using F = ScalarTypeOf<T>;
      std::size_t i = 0;
      for (const auto& group : groups) {
        for (std::int64_t j = 0; j < group.batch; ++j, ++i) {
          const F alpha(static_cast<RealOf<F>>(group.alpha)),
              beta(static_cast<RealOf<F>>(group.beta));
          multiply(group, alpha, reinterpret_cast<const T*>(list[i]),
                   reinterpret_cast<const T*>(list[products + i]), beta,
                   reinterpret_cast<T*>(list[2 * products + i]));
        }
      }
    });
  });
}

Result<void> run(const blas::TrsmBatched& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.ldb}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, list = addresses_of(call), alpha = ScalarValue<T>(op.alpha, call)] {
          const auto count = static_cast<std::size_t>(op.batch);
          for (std::size_t i = 0; i < count; ++i) {
            Cblas<T>::trsm(CblasColMajor, flag(op.side), flag(op.uplo), flag(op.transpose),
                           flag(op.diagonal), to_int(op.m), to_int(op.n), pass(alpha.get()),
                           reinterpret_cast<const T*>(list[i]), to_int(op.lda),
                           reinterpret_cast<T*>(list[count + i]), to_int(op.ldb));
          }
        });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
