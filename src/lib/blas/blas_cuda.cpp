#include <algorithm>
#include <array>
#include <vector>

#include <troupe/lib/blas.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/blas/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

struct BlasTraits {
  using Type = cublasHandle_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type handle) { (void)cublasDestroy(handle); }
};
using BlasHandle = Handle<BlasTraits>;

/// What cuBLAS recommends for Hopper; with a workspace of its own the handle never allocates, and
/// results do not depend on what else runs.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
/// Of the matrices to warm up with: small enough to be quick, large enough that cuBLAS picks the
/// kernels it picks for large matrices.
constexpr std::int64_t kWarmUpOrder = 512;

/// The 64-bit functions of cuBLAS by type.
template <class T>
struct Cublas;
template <>
struct Cublas<float> {
  static constexpr auto axpy = cublasSaxpy_64;
  static constexpr auto dot = cublasSdot_64;
  static constexpr auto nrm2 = cublasSnrm2_64;
  static constexpr auto scal = cublasSscal_64;
  static constexpr auto copy = cublasScopy_64;
  static constexpr auto gemv = cublasSgemv_64;
  static constexpr auto gemm = cublasSgemm_64;
  static constexpr auto gemm_strided = cublasSgemmStridedBatched_64;
  static constexpr auto gemm_batched = cublasSgemmBatched_64;
};
template <>
struct Cublas<double> {
  static constexpr auto axpy = cublasDaxpy_64;
  static constexpr auto dot = cublasDdot_64;
  static constexpr auto nrm2 = cublasDnrm2_64;
  static constexpr auto scal = cublasDscal_64;
  static constexpr auto copy = cublasDcopy_64;
  static constexpr auto gemv = cublasDgemv_64;
  static constexpr auto gemm = cublasDgemm_64;
  static constexpr auto gemm_strided = cublasDgemmStridedBatched_64;
  static constexpr auto gemm_batched = cublasDgemmBatched_64;
};

cublasOperation_t operation(blas::Transpose transpose) {
  return transpose == blas::Transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T;
}

/// cuBLAS wants leading dimensions of at least 1 also where a matrix is empty.
std::int64_t leading(std::int64_t dimension) {
  return std::max<std::int64_t>(1, dimension);
}

class Blas final
    : public LibraryHalfOf<Blas, blas::Axpy, blas::Dot, blas::Nrm2, blas::Scal, blas::Copy,
                           blas::Gemv, blas::Gemm, blas::GemmBatched, blas::GemmIndexed> {
 public:
  explicit Blas(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuBLAS", &cublasGetProperty)};
  }
  Result<void> open(Queue queue) override;
  Result<void> run(const blas::Axpy& op, const Call& call);
  Result<void> run(const blas::Dot& op, const Call& call);
  Result<void> run(const blas::Nrm2& op, const Call& call);
  Result<void> run(const blas::Scal& op, const Call& call);
  Result<void> run(const blas::Copy& op, const Call& call);
  Result<void> run(const blas::Gemv& op, const Call& call);
  Result<void> run(const blas::Gemm& op, const Call& call);
  Result<void> run(const blas::GemmBatched& op, const Call& call);
  Result<void> run(const blas::GemmIndexed& op, const Call& call);

 private:
  struct State {
    DeviceMemory workspace;
    Workspace addresses;  ///< of a batch's matrices
    BlasHandle handle;
    ScalarsAt scalars = ScalarsAt::host;
  };
  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  /// The handle of an open queue, told where the factors of the next call are.
  Result<cublasHandle_t> handle_at(Queue queue, ScalarsAt where);
  /// Multiplies the matrices at addresses in device memory: all A, all B, all C.
  template <class T, class Op>
  Result<void> multiply(const Op& op, const Call& call, void* addresses);
  Result<void> warm_up(Queue queue);
  Result<void> warm_up(DType dtype, const Operand& matrix, const Call& call);

  Services& services_;
  std::array<State, 2> states_;  ///< of the lane's own queue, of its detour
};

