#include <algorithm>
#include <array>
#include <complex>
#include <utility>
#include <vector>

#include <troupe/lib/solver.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/solver/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

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

cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::f64: return CUDA_R_64F;
    case DType::c64: return CUDA_C_32F;
    default: return CUDA_C_64F;  // check() lets no other one pass
  }
}
cublasFillMode_t fill_mode(solver::Uplo uplo) {
  return uplo == solver::Uplo::lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
cusolverEigMode_t mode(solver::Vectors vectors) {
  return vectors == solver::Vectors::yes ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

/// What a function of cuSOLVER needs beside its operands. Its device memory begins with info.
struct Needed {
  static constexpr std::size_t kInfoBytes = 256;  ///< keeps the rest aligned
  std::size_t device_bytes = 0, host_bytes = 0;
};

class Solver final : public LibraryHalfOf<Solver, solver::Potrf, solver::Syevd> {
 public:
  explicit Solver(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuSOLVER", &cusolverGetProperty)};
  }
  Result<void> open(Queue queue) override;
  Result<void> run(const solver::Potrf& op, const Call& call);
  Result<void> run(const solver::Syevd& op, const Call& call);

 private:
  struct State {
    Handle<SolverTraits> handle;
    Handle<ParamsTraits> params;
    Workspace memory;
    std::vector<std::byte> host;

    [[nodiscard]] int* info() const { return static_cast<int*>(memory.get()); }
    [[nodiscard]] void* device() const {
      return static_cast<std::byte*>(memory.get()) + Needed::kInfoBytes;
    }
  };
  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  /// Makes room.
  Result<void> reserve(Queue queue, const Needed& needed);
  /// Copies info to its cell, behind what computes it.
  Result<void> tell(const State& state, const Operand& cell, const Call& call);
  Result<void> warm_up(Queue queue);

  Services& services_;
  std::array<State, 2> states_;  ///< of the lane's own queue, of its detour
};

Result<void> Solver::open(Queue queue) {
  auto& opened = state(queue);
  if (!opened.handle) TROUPE_CUDA_TRY(cusolverDnCreate(opened.handle.out()));
  if (!opened.params) TROUPE_CUDA_TRY(cusolverDnCreateParams(opened.params.out()));
  TROUPE_CUDA_TRY(cusolverDnSetStream(opened.handle.get(), services_.stream(queue)));
  // A replay gives the same bits.
  TROUPE_CUDA_TRY(
      cusolverDnSetDeterministicMode(opened.handle.get(), CUSOLVER_DETERMINISTIC_RESULTS));
  TROUPE_CUDA_PROPAGATE(reserve(queue, {.device_bytes = std::size_t{1} << 20}));
  return queue.detour ? Result<void>() : warm_up(queue);
}

Result<void> Solver::reserve(Queue queue, const Needed& needed) {
  auto& own = state(queue);
  if (needed.host_bytes > own.host.size()) {
    if (services_.records()) return Services::not_recorded("more memory");
    services_.note_given_back();
    own.host.resize(needed.host_bytes);
  }
  return own.memory.reserve(services_, queue, Needed::kInfoBytes + needed.device_bytes);
}

Result<void> Solver::tell(const State& state, const Operand& cell, const Call& call) {
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(cell), state.info(), sizeof(std::int32_t),
                                  cudaMemcpyDefault, services_.stream(call.queue())));
  return {};
}

Result<void> Solver::run(const solver::Potrf& op, const Call& call) {
  auto& own = state(call.queue());
  const auto stream = services_.stream(call.queue());
  if (op.n == 0) {
    TROUPE_CUDA_TRY(cudaMemsetAsync(own.info(), 0, sizeof(int), stream));
    return tell(own, op.info, call);
  }
  const auto type = type_of(op.dtype);
  Needed needed;
  TROUPE_CUDA_TRY(cusolverDnXpotrf_bufferSize(own.handle.get(), own.params.get(),
                                              fill_mode(op.uplo), op.n, type, call.at(op.a), op.lda,
                                              type, &needed.device_bytes, &needed.host_bytes));
  TROUPE_CUDA_PROPAGATE(reserve(call.queue(), needed));
  TROUPE_CUDA_TRY(cusolverDnXpotrf(
      own.handle.get(), own.params.get(), fill_mode(op.uplo), op.n, type, call.at(op.a), op.lda,
      type, own.device(), needed.device_bytes, own.host.data(), needed.host_bytes, own.info()));
  return tell(own, op.info, call);
}

Result<void> Solver::run(const solver::Syevd& op, const Call& call) {
  auto& own = state(call.queue());
  const auto stream = services_.stream(call.queue());
  if (op.n == 0) {
    TROUPE_CUDA_TRY(cudaMemsetAsync(own.info(), 0, sizeof(int), stream));
    return tell(own, op.info, call);
  }
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  Needed needed;
  TROUPE_CUDA_TRY(cusolverDnXsyevd_bufferSize(
      own.handle.get(), own.params.get(), mode(op.vectors), fill_mode(op.uplo), op.n, type,
      call.at(op.a), op.lda, real, call.at(op.w), type, &needed.device_bytes, &needed.host_bytes));
  TROUPE_CUDA_PROPAGATE(reserve(call.queue(), needed));
  TROUPE_CUDA_TRY(cusolverDnXsyevd(own.handle.get(), own.params.get(), mode(op.vectors),
                                   fill_mode(op.uplo), op.n, type, call.at(op.a), op.lda, real,
                                   call.at(op.w), type, own.device(), needed.device_bytes,
                                   own.host.data(), needed.host_bytes, own.info()));
  return tell(own, op.info, call);
}

/// On zeros, of an order at which cuSOLVER picks the kernels that it picks for large matrices.
Result<void> Solver::warm_up(Queue queue) {
  constexpr std::int64_t kOrder = 256;
  constexpr std::uint64_t kBytes = 16 * kOrder * kOrder;
  const auto stream = services_.stream(queue);
  WarmUp warming(services_, queue);
  void* memory = nullptr;
  TROUPE_CUDA_TRY(cudaMallocAsync(&memory, kBytes, stream));
  const auto matrix = warming.add(2, memory, kBytes);
  const auto cell = WarmUp::part(1), w = WarmUp::part(2);
  for (const auto dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    TROUPE_CUDA_TRY(cudaMemsetAsync(memory, 0, kBytes, stream));
    const solver::Potrf potrf{dtype, solver::Uplo::lower, OnFailure::report, kOrder, kOrder, matrix,
                              cell};
    TROUPE_CUDA_PROPAGATE(run(potrf, warming.call()));
    TROUPE_CUDA_TRY(cudaMemsetAsync(memory, 0, kBytes, stream));
    const solver::Syevd syevd{dtype,
                              solver::Vectors::yes,
                              solver::Uplo::lower,
                              OnFailure::report,
                              0,
                              kOrder,
                              kOrder,
                              matrix,
                              w,
                              cell};
    TROUPE_CUDA_PROPAGATE(run(syevd, warming.call()));
  }
  TROUPE_CUDA_TRY(cudaFreeAsync(memory, stream));
  return {};
}

}  // namespace
}  // namespace troupe::host::cuda

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cuda::Services& services) {
  return new troupe::host::cuda::Solver(services);
}
