#include "lib/collective/nccl/launch_times_cuda.hpp"

#include <utility>

namespace troupe::host::cuda {
namespace {

/// Of numbers in a row it is true for one of LaunchTimes::kEach, and of each second, third, … of
/// them likewise: their multiples of the golden ratio lie evenly between two whole numbers.
bool is_chosen(std::uint64_t number) {
  constexpr std::uint64_t kGoldenRatio = 0x9e37'79b9'7f4a'7c15;  // its fraction, times 2^64
  return number * kGoldenRatio < ~std::uint64_t{0} / LaunchTimes::kEach;
}

}  // namespace

bool LaunchTimes::is_timed(std::uint32_t communicator) {
  const auto number = [&] {
    const std::lock_guard lock(mutex_);
    return ++numbers_[communicator];
  }();
  if (!is_chosen(number)) return false;
  read_ended();
  return pending_.size() < kMostPending;
}

LaunchTimes::Timing LaunchTimes::begin_timing(cudaStream_t stream) {
  Timing timing;
  if (!free_.empty()) {
    timing = std::move(free_.back());
    free_.pop_back();
  } else if (cudaEventCreate(timing.begin.out()) != cudaSuccess ||
             cudaEventCreate(timing.end.out()) != cudaSuccess) {
    (void)cudaGetLastError();  // else a later call trips over it
    return {};
  }
  (void)cudaEventRecord(timing.begin.get(), stream);
  return timing;
}

void LaunchTimes::end_timing(Timing timing, cudaStream_t stream) {
  if (timing.end && cudaEventRecord(timing.end.get(), stream) == cudaSuccess)
    pending_.push_back(std::move(timing));
}

void LaunchTimes::read_ended() {
  while (!pending_.empty()) {
    auto& oldest = pending_.front();
    float milliseconds = 0;
    const auto status = cudaEventElapsedTime(&milliseconds, oldest.begin.get(), oldest.end.get());
    if (status != cudaSuccess) (void)cudaGetLastError();
    if (status == cudaErrorNotReady) return;
    if (status == cudaSuccess) {
      const auto took = static_cast<std::uint64_t>(1e6 * static_cast<double>(milliseconds));
      times_->in_collectives.fetch_add(kEach * took, std::memory_order_relaxed);
      times_->collectives.fetch_add(kEach, std::memory_order_relaxed);
    }
    free_.push_back(std::move(oldest));
    pending_.pop_front();
  }
}

}  // namespace troupe::host::cuda
