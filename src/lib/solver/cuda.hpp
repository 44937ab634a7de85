#pragma once

#include <algorithm>
#include <array>
#include <climits>
#include <complex>
#include <deque>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/lib/solver.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/solver/common/finite_kernels.cuh"
#include "lib/solver/common/status_cuda.hpp"

/// cuSOLVER has functions of two kinds: those of 64 bits, which take any type ("X"), and older
/// ones, which have 32 bits for extents and a name for each type.
namespace troupe::host::cuda {

/// The functions of 32 bits by type. `h`: sy of real numbers, he of complex ones; `q`: or and un.
template <class T>
struct Cusolver;
#define TROUPE_CUSOLVER(T, S, h, q)                                                      \
  template <>                                                                            \
  struct Cusolver<T> {                                                                   \
    static constexpr auto potri_size = cusolverDn##S##potri_bufferSize;                  \
    static constexpr auto potri = cusolverDn##S##potri;                                  \
    static constexpr auto sytrf_size = cusolverDn##S##sytrf_bufferSize;                  \
    static constexpr auto sytrf = cusolverDn##S##sytrf;                                  \
    static constexpr auto mqr_size = cusolverDn##S##q##mqr_bufferSize;                   \
    static constexpr auto mqr = cusolverDn##S##q##mqr;                                   \
    static constexpr auto gqr_size = cusolverDn##S##q##gqr_bufferSize;                   \
    static constexpr auto gqr = cusolverDn##S##q##gqr;                                   \
    static constexpr auto sytri_size = cusolverDn##S##sytri_bufferSize;                  \
    static constexpr auto sytri = cusolverDn##S##sytri;                                  \
    static constexpr auto gvj_size = cusolverDn##S##h##gvj_bufferSize;                   \
    static constexpr auto gvj = cusolverDn##S##h##gvj;                                   \
    static constexpr auto gvdx_size = cusolverDn##S##h##gvdx_bufferSize;                 \
    static constexpr auto gvdx = cusolverDn##S##h##gvdx;                                 \
    static constexpr auto trd_size = cusolverDn##S##h##trd_bufferSize;                   \
    static constexpr auto trd = cusolverDn##S##h##trd;                                   \
    static constexpr auto gtr_size = cusolverDn##S##q##gtr_bufferSize;                   \
    static constexpr auto gtr = cusolverDn##S##q##gtr;                                   \
    static constexpr auto mtr_size = cusolverDn##S##q##mtr_bufferSize;                   \
    static constexpr auto mtr = cusolverDn##S##q##mtr;                                   \
    static constexpr auto gebrd_size = cusolverDn##S##gebrd_bufferSize;                  \
    static constexpr auto gebrd = cusolverDn##S##gebrd;                                  \
    static constexpr auto gbr_size = cusolverDn##S##q##gbr_bufferSize;                   \
    static constexpr auto gbr = cusolverDn##S##q##gbr;                                   \
    static constexpr auto lauum_size = cusolverDn##S##lauum_bufferSize;                  \
    static constexpr auto lauum = cusolverDn##S##lauum;                                  \
    static constexpr auto laswp = cusolverDn##S##laswp;                                  \
    static constexpr auto evj_size = cusolverDn##S##h##evj_bufferSize;                   \
    static constexpr auto evj = cusolverDn##S##h##evj;                                   \
    static constexpr auto gvd_size = cusolverDn##S##h##gvd_bufferSize;                   \
    static constexpr auto gvd = cusolverDn##S##h##gvd;                                   \
    static constexpr auto gesvdj_size = cusolverDn##S##gesvdj_bufferSize;                \
    static constexpr auto gesvdj = cusolverDn##S##gesvdj;                                \
    static constexpr auto evj_batched_size = cusolverDn##S##h##evjBatched_bufferSize;    \
    static constexpr auto evj_batched = cusolverDn##S##h##evjBatched;                    \
    static constexpr auto gesvdj_batched_size = cusolverDn##S##gesvdjBatched_bufferSize; \
    static constexpr auto gesvdj_batched = cusolverDn##S##gesvdjBatched;                 \
    static constexpr auto gesvda_size = cusolverDn##S##gesvdaStridedBatched_bufferSize;  \
    static constexpr auto gesvda = cusolverDn##S##gesvdaStridedBatched;                  \
    static constexpr auto potrf_batched = cusolverDn##S##potrfBatched;                   \
    static constexpr auto potrs_batched = cusolverDn##S##potrsBatched;                   \
  };
TROUPE_CUSOLVER(float, S, sy, or)
TROUPE_CUSOLVER(double, D, sy, or)
TROUPE_CUSOLVER(std::complex<float>, C, he, un)
TROUPE_CUSOLVER(std::complex<double>, Z, he, un)
#undef TROUPE_CUSOLVER

inline cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::f64: return CUDA_R_64F;
    case DType::c64: return CUDA_C_32F;
    default: return CUDA_C_64F;  // check() lets no other one pass
  }
}
inline cublasFillMode_t flag(solver::Uplo uplo) {
  return uplo == solver::Uplo::lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
inline cublasSideMode_t flag(solver::Side side) {
  return side == solver::Side::left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}
inline cublasDiagType_t flag(solver::Diagonal diagonal) {
  return diagonal == solver::Diagonal::unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}
inline cublasOperation_t flag(solver::Transpose transpose) {
  constexpr cublasOperation_t kOperations[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  return kOperations[static_cast<std::size_t>(transpose)];
}
/// The flag of a transpose of Q: there is no C for real numbers.
template <class T>
cublasOperation_t flag_of_q(solver::Transpose transpose) {
  return transpose == solver::Transpose::conjugate && !ComplexElement<T> ? CUBLAS_OP_T
                                                                         : flag(transpose);
}
inline cusolverEigMode_t flag(solver::Vectors vectors) {
  return vectors == solver::Vectors::yes ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}
inline int to_int(std::int64_t value) {
  return static_cast<int>(value);
}
inline std::size_t bytes_of(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(elements) * size_of(dtype);
}

/// Calls f(T{}) for the dtype where the functions have 32 bits for these extents.
template <class F>
Result<void> with_number(DType dtype, std::initializer_list<std::int64_t> extents, F&& f) {
  if (std::max(extents) > INT_MAX)
    return Error{Errc::unsupported, 0, "this function of cuSOLVER takes extents below 2^31"};
  return with_number(dtype, f);
}

/// What a function of cuSOLVER needs beside its operands. Its device memory is info, then what
/// troupe itself needs, then the rest.
struct Needed {
  static constexpr std::size_t kAligned = 256;
  std::size_t device_bytes = 0, host_bytes = 0;
  std::size_t extra_bytes = 0;
};
inline std::size_t aligned(std::size_t bytes) {
  return (bytes + Needed::kAligned - 1) / Needed::kAligned * Needed::kAligned;
}

/// A matrix that an operation that iterates looks at before it begins.
struct LookedAt {
  const Operand* a = nullptr;
  std::int64_t rows = 0, columns = 0, leading = 0;
  kernels::Counting counting = kernels::Counting::all;
};
inline kernels::Counting counting_of(solver::Uplo uplo) {
  return uplo == solver::Uplo::lower ? kernels::Counting::lower : kernels::Counting::upper;
}
/// The Hermitian matrix a of an operation.
template <class Op>
LookedAt half_of(const Op& op) {
  return {&op.a, op.n, op.n, op.lda, counting_of(op.uplo)};
}
/// A matrix of numbers that an operation tells of: columns of them, in real parts.
struct Told {
  const Operand* values = nullptr;
  std::int64_t count = 0, columns = 1, leading = 0;
};

class Solver final : public LibraryHalfOf<Solver, solver::Operations> {
 public:
  explicit Solver(Services& its_services) : services(its_services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuSOLVER", &cusolverGetProperty)};
  }
  Result<void> open(Queue queue) override;

  // For its operations.
  struct SolverTraits {
    using Type = cusolverDnHandle_t;
    static constexpr Type invalid() { return nullptr; }
    static void destroy(Type handle) { (void)cusolverDnDestroy(handle); }
  };
  struct ParamsTraits {
    using Type = cusolverDnParams_t;
    static constexpr Type invalid() { return nullptr; }
    static void destroy(Type params) { (void)cusolverDnDestroyParams(params); }
  };
  struct SyevjTraits {
    using Type = syevjInfo_t;
    static constexpr Type invalid() { return nullptr; }
    static void destroy(Type info) { (void)cusolverDnDestroySyevjInfo(info); }
  };
  struct GesvdjTraits {
    using Type = gesvdjInfo_t;
    static constexpr Type invalid() { return nullptr; }
    static void destroy(Type info) { (void)cusolverDnDestroyGesvdjInfo(info); }
  };
  /// What the functions on one queue are given.
  struct State {
    Handle<SolverTraits> handle;
    Handle<ParamsTraits> params;
    Handle<SyevjTraits> syevj;    ///< of the last call of that kind
    Handle<GesvdjTraits> gesvdj;  ///< the same
    Workspace memory;
    Workspace found;  ///< how often matrices were found to be not finite
    /// The last one is in use. Calls that are under way may still read the others, and each is
    /// twice as large as the one before.
    std::deque<std::vector<std::byte>> host;
    std::size_t extra_bytes = 0;  ///< of the call that is being queued

    [[nodiscard]] int* info() const { return static_cast<int*>(memory.get()); }
    [[nodiscard]] std::byte* at(std::size_t offset) const {
      return static_cast<std::byte*>(memory.get()) + Needed::kAligned + offset;
    }
    [[nodiscard]] void* extra() const { return at(0); }
    [[nodiscard]] void* device() const { return at(extra_bytes); }
    [[nodiscard]] void* host_memory() { return host.empty() ? nullptr : host.back().data(); }
  };
  [[nodiscard]] State& state(Queue queue) { return states[queue.detour ? 1 : 0]; }
  /// Makes room.
  Result<void> reserve(Queue queue, const Needed& needed);
  /// The info of matrices without elements, in its cell.
  Result<void> tell_zero(const Operand& cell, std::size_t bytes, const Call& call);
  /// Copies info to its cell, behind what computes it.
  Result<void> tell(const Operand& cell, const Call& call);
  /// Writes `value` behind the info in a cell, in the order of the queue.
  template <class Value>
  Result<void> tell_more(const Operand& cell, std::size_t offset, const Value& value,
                         const Call& call) {
    std::array<std::uint8_t, 16> pattern{};
    std::memcpy(pattern.data(), &value, sizeof value);
    return services.fill(call.queue(), call.at(cell) + offset, pattern, sizeof value, 1);
  }
  /// Queues a function of cuSOLVER. `ask` sets what it needs and returns a status, and so does
  /// `compute`, for which that is there. Both are called before issue() returns.
  template <class Op, class Ask, class Compute>
  Result<void> issue(const Op&, const Call& call, Needed needed, Ask&& ask, Compute&& compute) {
    auto& own = state(call.queue());
    if (const cusolverStatus_t status = ask(own, needed); status != CUSOLVER_STATUS_SUCCESS)
      return failure(status, Op::kName);
    TROUPE_CUDA_PROPAGATE(reserve(call.queue(), needed));
    if (const cusolverStatus_t status = compute(own, std::as_const(needed));
        status != CUSOLVER_STATUS_SUCCESS)
      return failure(status, Op::kName);
    return {};
  }
  /// The same of a function of 32 bits: `ask(handle, int*)` gives how many elements of T it needs,
  /// `compute(handle, T* memory, int length, int* info)` queues it.
  template <class T, class Op, class Ask, class Compute>
  Result<void> issue_narrow(const Op& op, const Call& call, std::size_t extra_bytes, Ask&& ask,
                            Compute&& compute) {
    int length = 0;
    return issue(
        op, call, {.extra_bytes = extra_bytes},
        [&](State& own, Needed& needed) {
          const cusolverStatus_t status = ask(own.handle.get(), &length);
          needed.device_bytes = sizeof(T) * static_cast<std::size_t>(std::max(0, length));
          return status;
        },
        [&](State& own, const Needed&) {
          return compute(own.handle.get(), static_cast<Native<T>*>(own.device()), length,
                         own.info());
        });
  }
  /// The first pivots of a command, in the memory of the queue; they are of matrices of that order.
  template <class Pivot>
  Result<void> bring_pivots(const Operand& pivots, std::int64_t count, std::int64_t order,
                            const Call& call);
  Result<void> warm_up(Queue queue);

  Services& services;
  std::array<State, 2> states;  ///< of the lane's own queue, of its detour
};
Result<void> tell_sweeps(const Operand& cell, int sweeps, double residual, const Call& call,
                         Solver& library);
/// The value of syevj and its like; waits for them.
Result<void> tell_sweeps_of_syevj(const Operand& cell, const Call& call, Solver& library);
/// When Jacobi's methods stop.
Result<void> set_syevj(Solver::State& own, double tolerance, std::int32_t max_sweeps);
Result<void> set_gesvdj(Solver::State& own, double tolerance, std::int32_t max_sweeps);
/// The same of a batch, in the order of the queue: find() looks at its matrices, and makes unit
/// matrices of those that are not finite if `a` may be written; tell_found() answers, behind what
/// computes the others.
template <class Op>
Result<void> find(const Op& op, kernels::Counting counting, std::int64_t rows, bool writable,
                  const Call& call, Solver& library);
template <class Op>
Result<void> tell_found(const Op& op, const Operand& values, std::int64_t count, const Call& call,
                        Solver& library);
Result<void> tell_not_finite(DType dtype, const Operand& cell, const Told& told, const Call& call,
                             Solver& library);
Result<bool> any_not_finite(DType dtype, std::initializer_list<LookedAt> matrices, const Call& call,
                            Solver& library);
/// The answer where an element of a matrix is not finite: kNotFinite in a cell of a TellsOf, and
/// values that are no numbers. Nothing if all are. Waits for what is before it.
template <class TellsOf>
std::optional<Result<void>> refuse(DType dtype, std::initializer_list<LookedAt> matrices,
                                   const Operand& cell, const Told& told, const Call& call,
                                   Solver& library) {
  const auto found = any_not_finite(dtype, matrices, call, library);
  if (!found) return found.error();
  if (!*found) return std::nullopt;
  if (auto told_zero = library.tell_zero(cell, sizeof(TellsOf), call); !told_zero) return told_zero;
  return tell_not_finite(dtype, cell, told, call, library);
}
/// The addresses of the tail's operands, in device memory.
Result<void**> addresses_of_tail(const Call& call, Solver& library);
/// The same in a batch's array of them.
template <class Op>
Result<void> tell_zeros(const Op& op, const Call& call, Solver& library);
/// Gesv and Gels.
template <class Op, class Ask, class Compute>
Result<void> refine(const Op& op, const Call& call, std::size_t extra_bytes, Ask&& ask,
                    Compute&& compute, Solver& library);
/// The first zero on the diagonal of a factor, counted from 1; 0: there is none. Waits for it.
Result<std::int32_t> first_zero(DType dtype, const std::byte* a, std::int64_t n, std::int64_t lda,
                                const Call& call, Solver& library);

}  // namespace troupe::host::cuda
