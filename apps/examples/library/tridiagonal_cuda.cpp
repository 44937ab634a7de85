#include <array>

#include <troupe/plugin/cuda.hpp>

#include "tridiagonal.hpp"
#include "tridiagonal_kernels.cuh"

// The half of the library that device hosts with the cuda engine load.

namespace tridiagonal {
namespace {

namespace host = troupe::host;
namespace cuda = troupe::host::cuda;
using troupe::Result;

class Half final : public host::LibraryHalfOf<Half, Operations> {
 public:
  explicit Half(cuda::Services& services) : services_(services) {}

  /// Each operation runs once on zeros, so that its kernels are loaded before the first command.
  Result<void> open(host::Queue queue) override {
    auto& scratch = scratch_[queue.way()];  // no other call of this queue runs meanwhile
    if (queue.detour) return {};            // the same kernels
    TROUPE_CUDA_PROPAGATE(scratch.reserve(services_, queue, kScratchAtFirst));
    const cuda::WarmUp warm_up(services_, queue);
    const auto call = warm_up.call();
    const auto part = [](std::uint64_t i) { return cuda::WarmUp::part(i); };
    for (const auto dtype : cuda::WarmUp::kReals) {
      TROUPE_CUDA_PROPAGATE(
          run(Solve{dtype, 8, 1, part(1), part(2), part(3), part(4), part(5), part(6)}, call));
      TROUPE_CUDA_PROPAGATE(
          run(Residual{dtype, 8, 1, part(1), part(2), part(3), part(4), part(5), part(6)}, call));
    }
    return {};
  }

  Result<void> run(const Solve& op, const host::Call& call) {
    return cuda::with_real(op.dtype, [&]<class T>(T) -> Result<void> {
      const auto rows = static_cast<std::size_t>(op.n * op.batch) * sizeof(T);
      auto& scratch = scratch_[call.queue().way()];
      TROUPE_CUDA_PROPAGATE(
          scratch.reserve(services_, call.queue(),
                          rows + static_cast<std::size_t>(op.batch) * sizeof(std::int32_t)));
      auto* const room = static_cast<std::byte*>(scratch.get());
      TROUPE_CUDA_TRY(kernels::solve<T>(
          services_.stream(call.queue()), batch_of<T>(op, call), call.at<const T>(op.b),
          call.at<T>(op.x), reinterpret_cast<T*>(room),
          reinterpret_cast<std::int32_t*>(room + rows), call.at<std::int32_t>(op.info)));
      return {};
    });
  }

  Result<void> run(const Residual& op, const host::Call& call) {
    return cuda::with_real(op.dtype, [&]<class T>(T) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::residual<T>(services_.stream(call.queue()), batch_of<T>(op, call),
                                           call.at<const T>(op.x), call.at<const T>(op.b),
                                           call.at<T>(op.r)));
      return {};
    });
  }

 private:
  static constexpr std::size_t kScratchAtFirst = 4096;

  template <class T, class Op>
  static kernels::Batch<T> batch_of(const Op& op, const host::Call& call) {
    return {op.n, op.batch, call.at<const T>(op.lower), call.at<const T>(op.diagonal),
            call.at<const T>(op.upper)};
  }

  cuda::Services& services_;
  /// Of each queue of the library's lane. Queues run at the same time, so this must not grow.
  std::array<cuda::Workspace, host::Queue::kWays> scratch_;
};

}  // namespace
}  // namespace tridiagonal

TROUPE_LIBRARY_HALF(tridiagonal::Half)
