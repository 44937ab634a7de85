#include <vector>

#include "lib/blas/common/products_cpu.hpp"
#include "lib/blas/cpu.hpp"

/// Level 3 on the cpu engine.
namespace troupe::host::cpu {
namespace {

using blas::Symmetry;
using blas::Transpose;

/// One half of alpha op(A) op(B)^T + beta C, or ^H: OpenBLAS has no function for it.
template <class T, class F>
void add_half_product(const blas::Syr2k& op, T alpha, const T* a, const T* b, F beta, T* c) {
  const bool plain = op.transpose == Transpose::no;
  const bool hermitian = op.symmetry == Symmetry::hermitian;
  const auto other = hermitian ? CblasConjTrans : CblasTrans;
  std::vector<T> product(static_cast<std::size_t>(op.n * op.n));
  const T zero{};
  Cblas<T>::gemm(CblasColMajor, plain ? CblasNoTrans : other, plain ? other : CblasNoTrans,
                 to_int(op.n), to_int(op.n), alpha == T(0) ? 0 : to_int(op.k), pass(alpha), a,
                 to_int(op.lda), b, to_int(op.ldb), pass(zero), product.data(),
                 std::max(1, to_int(op.n)));
  for_half(op.n, op.uplo, [&](std::int64_t i, std::int64_t j) {
    auto& out = c[j * op.ldc + i];
    out = product[static_cast<std::size_t>(j * op.n + i)] + (beta == F(0) ? T(0) : beta * out);
    if (hermitian && i == j) out = T(std::real(out));
  });
}

template <class T, class F>
void add_both_products(const blas::Syr2k& op, T alpha, const T* a, const T* b, F beta, T* c) {
  const auto call = [&](auto function, auto scalar) {
    function(CblasColMajor, flag(op.uplo), flag(op.transpose), to_int(op.n), to_int(op.k),
             pass(alpha), a, to_int(op.lda), b, to_int(op.ldb), scalar, c, to_int(op.ldc));
  };
  if constexpr (std::is_same_v<T, F>) {
    call(Cblas<T>::syr2k, pass(beta));
  } else {
    call(Cblas<T>::her2k, beta);
  }
}

}  // namespace

Result<void> run(const blas::Gemm& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_number_or_narrow(op.dtype, [&]<class T>(T) {
    using F = ScalarTypeOf<T>;
    return library.services.submit(
        call, [op, alpha = ScalarValue<F>(op.alpha, call), beta = ScalarValue<F>(op.beta, call),
               a = call.at<const T>(op.a), b = call.at<const T>(op.b),
               c = call.at<T>(op.c)] { multiply(op, alpha.get(), a, b, beta.get(), c); });
  });
}

Result<void> run(const blas::Symm& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
               a = call.at<const T>(op.a), b = call.at<const T>(op.b), c = call.at<T>(op.c)] {
          auto function = Cblas<T>::symm;
          if constexpr (ComplexElement<T>) {
            if (op.symmetry == Symmetry::hermitian) function = Cblas<T>::hemm;
          }
          function(CblasColMajor, flag(op.side), flag(op.uplo), to_int(op.m), to_int(op.n),
                   pass(alpha.get()), a, to_int(op.lda), b, to_int(op.ldb), pass(beta.get()), c,
                   to_int(op.ldc));
        });
  });
}

Result<void> run(const blas::Syrk& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.k, op.lda, op.ldc}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    const auto a = call.at<const T>(op.a);
    const auto c = call.at<T>(op.c);
    const auto add = [&](auto function, auto alpha, auto beta) {
      return library.services.submit(call, [=] {
        function(CblasColMajor, flag(op.uplo), flag(op.transpose), to_int(op.n), to_int(op.k),
                 pass(alpha.get()), a, to_int(op.lda), pass(beta.get()), c, to_int(op.ldc));
      });
    };
    if constexpr (ComplexElement<T>) {
      using R = RealOf<T>;
      if (op.symmetry == Symmetry::hermitian)
        return add(Cblas<T>::herk, ScalarValue<R>(op.alpha, call), ScalarValue<R>(op.beta, call));
    }
    return add(Cblas<T>::syrk, ScalarValue<T>(op.alpha, call), ScalarValue<T>(op.beta, call));
  });
}