Result<void> Blas::open(Queue queue) {
  auto& opened = state(queue);
  if (!opened.handle) TROUPE_CUDA_TRY(cublasCreate(opened.handle.out()));
  if (!opened.workspace) {
    auto reserved = services_.reserve(queue, kWorkspaceBytes);
    if (!reserved) return reserved.error();
    opened.workspace = std::move(*reserved);
  }
  const auto handle = opened.handle.get();
  // In this order: setting the stream takes the workspace away.
  TROUPE_CUDA_TRY(cublasSetStream(handle, services_.stream(queue)));
  TROUPE_CUDA_TRY(cublasSetWorkspace(handle, opened.workspace.get(), kWorkspaceBytes));
  TROUPE_CUDA_TRY(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  opened.scalars = ScalarsAt::host;
  return queue.detour ? Result<void>() : warm_up(queue);
}

Result<void> Blas::warm_up(Queue queue) {
  constexpr std::uint64_t kBytes = sizeof(double) * kWarmUpOrder * kWarmUpOrder;
  WarmUp warming(services_, queue);
  const auto stream = services_.stream(queue);
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
  for (const auto& factor : {Scalar{}, WarmUp::factor_in_memory(dtype)}) {
    TROUPE_CUDA_PROPAGATE(run(blas::Axpy{dtype, 64, 1, 1, factor, x, y}, call));
    TROUPE_CUDA_PROPAGATE(run(blas::Scal{dtype, 64, 1, factor, x}, call));
  }
  TROUPE_CUDA_PROPAGATE(run(blas::Dot{dtype, 64, 1, 1, x, y, result}, call));
  TROUPE_CUDA_PROPAGATE(run(blas::Nrm2{dtype, 64, 1, x, result}, call));
  TROUPE_CUDA_PROPAGATE(run(blas::Copy{dtype, 64, 1, 1, x, y}, call));

  constexpr auto n = kWarmUpOrder;
  const auto no = blas::Transpose::no, yes = blas::Transpose::yes;
  for (const auto transpose : {no, yes}) {
    TROUPE_CUDA_PROPAGATE(
        run(blas::Gemv{dtype, transpose, 0, n, n, n, 1, 1, {}, {}, matrix, x, y}, call));
  }
  // One matrix of zeros stands for all three: the result is zeros whatever the order of reads and
  // writes.
  return run(blas::Gemm{dtype, no, no, n, n, n, n, n, n, {}, {}, matrix, matrix, matrix}, call);
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

Result<void> Blas::run(const blas::Axpy& op, const Call& call) {
  if (op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(services_, call, {&op.alpha}));
    const auto handle = handle_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::axpy(*handle, op.n, factors[0], call.at<const T>(op.x), op.incx,
                                    call.at<T>(op.y), op.incy));
    return {};
  });
}

Result<void> Blas::run(const blas::Dot& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    if (op.n == 0) {
      TROUPE_CUDA_TRY(
          cudaMemsetAsync(call.at(op.result), 0, sizeof(T), services_.stream(call.queue())));
      return {};
    }
    const auto handle = handle_at(call.queue(), ScalarsAt::device);
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::dot(*handle, op.n, call.at<const T>(op.x), op.incx,
                                   call.at<const T>(op.y), op.incy, call.at<T>(op.result)));
    return {};
  });
}

Result<void> Blas::run(const blas::Nrm2& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    if (op.n == 0) {
      TROUPE_CUDA_TRY(
          cudaMemsetAsync(call.at(op.result), 0, sizeof(T), services_.stream(call.queue())));
      return {};
    }
    const auto handle = handle_at(call.queue(), ScalarsAt::device);
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(
        Cublas<T>::nrm2(*handle, op.n, call.at<const T>(op.x), op.incx, call.at<T>(op.result)));
    return {};
  });
}

Result<void> Blas::run(const blas::Scal& op, const Call& call) {
  if (op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(services_, call, {&op.alpha}));
    const auto handle = handle_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::scal(*handle, op.n, factors[0], call.at<T>(op.x), op.incx));
    return {};
  });
}

Result<void> Blas::run(const blas::Copy& op, const Call& call) {
  if (op.n == 0) return {};
  const auto handle = handle_at(call.queue(), state(call.queue()).scalars);  // it has no factors
  if (!handle) return handle.error();
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(
        Cublas<T>::copy(*handle, op.n, call.at<const T>(op.x), op.incx, call.at<T>(op.y), op.incy));
    return {};
  });
}

