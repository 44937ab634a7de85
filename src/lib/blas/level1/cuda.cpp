#include "lib/blas/cuda.hpp"
#include "lib/blas/level1/kernels.cuh"

/// Level 1 on the cuda engine.
namespace troupe::host::cuda {

Result<void> run(const blas::Axpy& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, {&op.alpha}, [&](const Given<float>& with) {
      return cublasAxpyEx_64(with.handle, op.n, with.scalar(0), CUDA_R_32F, with.at(op.x),
                             type_of(op.dtype), op.incx, with.at(op.y), type_of(op.dtype), op.incy,
                             CUDA_R_32F);
    });
  }
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::axpy(with.handle, op.n, with.scalar(0), with.at(op.x), op.incx, with.at(op.y),
                           op.incy);
  });
}

Result<void> run(const blas::Dot& op, const Call& call, Blas& library) {
  if (op.n == 0) return library.write_zero(op.result, op.dtype, call);
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, ScalarsAt::device, [&](const Given<float>& with) {
      const auto type = type_of(op.dtype);
      return cublasDotEx_64(with.handle, op.n, with.at(op.x), type, op.incx, with.at(op.y), type,
                            op.incy, with.at(op.result), type, CUDA_R_32F);
    });
  }
  return library.issue(op, call, ScalarsAt::device, [&]<class T>(const Given<T>& with) {
    const auto function = [&] {
      if constexpr (ComplexElement<T>) {
        return op.conjugate == blas::Conjugate::yes ? Cublas<T>::dotc : Cublas<T>::dotu;
      } else {
        return Cublas<T>::dot;
      }
    }();
    return function(with.handle, op.n, with.at(op.x), op.incx, with.at(op.y), op.incy,
                    with.at(op.result));
  });
}

Result<void> run(const blas::Nrm2& op, const Call& call, Blas& library) {
  if (op.n == 0) return library.write_zero(op.result, real_type(op.dtype), call);
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, ScalarsAt::device, [&](const Given<float>& with) {
      const auto type = type_of(op.dtype);
      return cublasNrm2Ex_64(with.handle, op.n, with.at(op.x), type, op.incx, with.at(op.result),
                             type, CUDA_R_32F);
    });
  }
  return library.issue(op, call, ScalarsAt::device, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::nrm2(with.handle, op.n, with.at(op.x), op.incx,
                           call.at<RealOf<T>>(op.result));
  });
}

Result<void> run(const blas::Asum& op, const Call& call, Blas& library) {
  if (op.n == 0) return library.write_zero(op.result, real_type(op.dtype), call);
  return library.issue(op, call, ScalarsAt::device, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::asum(with.handle, op.n, with.at(op.x), op.incx,
                           call.at<RealOf<T>>(op.result));
  });
}

Result<void> run(const blas::Iamax& op, const Call& call, Blas& library) {
  auto* const result = call.at<std::int64_t>(op.result);
  if (op.n == 0) {  // all bits set are -1
    TROUPE_CUDA_TRY(
        cudaMemsetAsync(result, 0xff, sizeof *result, library.services.stream(call.queue())));
    return {};
  }
  TROUPE_CUDA_PROPAGATE(
      library.issue(op, call, ScalarsAt::device, [&]<class T>(const Given<T>& with) {
        const bool largest = op.which == blas::Iamax::Which::largest;
        return (largest ? Cublas<T>::iamax : Cublas<T>::iamin)(with.handle, op.n, with.at(op.x),
                                                               op.incx, result);
      }));
  TROUPE_CUDA_TRY(kernels::decrement(library.services.launch(call.queue()), result));
  return {};
}

Result<void> run(const blas::Scal& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, {&op.alpha}, [&](const Given<float>& with) {
      return cublasScalEx_64(with.handle, op.n, with.scalar(0), CUDA_R_32F, with.at(op.x),
                             type_of(op.dtype), op.incx, CUDA_R_32F);
    });
  }
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    if constexpr (ComplexElement<T>) {
      if (op.kind == blas::ScalarKind::real) {
        return Cublas<T>::scal_real(with.handle, op.n, with.real_scalar(0), with.at(op.x), op.incx);
      }
    }
    return Cublas<T>::scal(with.handle, op.n, with.scalar(0), with.at(op.x), op.incx);
  });
}

Result<void> run(const blas::Copy& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  // It has no scalars: wherever they are is right.
  return library.issue(
      op, call, library.state(call.queue()).scalars, [&]<class T>(const Given<T>& with) {
        return Cublas<T>::copy(with.handle, op.n, with.at(op.x), op.incx, with.at(op.y), op.incy);
      });
}

Result<void> run(const blas::Swap& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(
      op, call, library.state(call.queue()).scalars, [&]<class T>(const Given<T>& with) {
        return Cublas<T>::swap(with.handle, op.n, with.at(op.x), op.incx, with.at(op.y), op.incy);
      });
}

Result<void> run(const blas::Rot& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return library.issue(op, call, {&op.c, &op.s}, [&]<class T>(const Given<T>& with) {
    if constexpr (ComplexElement<T>) {
      if (op.sine == blas::ScalarKind::real) {
        return Cublas<T>::rot_real(with.handle, op.n, with.at(op.x), op.incx, with.at(op.y),
                                   op.incy, with.real_scalar(0), with.real_scalar(1));
      }
    }
    return Cublas<T>::rot(with.handle, op.n, with.at(op.x), op.incx, with.at(op.y), op.incy,
                          with.real_scalar(0), with.scalar(1));
  });
}

Result<void> run(const blas::Rotg& op, const Call& call, Blas& library) {
  return library.issue(op, call, ScalarsAt::device, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::rotg(with.handle, with.at(op.a), with.at(op.b), call.at<RealOf<T>>(op.c),
                           with.at(op.s));
  });
}

Result<void> run(const blas::Rotm& op, const Call& call, Blas& library) {
  if (op.n == 0) return {};
  return with_real(op.dtype, [&]<class T>(T) {
    return library.issue_as<T>(op, call, ScalarsAt::device, [&](const Given<T>& with) {
      return Cublas<T>::rotm(with.handle, op.n, with.at(op.x), op.incx, with.at(op.y), op.incy,
                             with.at(op.param));
    });
  });
}

Result<void> run(const blas::Rotmg& op, const Call& call, Blas& library) {
  return with_real(op.dtype, [&]<class T>(T) {
    return library.issue_as<T>(op, call, ScalarsAt::device, [&](const Given<T>& with) {
      return Cublas<T>::rotmg(with.handle, with.at(op.d1), with.at(op.d2), with.at(op.x1),
                              with.at(op.y1), with.at(op.param));
    });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
