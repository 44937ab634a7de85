#include "lib/blas/cuda.hpp"

/// Level 2 on the cuda engine.
namespace troupe::host::cuda {

using blas::Storage;
using blas::Symmetry;

Result<void> run(const blas::Gemv& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return library.scale(op, call);
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::gemv(with.handle, operation(op.transpose), op.m, op.n, with.scalar(0),
                           with.at(op.a), op.lda, with.at(op.x), op.incx, with.scalar(1),
                           with.at(op.y), op.incy);
  });
}

Result<void> run(const blas::Gbmv& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return library.scale(op, call);
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::gbmv(with.handle, operation(op.transpose), op.m, op.n, op.kl, op.ku,
                           with.scalar(0), with.at(op.a), op.lda, with.at(op.x), op.incx,
                           with.scalar(1), with.at(op.y), op.incy);
  });
}

Result<void> run(const blas::Symv& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    using C = Cublas<T>;
    const auto handle = with.handle;
    const auto uplo = flag(op.uplo);
    const auto *const alpha = with.scalar(0), *const beta = with.scalar(1);
    const auto *const a = with.at(op.a), *const x = with.at(op.x);
    auto* const y = with.at(op.y);
    if constexpr (ComplexElement<T>) {
      if (op.symmetry == Symmetry::hermitian && op.storage == Storage::full)
        return C::hemv(handle, uplo, op.n, alpha, a, op.lda, x, op.incx, beta, y, op.incy);
      if (op.storage == Storage::banded)
        return C::hbmv(handle, uplo, op.n, op.k, alpha, a, op.lda, x, op.incx, beta, y, op.incy);
      if (op.storage == Storage::packed)
        return C::hpmv(handle, uplo, op.n, alpha, a, x, op.incx, beta, y, op.incy);
    } else {
      if (op.storage == Storage::banded)
        return C::sbmv(handle, uplo, op.n, op.k, alpha, a, op.lda, x, op.incx, beta, y, op.incy);
      if (op.storage == Storage::packed)
        return C::spmv(handle, uplo, op.n, alpha, a, x, op.incx, beta, y, op.incy);
    }
    return C::symv(handle, uplo, op.n, alpha, a, op.lda, x, op.incx, beta, y, op.incy);
  });
}

Result<void> run(const blas::Ger& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    const auto function = [&] {
      if constexpr (ComplexElement<T>) {
        return op.conjugate == blas::Conjugate::yes ? Cublas<T>::gerc : Cublas<T>::geru;
      } else {
        return Cublas<T>::ger;
      }
    }();
    return function(with.handle, op.m, op.n, with.scalar(0), with.at(op.x), op.incx, with.at(op.y),
                    op.incy, with.at(op.a), op.lda);
  });
}

Result<void> run(const blas::Syr& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    using C = Cublas<T>;
    const auto handle = with.handle;
    const auto uplo = flag(op.uplo);
    const auto* const x = with.at(op.x);
    auto* const a = with.at(op.a);
    const bool full = op.storage == Storage::full;
    if constexpr (ComplexElement<T>) {
      if (op.symmetry == Symmetry::hermitian) {
        const auto* const alpha = with.real_scalar(0);
        return full ? C::her(handle, uplo, op.n, alpha, x, op.incx, a, op.lda)
                    : C::hpr(handle, uplo, op.n, alpha, x, op.incx, a);
      }
    } else if (!full) {
      return C::spr(handle, uplo, op.n, with.scalar(0), x, op.incx, a);
    }
    return C::syr(handle, uplo, op.n, with.scalar(0), x, op.incx, a, op.lda);
  });
}

Result<void> run(const blas::Syr2& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    using C = Cublas<T>;
    const auto handle = with.handle;
    const auto uplo = flag(op.uplo);
    const auto* const alpha = with.scalar(0);
    const auto *const x = with.at(op.x), *const y = with.at(op.y);
    auto* const a = with.at(op.a);
    const bool full = op.storage == Storage::full;
    if constexpr (ComplexElement<T>) {
      if (op.symmetry == Symmetry::hermitian) {
        return full ? C::her2(handle, uplo, op.n, alpha, x, op.incx, y, op.incy, a, op.lda)
                    : C::hpr2(handle, uplo, op.n, alpha, x, op.incx, y, op.incy, a);
      }
    } else if (!full) {
      return C::spr2(handle, uplo, op.n, alpha, x, op.incx, y, op.incy, a);
    }
    return C::syr2(handle, uplo, op.n, alpha, x, op.incx, y, op.incy, a, op.lda);
  });
}

Result<void> run(const blas::Trmv& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(
      op, call, library.state(call.queue()).scalars, [&]<class T>(const Given<T>& with) {
        using C = Cublas<T>;
        const bool solve = op.task == blas::Trmv::Task::solve;
        const auto uplo = flag(op.uplo);
        const auto transpose = operation(op.transpose);
        const auto diagonal = flag(op.diagonal);
        const auto* const a = with.at(op.a);
        auto* const x = with.at(op.x);
        switch (op.storage) {
          case Storage::banded:
            return (solve ? C::tbsv : C::tbmv)(with.handle, uplo, transpose, diagonal, op.n, op.k,
                                               a, op.lda, x, op.incx);
          case Storage::packed:
            return (solve ? C::tpsv : C::tpmv)(with.handle, uplo, transpose, diagonal, op.n, a, x,
                                               op.incx);
          default:
            return (solve ? C::trsv : C::trmv)(with.handle, uplo, transpose, diagonal, op.n, a,
                                               op.lda, x, op.incx);
        }
      });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
