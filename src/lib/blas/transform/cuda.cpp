#include "lib/blas/common/layouts_cuda.hpp"

/// Changes of order on the cuda engine, by cuBLASLt.
namespace troupe::host::cuda {
namespace {

struct TransformTraits {
  using Type = cublasLtMatrixTransformDesc_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type handle) { (void)cublasLtMatrixTransformDescDestroy(handle); }
};
using Description = Handle<TransformTraits>;

Result<void> set(const Description& description, cublasLtMatrixTransformDescAttributes_t attribute,
                 std::int32_t value) {
  TROUPE_CUDA_TRY(
      cublasLtMatrixTransformDescSetAttribute(description.get(), attribute, &value, sizeof value));
  return {};
}

Result<void> describe(const Description& description, const blas::Transform& op,
                      ScalarsAt scalars) {
  const std::int32_t mode =
      scalars == ScalarsAt::host ? CUBLASLT_POINTER_MODE_HOST : CUBLASLT_POINTER_MODE_DEVICE;
  TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, mode));
  TROUPE_CUDA_PROPAGATE(
      set(description, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, operation(op.transpose_a)));
  return set(description, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, operation(op.transpose_b));
}

}  // namespace

Result<void> run(const blas::Transform& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  if (op.dtype == DType::f8e4m3 || op.dtype == DType::f8e5m2)
    return Error{Errc::unsupported, 0, "blas.transform: the cuda engine has no f8"};
  const bool conjugates = op.transpose_a == blas::Transpose::conjugate ||
                          (op.b.present() && op.transpose_b == blas::Transpose::conjugate);
  if (conjugates && (op.dtype == DType::c64 || op.dtype == DType::c128))
    return Error{Errc::unsupported, 0, "blas.transform: cuBLASLt does not conjugate; geam does"};
  const auto transform = [&]<class F>(F) -> Result<void> {
    ScalarValues<F> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(library.services, call, {&op.alpha, &op.beta}));
    Description description;
    TROUPE_CUDA_TRY(cublasLtMatrixTransformDescCreate(description.out(),
                                                      type_of(blas::transform_type(op.dtype))));
    TROUPE_CUDA_PROPAGATE(describe(description, op, scalars.where()));
    Matmuls::Layout a, b, c;
    const auto input = [&](blas::Transpose transpose, std::int64_t leading, blas::Order order,
                           std::int64_t stride) {
      const bool plain = transpose == blas::Transpose::no;
      return LayoutOf{op.dtype, plain ? op.m : op.n, plain ? op.n : op.m, leading, order, stride,
                      op.batch};
    };
    TROUPE_CUDA_PROPAGATE(make_layout(a, input(op.transpose_a, op.lda, op.order_a, op.stride_a)));
    TROUPE_CUDA_PROPAGATE(
        make_layout(c, {op.dtype, op.m, op.n, op.ldc, op.order_c, op.stride_c, op.batch}));
    const void* at_b = nullptr;
    if (op.b.present() && !op.beta.is_zero(blas::transform_type(op.dtype))) {
      TROUPE_CUDA_PROPAGATE(make_layout(b, input(op.transpose_b, op.ldb, op.order_b, op.stride_b)));
      at_b = call.at(op.b);
    }
    const auto handle =
        reinterpret_cast<cublasLtHandle_t>(library.state(call.queue()).handle.get());
    const auto status = cublasLtMatrixTransform(
        handle, description.get(), scalars[0], call.at(op.a), a.get(), scalars[1], at_b, b.get(),
        call.at(op.c), c.get(), library.services.stream(call.queue()));
    // All that can be wrong with them has been checked.
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
      return Error{Errc::unsupported, static_cast<int>(status),
                   "blas.transform: cuBLASLt does not transform such matrices of " +
                       std::string(to_string(op.dtype))};
    }
    if (status != CUBLAS_STATUS_SUCCESS) return failure(status, "cublasLtMatrixTransform");
    return {};
  };
  switch (blas::transform_type(op.dtype)) {
    case DType::f64: return transform(double{});
    case DType::c64: return transform(std::complex<float>{});
    case DType::c128: return transform(std::complex<double>{});
    default: return transform(float{});
  }
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
