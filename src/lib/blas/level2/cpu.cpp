#include "lib/blas/cpu.hpp"

/// Level 2 on the cpu engine.
namespace troupe::host::cpu {
namespace {

using blas::Storage;
using blas::Symmetry;

/// BLAS itself leaves y as it is where A is empty, also where it has rows.
template <class Op>
std::int64_t length_of_y(const Op& op) {
  return op.transpose == blas::Transpose::no ? op.m : op.n;
}

template <class T>
void multiply_vector(const blas::Symv& op, T alpha, const T* a, const T* x, T beta, T* y) {
  const auto uplo = flag(op.uplo);
  const int n = to_int(op.n), k = to_int(op.k), lda = to_int(op.lda), incx = to_int(op.incx),
            incy = to_int(op.incy);
  if constexpr (RealElement<T>) {
    switch (op.storage) {
      case Storage::full:
        Cblas<T>::symv(CblasColMajor, uplo, n, alpha, a, lda, x, incx, beta, y, incy);
        break;
      case Storage::banded:
        Cblas<T>::sbmv(CblasColMajor, uplo, n, k, alpha, a, lda, x, incx, beta, y, incy);
        break;
      case Storage::packed:
        Cblas<T>::spmv(CblasColMajor, uplo, n, alpha, a, x, incx, beta, y, incy);
        break;
    }
  } else if (op.symmetry == Symmetry::hermitian) {
    switch (op.storage) {
      case Storage::full:
        Cblas<T>::hemv(CblasColMajor, uplo, n, &alpha, a, lda, x, incx, &beta, y, incy);
        break;
      case Storage::banded:
        Cblas<T>::hbmv(CblasColMajor, uplo, n, k, &alpha, a, lda, x, incx, &beta, y, incy);
        break;
      case Storage::packed:
        Cblas<T>::hpmv(CblasColMajor, uplo, n, &alpha, a, x, incx, &beta, y, incy);
        break;
    }
  } else {  // CBLAS has no symv of complex numbers
    for (std::int64_t i = 0; i < op.n; ++i) {
      T sum{};
      for (std::int64_t j = 0; j < op.n && alpha != T(0); ++j)
        sum += in_half(a, op.lda, op.uplo, i, j) * element(x, op.n, op.incx, j);
      auto& out = element(y, op.n, op.incy, i);
      out = alpha * sum + (beta == T(0) ? T(0) : beta * out);
    }
  }
}

template <class T, class F>
void add_product(const blas::Syr& op, F alpha, const T* x, T* a) {
  const auto uplo = flag(op.uplo);
  const int n = to_int(op.n), lda = to_int(op.lda), incx = to_int(op.incx);
  const bool full = op.storage == Storage::full;
  if constexpr (RealElement<T>) {
    if (full) {
      Cblas<T>::syr(CblasColMajor, uplo, n, alpha, x, incx, a, lda);
    } else {
      Cblas<T>::spr(CblasColMajor, uplo, n, alpha, x, incx, a);
    }
  } else if constexpr (RealElement<F>) {
    if (full) {
      Cblas<T>::her(CblasColMajor, uplo, n, alpha, x, incx, a, lda);
    } else {
      Cblas<T>::hpr(CblasColMajor, uplo, n, alpha, x, incx, a);
    }
  } else if (alpha != F(0)) {  // CBLAS has no syr of complex numbers
    for_half(op.n, op.uplo, [&](std::int64_t i, std::int64_t j) {
      a[j * op.lda + i] += alpha * element(x, op.n, op.incx, i) * element(x, op.n, op.incx, j);
    });
  }
}

template <class T>
void add_products(const blas::Syr2& op, T alpha, const T* x, const T* y, T* a) {
  const auto uplo = flag(op.uplo);
  const int n = to_int(op.n), lda = to_int(op.lda), incx = to_int(op.incx), incy = to_int(op.incy);
  const bool full = op.storage == Storage::full;
  if constexpr (RealElement<T>) {
    if (full) {
      Cblas<T>::syr2(CblasColMajor, uplo, n, alpha, x, incx, y, incy, a, lda);
    } else {
      Cblas<T>::spr2(CblasColMajor, uplo, n, alpha, x, incx, y, incy, a);
    }
  } else if (op.symmetry == Symmetry::hermitian) {
    if (full) {
      Cblas<T>::her2(CblasColMajor, uplo, n, &alpha, x, incx, y, incy, a, lda);
    } else {
      Cblas<T>::hpr2(CblasColMajor, uplo, n, &alpha, x, incx, y, incy, a);
    }
  } else if (alpha != T(0)) {  // CBLAS has no syr2 of complex numbers
    const auto at = [&](const T* v, std::int64_t increment, std::int64_t i) {
      return element(v, op.n, increment, i);
    };
    for_half(op.n, op.uplo, [&](std::int64_t i, std::int64_t j) {
      a[j * op.lda + i] += alpha * at(x, op.incx, i) * at(y, op.incy, j) +
                           alpha * at(y, op.incy, i) * at(x, op.incx, j);
    });
  }
}

}  // namespace

Result<void> run(const blas::Gemv& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.incx, op.incy}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
               a = call.at<const T>(op.a), x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
          if (op.m == 0 || op.n == 0) return scale(length_of_y(op), beta.get(), y, op.incy);
          Cblas<T>::gemv(CblasColMajor, flag(op.transpose), to_int(op.m), to_int(op.n),
                         pass(alpha.get()), a, to_int(op.lda), x, to_int(op.incx), pass(beta.get()),
                         y, to_int(op.incy));
        });
  });
}

