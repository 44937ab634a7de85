#include <limits>

#include "lib/solver/cuda.hpp"

/// Matrices that are not finite, on the cuda engine. cuSOLVER does not say what it makes of them.
namespace troupe::host::cuda {
namespace {

template <class T>
kernels::Examined<Native<T>> examined(const LookedAt& matrix, const Call& call) {
  return {call.at<const Native<T>>(*matrix.a), matrix.rows, matrix.columns, matrix.leading,
          matrix.counting};
}

}  // namespace

Result<bool> any_not_finite(DType dtype, std::initializer_list<LookedAt> matrices, const Call& call,
                            Solver& library) {
  const auto launch = library.services.launch(call.queue());
  auto& memory = library.state(call.queue()).found;
  TROUPE_CUDA_PROPAGATE(memory.reserve(library.services, call.queue(), sizeof(int)));
  auto* const found = static_cast<int*>(memory.get());
  TROUPE_CUDA_TRY(cudaMemsetAsync(found, 0, sizeof *found, launch.stream));
  for (const auto& matrix : matrices) {
    TROUPE_CUDA_PROPAGATE(with_number(dtype, [&]<class T>(T) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::find_not_finite(launch, examined<T>(matrix, call), found));
      return {};
    }));
  }
  int count = 0;
  TROUPE_CUDA_TRY(
      cudaMemcpyAsync(&count, found, sizeof count, cudaMemcpyDeviceToHost, launch.stream));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(launch.stream));
  return count != 0;
}

Result<void> tell_not_finite(DType dtype, const Operand& cell, const Told& told, const Call& call,
                             Solver& library) {
  TROUPE_CUDA_PROPAGATE(library.tell_more(cell, 0, solver::kNotFinite, call));
  const bool single = real_type(dtype) == DType::f32;
  std::array<std::uint8_t, 16> pattern{};
  const float narrow = std::numeric_limits<float>::quiet_NaN();
  const double wide = std::numeric_limits<double>::quiet_NaN();
  const std::size_t size = single ? sizeof narrow : sizeof wide;
  std::memcpy(pattern.data(), single ? static_cast<const void*>(&narrow) : &wide, size);
  for (std::int64_t j = 0; j < told.columns; ++j) {
    auto* const column = call.at(*told.values) + static_cast<std::size_t>(j * told.leading) * size;
    TROUPE_CUDA_PROPAGATE(library.services.fill(call.queue(), column, pattern, size,
                                                static_cast<std::uint64_t>(told.count)));
  }
  return {};
}

template <class Op>
Result<void> find(const Op& op, kernels::Counting counting, std::int64_t rows, bool writable,
                  const Call& call, Solver& library) {
  const auto launch = library.services.launch(call.queue());
  auto& memory = library.state(call.queue()).found;
  const auto bytes = sizeof(int) * static_cast<std::size_t>(op.batch);
  TROUPE_CUDA_PROPAGATE(memory.reserve(library.services, call.queue(), bytes));
  auto* const found = static_cast<int*>(memory.get());
  TROUPE_CUDA_TRY(cudaMemsetAsync(found, 0, bytes, launch.stream));
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    auto matrices = examined<T>({&op.a, rows, op.n, op.lda, counting}, call);
    matrices.stride = op.lda * op.n, matrices.batch = op.batch;
    TROUPE_CUDA_TRY(kernels::find_not_finite(launch, matrices, found));
    if (writable)
      TROUPE_CUDA_TRY(kernels::clear_found(launch, matrices, call.at<Native<T>>(op.a), found));
    return {};
  });
}

template <class Op>
Result<void> tell_found(const Op& op, const Operand& values, std::int64_t count, const Call& call,
                        Solver& library) {
  const auto* const found = static_cast<const int*>(library.state(call.queue()).found.get());
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::tell_found(library.services.launch(call.queue()), found, op.batch,
                                        solver::kNotFinite, call.at<int>(op.info),
                                        call.at<RealOf<T>>(values), count));
    return {};
  });
}

template Result<void> find(const solver::SyevBatched&, kernels::Counting, std::int64_t, bool,
                           const Call&, Solver&);
template Result<void> find(const solver::SyevjBatched&, kernels::Counting, std::int64_t, bool,
                           const Call&, Solver&);
template Result<void> find(const solver::GesvdjBatched&, kernels::Counting, std::int64_t, bool,
                           const Call&, Solver&);
template Result<void> find(const solver::GesvdaBatched&, kernels::Counting, std::int64_t, bool,
                           const Call&, Solver&);
template Result<void> tell_found(const solver::SyevBatched&, const Operand&, std::int64_t,
                                 const Call&, Solver&);
template Result<void> tell_found(const solver::SyevjBatched&, const Operand&, std::int64_t,
                                 const Call&, Solver&);
template Result<void> tell_found(const solver::GesvdjBatched&, const Operand&, std::int64_t,
                                 const Call&, Solver&);
template Result<void> tell_found(const solver::GesvdaBatched&, const Operand&, std::int64_t,
                                 const Call&, Solver&);

}  // namespace troupe::host::cuda
