#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstdlib>
#include <initializer_list>

#include <troupe/lib/blas.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/blas/common/status_cuda.hpp"
#include "lib/blas/looks/dense_product.hpp"
#include "lib/blas/matmul/matmuls_cuda.hpp"

namespace troupe::host::cuda {

/// The 64-bit functions of cuBLAS by type.
template <class T>
struct Cublas;

#define TROUPE_CUBLAS_OF_ALL(S)                                          \
  static constexpr auto axpy = cublas##S##axpy_64;                       \
  static constexpr auto copy = cublas##S##copy_64;                       \
  static constexpr auto swap = cublas##S##swap_64;                       \
  static constexpr auto scal = cublas##S##scal_64;                       \
  static constexpr auto rot = cublas##S##rot_64;                         \
  static constexpr auto rotg = cublas##S##rotg;                          \
  static constexpr auto gemv = cublas##S##gemv_64;                       \
  static constexpr auto gbmv = cublas##S##gbmv_64;                       \
  static constexpr auto symv = cublas##S##symv_64;                       \
  static constexpr auto syr = cublas##S##syr_64;                         \
  static constexpr auto syr2 = cublas##S##syr2_64;                       \
  static constexpr auto trmv = cublas##S##trmv_64;                       \
  static constexpr auto tbmv = cublas##S##tbmv_64;                       \
  static constexpr auto tpmv = cublas##S##tpmv_64;                       \
  static constexpr auto trsv = cublas##S##trsv_64;                       \
  static constexpr auto tbsv = cublas##S##tbsv_64;                       \
  static constexpr auto tpsv = cublas##S##tpsv_64;                       \
  static constexpr auto gemm = cublas##S##gemm_64;                       \
  static constexpr auto symm = cublas##S##symm_64;                       \
  static constexpr auto syrk = cublas##S##syrk_64;                       \
  static constexpr auto syr2k = cublas##S##syr2k_64;                     \
  static constexpr auto syrkx = cublas##S##syrkx_64;                     \
  static constexpr auto trmm = cublas##S##trmm_64;                       \
  static constexpr auto trsm = cublas##S##trsm_64;                       \
  static constexpr auto geam = cublas##S##geam_64;                       \
  static constexpr auto dgmm = cublas##S##dgmm_64;                       \
  static constexpr auto tpttr = cublas##S##tpttr;                        \
  static constexpr auto trttp = cublas##S##trttp;                        \
  static constexpr auto gemm_strided = cublas##S##gemmStridedBatched_64; \
  static constexpr auto gemm_batched = cublas##S##gemmBatched_64;        \
  static constexpr auto gemv_strided = cublas##S##gemvStridedBatched_64; \
  static constexpr auto gemv_batched = cublas##S##gemvBatched_64;        \
  static constexpr auto trsm_batched = cublas##S##trsmBatched_64;
#define TROUPE_CUBLAS_OF_REALS(T, S)                 \
  template <>                                        \
  struct Cublas<T> {                                 \
    TROUPE_CUBLAS_OF_ALL(S)                          \
    static constexpr auto dot = cublas##S##dot_64;   \
    static constexpr auto nrm2 = cublas##S##nrm2_64; \
    static constexpr auto asum = cublas##S##asum_64; \
    static constexpr auto rotm = cublas##S##rotm_64; \
    static constexpr auto rotmg = cublas##S##rotmg;  \
    static constexpr auto sbmv = cublas##S##sbmv_64; \
    static constexpr auto spmv = cublas##S##spmv_64; \
    static constexpr auto ger = cublas##S##ger_64;   \
    static constexpr auto spr = cublas##S##spr_64;   \
    static constexpr auto spr2 = cublas##S##spr2_64;
#define TROUPE_CUBLAS_OF_COMPLEX(T, S, sd, Sd)                \
  template <>                                                 \
  struct Cublas<T> {                                          \
    TROUPE_CUBLAS_OF_ALL(S)                                   \
    static constexpr auto dotu = cublas##S##dotu_64;          \
    static constexpr auto dotc = cublas##S##dotc_64;          \
    static constexpr auto nrm2 = cublas##Sd##nrm2_64;         \
    static constexpr auto asum = cublas##Sd##asum_64;         \
    static constexpr auto scal_real = cublas##S##sd##scal_64; \
    static constexpr auto rot_real = cublas##S##sd##rot_64;   \
    static constexpr auto hemv = cublas##S##hemv_64;          \
    static constexpr auto hbmv = cublas##S##hbmv_64;          \
    static constexpr auto hpmv = cublas##S##hpmv_64;          \
    static constexpr auto geru = cublas##S##geru_64;          \
    static constexpr auto gerc = cublas##S##gerc_64;          \
    static constexpr auto her = cublas##S##her_64;            \
    static constexpr auto hpr = cublas##S##hpr_64;            \
    static constexpr auto her2 = cublas##S##her2_64;          \
    static constexpr auto hpr2 = cublas##S##hpr2_64;          \
    static constexpr auto hemm = cublas##S##hemm_64;          \
    static constexpr auto herk = cublas##S##herk_64;          \
    static constexpr auto her2k = cublas##S##her2k_64;        \
    static constexpr auto herkx = cublas##S##herkx_64;
TROUPE_CUBLAS_OF_REALS(float, S)
static constexpr auto iamax = cublasIsamax_64;
static constexpr auto iamin = cublasIsamin_64;
};
TROUPE_CUBLAS_OF_REALS(double, D)
static constexpr auto iamax = cublasIdamax_64;
static constexpr auto iamin = cublasIdamin_64;
}
;
TROUPE_CUBLAS_OF_COMPLEX(std::complex<float>, C, s, Sc)
static constexpr auto iamax = cublasIcamax_64;
static constexpr auto iamin = cublasIcamin_64;
}
;
TROUPE_CUBLAS_OF_COMPLEX(std::complex<double>, Z, d, Dz)
static constexpr auto iamax = cublasIzamax_64;
static constexpr auto iamin = cublasIzamin_64;
}
;
#undef TROUPE_CUBLAS_OF_ALL
#undef TROUPE_CUBLAS_OF_REALS
#undef TROUPE_CUBLAS_OF_COMPLEX