Result<void> Blas::run(const blas::Gemv& op, const Call& call) {
  if (op.m == 0 || op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(services_, call, {&op.alpha, &op.beta}));
    const auto handle = handle_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::gemv(*handle, operation(op.transpose), op.m, op.n, factors[0],
                                    call.at<const T>(op.a), leading(op.lda), call.at<const T>(op.x),
                                    op.incx, factors[1], call.at<T>(op.y), op.incy));
    return {};
  });
}

Result<void> Blas::run(const blas::Gemm& op, const Call& call) {
  if (op.m == 0 || op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(services_, call, {&op.alpha, &op.beta}));
    const auto handle = handle_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::gemm(*handle, operation(op.transpose_a), operation(op.transpose_b),
                                    op.m, op.n, op.k, factors[0], call.at<const T>(op.a),
                                    leading(op.lda), call.at<const T>(op.b), leading(op.ldb),
                                    factors[1], call.at<T>(op.c), leading(op.ldc)));
    return {};
  });
}

template <class T, class Op>
Result<void> Blas::multiply(const Op& op, const Call& call, void* addresses) {
  Factors<T> factors;
  TROUPE_CUDA_PROPAGATE(factors.resolve(services_, call, {&op.alpha, &op.beta}));
  const auto handle = handle_at(call.queue(), factors.where());
  if (!handle) return handle.error();
  auto** const matrices = static_cast<T**>(addresses);
  TROUPE_CUDA_TRY(Cublas<T>::gemm_batched(
      *handle, operation(op.transpose_a), operation(op.transpose_b), op.m, op.n, op.k, factors[0],
      matrices, leading(op.lda), matrices + op.batch, leading(op.ldb), factors[1],
      matrices + 2 * op.batch, leading(op.ldc), op.batch));
  return {};
}

Result<void> Blas::run(const blas::GemmBatched& op, const Call& call) {
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    if (!call.tail().empty()) {
      auto& addresses = state(call.queue()).addresses;
      TROUPE_CUDA_PROPAGATE(
          addresses.reserve(services_, call.queue(), call.tail().size() * sizeof(void*)));
      std::vector<void*> matrices;
      for (const auto& part : call.tail()) matrices.push_back(call.at(part.range));
      TROUPE_CUDA_PROPAGATE(
          services_.write_addresses(call.queue(), static_cast<void**>(addresses.get()), matrices));
      return multiply<T>(op, call, addresses.get());
    }
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(services_, call, {&op.alpha, &op.beta}));
    const auto handle = handle_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::gemm_strided(
        *handle, operation(op.transpose_a), operation(op.transpose_b), op.m, op.n, op.k, factors[0],
        call.at<const T>(op.a), leading(op.lda), op.stride_a, call.at<const T>(op.b),
        leading(op.ldb), op.stride_b, factors[1], call.at<T>(op.c), leading(op.ldc), op.stride_c,
        op.batch));
    return {};
  });
}

Result<void> Blas::run(const blas::GemmIndexed& op, const Call& call) {
  auto& memory = state(call.queue()).addresses;
  const auto stream = services_.stream(call.queue());
  const auto count = static_cast<std::size_t>(op.batch);
  TROUPE_CUDA_PROPAGATE(
      memory.reserve(services_, call.queue(), sizeof(std::int64_t) + 3 * count * sizeof(void*)));
  auto* const outside = static_cast<std::int64_t*>(memory.get());
  auto** const addresses = reinterpret_cast<void**>(outside + 1);
  TROUPE_CUDA_TRY(cudaMemsetAsync(outside, 0, sizeof *outside, stream));
  const Operand* const operands[] = {&op.a, &op.b, &op.c};
  const auto last = blas::last_offsets(op);
  for (std::size_t i = 0; i < 3; ++i) {
    const kernels::Places places{call.at(*operands[i]), size_of(op.dtype),
                                 call.at<const std::int64_t>(op.offsets) + i * count, last[i]};
    TROUPE_CUDA_PROPAGATE(
        services_.write_addresses(call.queue(), addresses + i * count, places, op.batch, outside));
  }
  TROUPE_CUDA_TRY(
      cudaMemcpyAsync(call.at(op.outside), outside, sizeof *outside, cudaMemcpyDefault, stream));
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  return for_real(op.dtype,
                  [&]<class T>(T) -> Result<void> { return multiply<T>(op, call, addresses); });
}

}  // namespace
}  // namespace troupe::host::cuda

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cuda::Services& services) {
  return new troupe::host::cuda::Blas(services);
}