Result<void> run(const blas::Gbmv& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.kl, op.ku, op.lda, op.incx, op.incy}); !fits)
    return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
               a = call.at<const T>(op.a), x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
          if (op.m == 0 || op.n == 0) return scale(length_of_y(op), beta.get(), y, op.incy);
          Cblas<T>::gbmv(CblasColMajor, flag(op.transpose), to_int(op.m), to_int(op.n),
                         to_int(op.kl), to_int(op.ku), pass(alpha.get()), a, to_int(op.lda), x,
                         to_int(op.incx), pass(beta.get()), y, to_int(op.incy));
        });
  });
}

Result<void> run(const blas::Symv& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.k, op.lda, op.incx, op.incy}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
               a = call.at<const T>(op.a), x = call.at<const T>(op.x),
               y = call.at<T>(op.y)] { multiply_vector(op, alpha.get(), a, x, beta.get(), y); });
  });
}

Result<void> run(const blas::Ger& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.incx, op.incy}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), x = call.at<const T>(op.x),
               y = call.at<const T>(op.y), a = call.at<T>(op.a)] {
          const auto function = [&] {
            if constexpr (ComplexElement<T>) {
              return op.conjugate == blas::Conjugate::yes ? Cblas<T>::gerc : Cblas<T>::geru;
            } else {
              return Cblas<T>::ger;
            }
          }();
          function(CblasColMajor, to_int(op.m), to_int(op.n), pass(alpha.get()), x, to_int(op.incx),
                   y, to_int(op.incy), a, to_int(op.lda));
        });
  });
}

Result<void> run(const blas::Syr& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.lda, op.incx}); !fits) return fits;
  const auto add = [&]<class T, class F>(T, F) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<F>(op.alpha, call), x = call.at<const T>(op.x),
               a = call.at<T>(op.a)] { add_product(op, alpha.get(), x, a); });
  };
  return with_number(op.dtype, [&]<class T>(T zero) {
    return op.symmetry == Symmetry::hermitian ? add(zero, RealOf<T>{}) : add(zero, T{});
  });
}

Result<void> run(const blas::Syr2& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.lda, op.incx, op.incy}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), x = call.at<const T>(op.x),
               y = call.at<const T>(op.y),
               a = call.at<T>(op.a)] { add_products(op, alpha.get(), x, y, a); });
  });
}

Result<void> run(const blas::Trmv& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.n, op.k, op.lda, op.incx}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, a = call.at<const T>(op.a), x = call.at<T>(op.x)] {
      using C = Cblas<T>;
      const bool solve = op.task == blas::Trmv::Task::solve;
      const auto uplo = flag(op.uplo);
      const auto transpose = flag(op.transpose);
      const auto diagonal = flag(op.diagonal);
      const int n = to_int(op.n), k = to_int(op.k), lda = to_int(op.lda), incx = to_int(op.incx);
      switch (op.storage) {
        case Storage::full:
          (solve ? C::trsv : C::trmv)(CblasColMajor, uplo, transpose, diagonal, n, a, lda, x, incx);
          break;
        case Storage::banded:
          (solve ? C::tbsv : C::tbmv)(CblasColMajor, uplo, transpose, diagonal, n, k, a, lda, x,
                                      incx);
          break;
        case Storage::packed:
          (solve ? C::tpsv : C::tpmv)(CblasColMajor, uplo, transpose, diagonal, n, a, x, incx);
          break;
      }
    });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