Result<void> run(const blas::Syr2k& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  const auto add = [&]<class T, class F>(T, F) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<F>(op.beta, call),
               a = call.at<const T>(op.a), b = call.at<const T>(op.b), c = call.at<T>(op.c)] {
          if (op.products == blas::Syr2k::Products::both) {
            add_both_products(op, alpha.get(), a, b, beta.get(), c);
          } else {
            add_half_product(op, alpha.get(), a, b, beta.get(), c);
          }
        });
  };
  return with_number(op.dtype, [&]<class T>(T zero) {
    return op.symmetry == Symmetry::hermitian ? add(zero, RealOf<T>{}) : add(zero, T{});
  });
}

Result<void> run(const blas::Trmm& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), a = call.at<const T>(op.a),
               b = call.at<const T>(op.b), c = call.at<T>(op.c)] {
          if (b != c) {
            for (std::int64_t j = 0; j < op.n; ++j)
              std::copy_n(b + j * op.ldb, op.m, c + j * op.ldc);
          }
          Cblas<T>::trmm(CblasColMajor, flag(op.side), flag(op.uplo), flag(op.transpose),
                         flag(op.diagonal), to_int(op.m), to_int(op.n), pass(alpha.get()), a,
                         to_int(op.lda), c, to_int(op.ldc));
        });
  });
}

Result<void> run(const blas::Trsm& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.ldb}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, alpha = ScalarValue<T>(op.alpha, call),
                                          a = call.at<const T>(op.a), b = call.at<T>(op.b)] {
      Cblas<T>::trsm(CblasColMajor, flag(op.side), flag(op.uplo), flag(op.transpose),
                     flag(op.diagonal), to_int(op.m), to_int(op.n), pass(alpha.get()), a,
                     to_int(op.lda), b, to_int(op.ldb));
    });
  });
}

Result<void> run(const blas::Geam& op, const Call& call, Blas& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
               a = call.at<const T>(op.a), b = call.at<const T>(op.b), c = call.at<T>(op.c)] {
          const T of_a = alpha.get(), of_b = beta.get();
          const auto at = [](const T* matrix, std::int64_t leading, Transpose transpose,
                             std::int64_t i, std::int64_t j) {
            if (transpose == Transpose::no) return matrix[j * leading + i];
            const T& mirrored = matrix[i * leading + j];
            return transpose == Transpose::conjugate ? conjugate(mirrored) : mirrored;
          };
          // What a scalar of zero belongs to may be anything, also NaN.
          for (std::int64_t j = 0; j < op.n; ++j) {
            for (std::int64_t i = 0; i < op.m; ++i) {
              T sum{};
              if (of_a != T(0)) sum += of_a * at(a, op.lda, op.transpose_a, i, j);
              if (of_b != T(0)) sum += of_b * at(b, op.ldb, op.transpose_b, i, j);
              c[j * op.ldc + i] = sum;
            }
          }
        });
  });
}

Result<void> run(const blas::Dgmm& op, const Call& call, Blas& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, a = call.at<const T>(op.a), x = call.at<const T>(op.x), c = call.at<T>(op.c)] {
          const bool left = op.side == blas::Side::left;
          const auto length = left ? op.m : op.n;
          for (std::int64_t j = 0; j < op.n; ++j) {
            for (std::int64_t i = 0; i < op.m; ++i)
              c[j * op.ldc + i] = a[j * op.lda + i] * element(x, length, op.incx, left ? i : j);
          }
        });
  });
}

Result<void> run(const blas::Tpttr& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.lda}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, packed = call.at<const T>(op.packed),
                                          a = call.at<T>(op.a)] {
      const auto* next = packed;
      for_half(op.n, op.uplo, [&](std::int64_t i, std::int64_t j) { a[j * op.lda + i] = *next++; });
    });
  });
}

Result<void> run(const blas::Trttp& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.lda}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, a = call.at<const T>(op.a),
                                          packed = call.at<T>(op.packed)] {
      auto* next = packed;
      for_half(op.n, op.uplo, [&](std::int64_t i, std::int64_t j) { *next++ = a[j * op.lda + i]; });
    });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
