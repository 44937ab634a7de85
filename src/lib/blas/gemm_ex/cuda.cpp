#include "lib/blas/cuda.hpp"

/// Products of all types on the cuda engine.
namespace troupe::host::cuda {
namespace {

cublasComputeType_t type_of(blas::Compute compute) {
  switch (compute) {
    case blas::Compute::f16: return CUBLAS_COMPUTE_16F;
    case blas::Compute::f64: return CUBLAS_COMPUTE_64F;
    case blas::Compute::i32: return CUBLAS_COMPUTE_32I;
    case blas::Compute::tf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case blas::Compute::f32_by_f16: return CUBLAS_COMPUTE_32F_FAST_16F;
    case blas::Compute::f32_by_bf16: return CUBLAS_COMPUTE_32F_FAST_16BF;
#if CUBLAS_VERSION >= 130000
    case blas::Compute::f32_by_bf16x9: return CUBLAS_COMPUTE_32F_EMULATED_16BFX9;
#endif
#if CUBLAS_VERSION >= 130100
    case blas::Compute::f64_by_fixed_point: return CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT;
#endif
    default: return CUBLAS_COMPUTE_32F;
  }
}
/// Emulation is there from cuBLAS 13 on.
bool is_missing(blas::Compute compute) {
#if CUBLAS_VERSION >= 130100
  return (void)compute, false;
#elif CUBLAS_VERSION >= 130000
  return compute == blas::Compute::f64_by_fixed_point;
#else
  return compute >= blas::Compute::f32_by_bf16x9;
#endif
}

}  // namespace

Result<void> run(const blas::GemmEx& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0) return {};
  if (is_missing(op.compute))
    return Error{Errc::unsupported, 0, "blas.gemm_ex: this cuBLAS does not emulate"};
  const auto multiply = [&]<class F>(F) {
    return library.issue_as<F>(op, call, {&op.alpha, &op.beta}, [&](const Given<F>& with) {
      const auto type = cuda::type_of(op.dtype);
      return cublasGemmEx_64(with.handle, operation(op.transpose_a), operation(op.transpose_b),
                             op.m, op.n, op.k, with.scalar(0), call.at(op.a), type, leading(op.lda),
                             call.at(op.b), type, leading(op.ldb), with.scalar(1), call.at(op.c),
                             cuda::type_of(op.c_dtype), leading(op.ldc), type_of(op.compute),
                             CUBLAS_GEMM_DEFAULT);
    });
  };
  switch (blas::scale_type(op.dtype, op.compute)) {
    case DType::f16: return multiply(Half{});
    case DType::i32: return multiply(std::int32_t{});
    case DType::f64: return multiply(double{});
    case DType::c64: return multiply(std::complex<float>{});
    case DType::c128: return multiply(std::complex<double>{});
    default: return multiply(float{});
  }
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
