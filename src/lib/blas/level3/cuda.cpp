#include <climits>

#include "lib/blas/cuda.hpp"

/// Level 3 on the cuda engine.
namespace troupe::host::cuda {
namespace {

using blas::Symmetry;

/// The functions for packed matrices count in 32 bits.
template <class Op>
Result<void> require_int(const Op& op) {
  if (op.n <= INT_MAX && op.lda <= INT_MAX) return {};
  return Error{Errc::unsupported, 0,
               std::string(Op::kName) + ": n and the leading dimension are below 2^31"};
}

/// For real numbers, which are their own conjugates, syrk has two forms only.
template <class T>
cublasOperation_t form_of(blas::Transpose transpose) {
  return operation(RealElement<T> && transpose == blas::Transpose::conjugate ? blas::Transpose::yes
                                                                             : transpose);
}

}  // namespace

Result<void> run(const blas::Gemm& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, {&op.alpha, &op.beta}, [&](const Given<float>& with) {
      const auto type = type_of(op.dtype);
      return cublasGemmEx_64(with.handle, operation(op.transpose_a), operation(op.transpose_b),
                             op.m, op.n, op.k, with.scalar(0), with.at(op.a), type, leading(op.lda),
                             with.at(op.b), type, leading(op.ldb), with.scalar(1), with.at(op.c),
                             type, leading(op.ldc), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    });
  }
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::gemm(with.handle, operation(op.transpose_a), operation(op.transpose_b), op.m,
                           op.n, op.k, with.scalar(0), with.at(op.a), leading(op.lda),
                           with.at(op.b), leading(op.ldb), with.scalar(1), with.at(op.c),
                           leading(op.ldc));
  });
}

Result<void> run(const blas::Symm& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    auto function = Cublas<T>::symm;
    if constexpr (ComplexElement<T>) {
      if (op.symmetry == Symmetry::hermitian) function = Cublas<T>::hemm;
    }
    return function(with.handle, flag(op.side), flag(op.uplo), op.m, op.n, with.scalar(0),
                    with.at(op.a), op.lda, with.at(op.b), op.ldb, with.scalar(1), with.at(op.c),
                    op.ldc);
  });
}

Result<void> run(const blas::Syrk& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    if constexpr (ComplexElement<T>) {
      if (op.symmetry == Symmetry::hermitian) {
        return Cublas<T>::herk(with.handle, flag(op.uplo), form_of<T>(op.transpose), op.n, op.k,
                               with.real_scalar(0), with.at(op.a), op.lda, with.real_scalar(1),
                               with.at(op.c), op.ldc);
      }
    }
    return Cublas<T>::syrk(with.handle, flag(op.uplo), form_of<T>(op.transpose), op.n, op.k,
                           with.scalar(0), with.at(op.a), op.lda, with.scalar(1), with.at(op.c),
                           op.ldc);
  });
}

Result<void> run(const blas::Syr2k& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    const bool both = op.products == blas::Syr2k::Products::both;
    const auto add = [&](auto function, const auto* beta) {
      return function(with.handle, flag(op.uplo), form_of<T>(op.transpose), op.n, op.k,
                      with.scalar(0), with.at(op.a), op.lda, with.at(op.b), op.ldb, beta,
                      with.at(op.c), op.ldc);
    };
    if constexpr (ComplexElement<T>) {
      if (op.symmetry == Symmetry::hermitian)
        return add(both ? Cublas<T>::her2k : Cublas<T>::herkx, with.real_scalar(1));
    }
    return add(both ? Cublas<T>::syr2k : Cublas<T>::syrkx, with.scalar(1));
  });
}

Result<void> run(const blas::Trmm& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::trmm(with.handle, flag(op.side), flag(op.uplo), operation(op.transpose),
                           flag(op.diagonal), op.m, op.n, with.scalar(0), with.at(op.a), op.lda,
                           with.at(op.b), op.ldb, with.at(op.c), op.ldc);
  });
}

Result<void> run(const blas::Trsm& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::trsm(with.handle, flag(op.side), flag(op.uplo), operation(op.transpose),
                           flag(op.diagonal), op.m, op.n, with.scalar(0), with.at(op.a), op.lda,
                           with.at(op.b), op.ldb);
  });
}

Result<void> run(const blas::Geam& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::geam(with.handle, operation(op.transpose_a), operation(op.transpose_b), op.m,
                           op.n, with.scalar(0), with.at(op.a), op.lda, with.scalar(1),
                           with.at(op.b), op.ldb, with.at(op.c), op.ldc);
  });
}

Result<void> run(const blas::Dgmm& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  return library.issue(
      op, call, library.state(call.queue()).scalars, [&]<class T>(const Given<T>& with) {
        return Cublas<T>::dgmm(with.handle, flag(op.side), op.m, op.n, with.at(op.a), op.lda,
                               with.at(op.x), op.incx, with.at(op.c), op.ldc);
      });
}

Result<void> run(const blas::Tpttr& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  if (auto fits = require_int(op); !fits) return fits;
  return library.issue(
      op, call, library.state(call.queue()).scalars, [&]<class T>(const Given<T>& with) {
        return Cublas<T>::tpttr(with.handle, flag(op.uplo), static_cast<int>(op.n),
                                with.at(op.packed), with.at(op.a), static_cast<int>(op.lda));
      });
}

Result<void> run(const blas::Trttp& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  if (auto fits = require_int(op); !fits) return fits;
  return library.issue(
      op, call, library.state(call.queue()).scalars, [&]<class T>(const Given<T>& with) {
        return Cublas<T>::trttp(with.handle, flag(op.uplo), static_cast<int>(op.n), with.at(op.a),
                                static_cast<int>(op.lda), with.at(op.packed));
      });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
