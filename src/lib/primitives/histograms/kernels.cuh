#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"
#include "lib/primitives/histograms/bins.hpp"

/// Histograms.
namespace troupe::host::cuda::kernels {

/// n samples of `all` channels each, of which the first `counted` are counted, and where to: the
/// counters are 32 or 64 bits wide.
template <class T>
struct Samples {
  const T* x = nullptr;
  std::int64_t n = 0;
  std::uint32_t all = 1, counted = 1;
  void* counts = nullptr;
  std::size_t counter_bytes = 0;
};

/// Sets the counters of each channel that is counted. T is std::uint8_t, an integer of 32 or 64
/// bits, float or double; L is the same, but std::int32_t for std::uint8_t.
template <class T, class L>
cudaError_t histogram(const Launch& launch, const Samples<T>& samples, const EvenBins<L>& bins);
template <class T, class L>
cudaError_t histogram(const Launch& launch, const Samples<T>& samples, const RangeBins<L>& bins);

}  // namespace troupe::host::cuda::kernels
