#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Every function queues on the launch's stream and returns. T is float or double.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_rng();
cudaError_t preload_laws();

/// Which numbers of cuRAND's generator CURAND_RNG_PSEUDO_PHILOX4_32_10 (default ordering): `n`
/// behind the offset `position`. `n` may be 0.
struct RandomRange {
  std::uint64_t seed = 0, position = 0;
  std::int64_t n = 0;
};
/// Bit for bit what curandGenerate gives.
cudaError_t bits(const Launch& launch, const RandomRange& range, std::uint32_t* destination);
/// Uniform in (0, 1], bit for bit what curandGenerateUniform[Double] gives.
template <class T>
cudaError_t uniform(const Launch& launch, const RandomRange& range, T* destination);
/// Normal, bit for bit what curandGenerateNormal[Double] gives; position and length are even.
template <class T>
cudaError_t normal(const Launch& launch, const RandomRange& range, T mean, T deviation,
                   T* destination);

/// exp() of what normal() gives; to rounding what curandGenerateLogNormal[Double] gives.
template <class T>
cudaError_t log_normal(const Launch& launch, const RandomRange& range, T mean, T deviation,
                       T* destination);
/// Numbers of one of laws/laws.hpp, which belong to the range's places.
template <class Law, class T>
cudaError_t draw(const Launch& launch, const RandomRange& range, const Law& law, T* destination);

}  // namespace troupe::host::cuda::kernels
