#include "lib/blas/blas_cuda.hpp"

#include "lib/blas/blas_check_kernels.cuh"
#include "lib/blas/blas_kernels.cuh"

/// The handles, and level 1 on the cuda engine.
namespace troupe::host::cuda {
namespace {

/// The order of the matrices to warm up with: small enough to be quick, large enough that cuBLAS
/// picks the kernels it picks for large matrices.
constexpr std::int64_t kWarmUpOrder = 512;

}  // namespace

Result<void> Blas::open(Queue queue) {
  auto& opened = state(queue);
  if (!opened.handle) TROUPE_CUDA_TRY(cublasCreate(opened.handle.out()));
  if (!opened.workspace) {
    auto reserved = services.reserve(queue, kWorkspaceBytes);
    if (!reserved) return reserved.error();
    opened.workspace = std::move(*reserved);
  }
  const auto handle = opened.handle.get();
  // In this order: setting the stream takes the workspace away.
  TROUPE_CUDA_TRY(cublasSetStream(handle, services.stream(queue)));
  TROUPE_CUDA_TRY(cublasSetWorkspace(handle, opened.workspace.get(), kWorkspaceBytes));
  TROUPE_CUDA_TRY(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  opened.scalars = ScalarsAt::host;
  // Products of 16-bit numbers are not added up in 16 bits. Nothing else but a call's own compute
  // type makes arithmetic less precise.
  TROUPE_CUDA_TRY(cublasSetMathMode(
      handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                        CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  if (queue.detour) return {};
  if (looks.on()) TROUPE_CUDA_TRY(kernels::preload_checks());
  return warm_up(queue);
}

Result<void> Blas::warm_up(Queue queue) {
  constexpr std::uint64_t kBytes = sizeof(double) * kWarmUpOrder * kWarmUpOrder;
  WarmUp warming(services, queue);
  const auto stream = services.stream(queue);
  void* memory = nullptr;
  TROUPE_CUDA_TRY(cudaMallocAsync(&memory, kBytes, stream));
  TROUPE_CUDA_TRY(cudaMemsetAsync(memory, 0, kBytes, stream));
  const auto matrix = warming.add(2, memory, kBytes);
  for (const auto dtype : WarmUp::kReals)
    TROUPE_CUDA_PROPAGATE(warm_up(dtype, matrix, warming.call()));
  TROUPE_CUDA_TRY(cudaFreeAsync(memory, stream));
  return {};
}

Result<void> Blas::warm_up(DType dtype, const Operand& matrix, const Call& call) {
  const auto x = WarmUp::part(1), y = WarmUp::part(2), result = WarmUp::part(3);
  for (const auto& scalar : {Scalar{}, WarmUp::scalar_in_memory(dtype)}) {
    TROUPE_CUDA_PROPAGATE(carry_out(*this, blas::Axpy{dtype, 64, 1, 1, scalar, x, y}, call));
    TROUPE_CUDA_PROPAGATE(carry_out(*this, blas::Scal{dtype, 64, 1, scalar, x, {}, 0}, call));
  }
  TROUPE_CUDA_PROPAGATE(carry_out(*this, blas::Dot{dtype, 64, 1, 1, x, y, result, {}, 0}, call));
  TROUPE_CUDA_PROPAGATE(carry_out(*this, blas::Nrm2{dtype, 64, 1, x, result}, call));
  TROUPE_CUDA_PROPAGATE(carry_out(*this, blas::Copy{dtype, 64, 1, 1, x, y}, call));

  constexpr auto n = kWarmUpOrder;
  const auto no = blas::Transpose::no, yes = blas::Transpose::yes;
  for (const auto transpose : {no, yes}) {
    TROUPE_CUDA_PROPAGATE(carry_out(
        *this, blas::Gemv{dtype, transpose, 0, n, n, n, 1, 1, {}, {}, matrix, x, y}, call));
  }
  // One matrix of zeros stands for all three: the result is zeros whatever the order of reads and
  // writes.
  return carry_out(
      *this, blas::Gemm{dtype, no, no, n, n, n, n, n, n, {}, {}, matrix, matrix, matrix}, call);
}

Result<cublasHandle_t> Blas::handle_at(Queue queue, ScalarsAt where) {
  auto& open = state(queue);
  check(static_cast<bool>(open.handle), "the blas lane is not open");
  const auto handle = open.handle.get();
  if (open.scalars == where) return handle;
  TROUPE_CUDA_TRY(cublasSetPointerMode(
      handle, where == ScalarsAt::host ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE));
  open.scalars = where;
  return handle;
}

Result<void> Blas::write_zero(const Operand& result, DType dtype, const Call& call) {
  TROUPE_CUDA_TRY(
      cudaMemsetAsync(call.at(result), 0, size_of(dtype), services.stream(call.queue())));
  return {};
}

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

}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Blas, cuda)
