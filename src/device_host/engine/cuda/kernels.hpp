#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

/// troupe's own kernels. Every function queues on `stream` and returns; element counts may be 0. T
/// is float or double; vectors may be the same, but must not overlap otherwise.
namespace troupe::host::cuda::kernels {

/// A factor: *device if that is set, else value.
template <class T>
struct Factor {
  const T* device = nullptr;
  T value = 0;
};

/// How wide grids are made. Known once per device, so that a launch asks nothing.
struct Launch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
};

/// Loads every kernel onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload();

/// Repeats the first `size` (1, 2, 4, 8 or 16) bytes of the pattern `count` times from
/// `destination` on.
cudaError_t fill(const Launch& launch, void* destination,
                 const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                 std::uint64_t count);

/// z = x .* y
template <class T>
cudaError_t multiply(const Launch& launch, std::int64_t n, const T* x, const T* y, T* z);
/// z = x ./ y
template <class T>
cudaError_t divide(const Launch& launch, std::int64_t n, const T* x, const T* y, T* z);
/// y = alpha x + beta y; y is not read if beta is the value 0
template <class T>
cudaError_t axpby(const Launch& launch, std::int64_t n, Factor<T> alpha, const T* x, Factor<T> beta,
                  T* y);
/// y = beta y; y is not read if beta is the value 0
template <class T>
cudaError_t scale(const Launch& launch, std::int64_t n, Factor<T> beta, T* y);
/// z[i] = x[index[i]]
template <class T, class I>
cudaError_t gather(const Launch& launch, std::int64_t n, const T* x, const I* index, T* z);

/// Which numbers of cuRAND's generator CURAND_RNG_PSEUDO_PHILOX4_32_10 (default ordering): `n`
/// behind the offset `position`.
struct RandomRange {
  std::uint64_t seed = 0, position = 0;
  std::int64_t n = 0;
};
/// Uniform in (0, 1], bit for bit what curandGenerateUniform[Double] gives.
template <class T>
cudaError_t uniform(const Launch& launch, const RandomRange& range, T* destination);
/// Normal, bit for bit what curandGenerateNormal[Double] gives; position and length are even.
template <class T>
cudaError_t normal(const Launch& launch, const RandomRange& range, T mean, T deviation,
                   T* destination);
cudaError_t preload_random();

}  // namespace troupe::host::cuda::kernels