inline cublasOperation_t operation(blas::Transpose transpose) {
  constexpr cublasOperation_t kOperations[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  return kOperations[static_cast<std::size_t>(transpose)];
}
inline cublasFillMode_t flag(blas::Uplo uplo) {
  return uplo == blas::Uplo::lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
inline cublasSideMode_t flag(blas::Side side) {
  return side == blas::Side::left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}
inline cublasDiagType_t flag(blas::Diagonal diagonal) {
  return diagonal == blas::Diagonal::unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}
inline cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f32: return CUDA_R_32F;
    case DType::f64: return CUDA_R_64F;
    case DType::c64: return CUDA_C_32F;
    case DType::c128: return CUDA_C_64F;
    case DType::i8: return CUDA_R_8I;
    default: return CUDA_R_32I;  // check() lets no other one pass
  }
}
inline bool is_narrow(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// cuBLAS wants leading dimensions of at least 1 also where a matrix is empty.
inline std::int64_t leading(std::int64_t dimension) {
  return std::max<std::int64_t>(1, dimension);
}

/// What a function of cuBLAS is given beside the extents: the handle, scalars, addresses.
template <class T>
struct Given {
  cublasHandle_t handle;
  ScalarValues<T> scalars;
  const Call* call;

  [[nodiscard]] const Native<T>* scalar(std::size_t i) const {
    return reinterpret_cast<const Native<T>*>(scalars[i]);
  }
  /// One that is real although T is complex: it stands where the real part would.
  [[nodiscard]] const RealOf<T>* real_scalar(std::size_t i) const {
    return reinterpret_cast<const RealOf<T>*>(scalars[i]);
  }
  [[nodiscard]] Native<T>* at(const Operand& operand) const { return call->at<Native<T>>(operand); }
};

/// What cuBLAS recommends for Hopper; with a workspace of its own the handle never allocates, and
/// results do not depend on what else runs.
inline constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

class Blas;
/// True if a product is to be looked at.
bool is_looked_at(const OperationInfo& info, const std::byte* op, const Call& call, Blas& library);
/// Carries a product out, and looks at it if it is to be.
Result<void> run_or_look(const blas::Gemm& op, const Call& call, Blas& library);
Result<void> run_or_look(const blas::GemmEx& op, const Call& call, Blas& library);
Result<void> run_or_look(const blas::GemmBatched& op, const Call& call, Blas& library);
Result<void> run_or_look(const blas::Matmul& op, const Call& call, Blas& library);
/// Takes over what a measurement in another process has found.
void adopt_choice(std::span<const std::byte> bytes, Blas& library);

class Blas final : public LibraryHalfOf<Blas, blas::Operations> {
 public:
  explicit Blas(Services& its_services)
      : services(its_services), looks(its_services.product_checks()) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuBLAS", &cublasGetProperty)};
  }
  Result<void> open(Queue queue) override;
  std::vector<std::vector<std::byte>> take_new_plans() override {
    return std::exchange(new_choices, {});
  }
  void adopt_plan(std::span<const std::byte> bytes) override { adopt_choice(bytes, *this); }

  /// A product that is looked at does.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override {
    return info.traits.blocking || is_looked_at(info, op, call, *this);
  }

  // For its operations.

  template <ProductThatIsLookedAt Op>
  Result<void> run(const Op& op, const Call& call) {
    return run_or_look(op, call, *this);
  }

  struct BlasTraits {
    using Type = cublasHandle_t;
    static constexpr Type invalid() { return nullptr; }
    static void destroy(Type handle) { (void)cublasDestroy(handle); }
  };
  struct State {
    DeviceMemory workspace;
    Workspace addresses;  ///< of a batch's matrices
    Handle<BlasTraits> handle;
    ScalarsAt scalars = ScalarsAt::host;
  };
  [[nodiscard]] State& state(Queue queue) { return states[queue.detour ? 1 : 0]; }
  /// The handle of an open queue, told where the scalars and results of the next call are.
  Result<cublasHandle_t> handle_at(Queue queue, ScalarsAt where);
  /// What a call without scalars is given.
  template <class T>
  Result<Given<T>> given(const Call& call, ScalarsAt where) {
    const auto handle = handle_at(call.queue(), where);
    if (!handle) return handle.error();
    return Given<T>{*handle, {}, &call};
  }
  template <class T>
  Result<Given<T>> given(const Call& call, std::initializer_list<const Scalar*> scalars) {
    ScalarValues<T> resolved;
    TROUPE_CUDA_PROPAGATE(resolved.resolve(services, call, scalars));
    const auto handle = handle_at(call.queue(), resolved.where());
    if (!handle) return handle.error();
    return Given<T>{*handle, resolved, &call};
  }
  template <class Op, class T, class F>
  Result<void> issue_with(const Result<Given<T>>& with, F&& function) {
    if (!with) return with.error();
    if (const cublasStatus_t status = function(*with); status != CUBLAS_STATUS_SUCCESS)
      return failure(status, Op::kName);
    return {};
  }
  /// Issues one function of cuBLAS on numbers of T.
  template <class T, class Op, class F>
  Result<void> issue_as(const Op&, const Call& call, std::initializer_list<const Scalar*> scalars,
                        F&& function) {
    return issue_with<Op>(given<T>(call, scalars), function);
  }
  template <class T, class Op, class F>
  Result<void> issue_as(const Op&, const Call& call, ScalarsAt where, F&& function) {
    return issue_with<Op>(given<T>(call, where), function);
  }
  /// The same on numbers of the operation's dtype. `function` takes a Given<T> and returns a
  /// status; it is called before issue() returns.
  template <class Op, class F>
  Result<void> issue(const Op& op, const Call& call, std::initializer_list<const Scalar*> scalars,
                     F&& function) {
    return with_number(op.dtype,
                       [&]<class T>(T) { return issue_as<T>(op, call, scalars, function); });
  }
  template <class Op, class F>
  Result<void> issue(const Op& op, const Call& call, ScalarsAt where, F&& function) {
    return with_number(op.dtype,
                       [&]<class T>(T) { return issue_as<T>(op, call, where, function); });
  }
  /// The info of matrices without elements.
  Result<void> write_zeros(int* info, std::int64_t count, const Call& call) {
    TROUPE_CUDA_TRY(cudaMemsetAsync(info, 0, sizeof(int) * static_cast<std::size_t>(count),
                                    services.stream(call.queue())));
    return {};
  }
  /// y = beta y of one of cuBLAS's products of a matrix and a vector, which leave y as it is where
  /// the matrix is empty. A product of matrices without an inner extent does not.
  template <class Op>
  Result<void> scale(const Op& op, const Call& call) {
    const auto length = op.transpose == blas::Transpose::no ? op.m : op.n;
    if (length == 0) return {};
    return issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
      auto* const y = with.at(op.y);
      return Cublas<T>::gemm(with.handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, length, 0, with.scalar(0), y,
                             1, y, 1, with.scalar(1), y, std::abs(op.incy));
    });
  }
  /// A reduction of no elements.
  Result<void> write_zero(const Operand& result, DType dtype, const Call& call);
  Result<void> warm_up(Queue queue);
  Result<void> warm_up(DType dtype, const Operand& matrix, const Call& call);

  Services& services;
  ProductLooks looks;
  std::array<State, 2> states;  ///< of the lane's own queue, of its detour
  Matmuls matmuls;
  std::vector<std::vector<std::byte>> new_choices;  ///< of measurements
};
/// One call of cuBLAS for each product.
Result<void> multiply_each(const blas::GemmGrouped& op, const Call& call, Blas& library);
/// The addresses of the tail's operands, in device memory.
Result<void**> addresses_of_tail(const Call& call, Blas& library);
/// Multiplies the matrices at addresses in device memory: all A, all B, all C.
template <class Op>
Result<void> multiply(const Op& op, const Call& call, void* addresses, Blas& library);
/// The same of a batch; `list`: the addresses of its matrices and vectors, or nullptr.
Result<void> scale_each(const blas::GemvBatched& op, const Call& call, void** list, Blas& library);

}  // namespace troupe::host::cuda
