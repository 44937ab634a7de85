#include "lib/primitives/histograms/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"

// Kernels of troupe's own: those of cub::DeviceHistogram need memory for the counters of every
// block, however many bins there are, and are long to compile for each type of samples.

namespace troupe::host::cuda::kernels {
namespace {

constexpr std::int64_t kSharedCounters = 4096;
constexpr std::int64_t kSamplesOfThread = 16;  ///< at least: the counters of a block cost, too

__device__ inline void add(void* counts, std::size_t counter_bytes, std::int64_t at,
                           std::uint32_t count) {
  if (counter_bytes == sizeof(std::uint32_t)) {
    atomicAdd(static_cast<std::uint32_t*>(counts) + at, count);
  } else {
    atomicAdd(static_cast<unsigned long long*>(counts) + at,
              static_cast<unsigned long long>(count));
  }
}

/// Few counters are kept by each block in shared memory first: it sees fewer than 2^32 samples.
template <class T, class Bins>
__global__ void __launch_bounds__(kThreads) histogram_kernel(Samples<T> samples, Bins bins) {
  __shared__ std::uint32_t shared[kSharedCounters];
  const auto counters = bins.bins() * samples.counted;
  const bool few = counters <= kSharedCounters;
  if (few) {
    for (std::int64_t i = threadIdx.x; i < counters; i += kThreads) shared[i] = 0;
    __syncthreads();
  }
  const auto n = static_cast<std::uint64_t>(samples.n);
  for (auto i = first_index(); i < n; i += index_step()) {
    for (std::uint32_t channel = 0; channel < samples.counted; ++channel) {
      const std::int64_t bin = bins(samples.x[i * samples.all + channel]);
      if (bin < 0) continue;
      const auto at = channel * bins.bins() + bin;
      if (few) {
        atomicAdd(shared + at, 1u);
      } else {
        add(samples.counts, samples.counter_bytes, at, 1u);
      }
    }
  }
  if (!few) return;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < counters; i += kThreads) {
    if (shared[i] != 0) add(samples.counts, samples.counter_bytes, i, shared[i]);
  }
}

template <class T, class Bins>
cudaError_t count(const Launch& launch, const Samples<T>& samples, const Bins& bins) {
  const auto counters = static_cast<std::size_t>(bins.bins()) * samples.counted;
  const auto status =
      cudaMemsetAsync(samples.counts, 0, counters * samples.counter_bytes, launch.stream);
  if (status != cudaSuccess || samples.n == 0) return status;
  const auto threads = (samples.n + kSamplesOfThread - 1) / kSamplesOfThread;
  return queue(launch, static_cast<std::uint64_t>(threads), histogram_kernel<T, Bins>, samples,
               bins);
}

}  // namespace

template <class T, class L>
cudaError_t histogram(const Launch& launch, const Samples<T>& samples, const EvenBins<L>& bins) {
  return count(launch, samples, bins);
}
template <class T, class L>
cudaError_t histogram(const Launch& launch, const Samples<T>& samples, const RangeBins<L>& bins) {
  return count(launch, samples, bins);
}

#define TROUPE_INSTANTIATE(T, L)                                                        \
  template cudaError_t histogram(const Launch&, const Samples<T>&, const EvenBins<L>&); \
  template cudaError_t histogram(const Launch&, const Samples<T>&, const RangeBins<L>&);
TROUPE_INSTANTIATE(std::uint8_t, std::int32_t)
TROUPE_INSTANTIATE(std::int32_t, std::int32_t)
TROUPE_INSTANTIATE(std::uint32_t, std::uint32_t)
TROUPE_INSTANTIATE(std::int64_t, std::int64_t)
TROUPE_INSTANTIATE(std::uint64_t, std::uint64_t)
TROUPE_INSTANTIATE(float, float)
TROUPE_INSTANTIATE(double, double)
#undef TROUPE_INSTANTIATE

}  // namespace troupe::host::cuda::kernels
