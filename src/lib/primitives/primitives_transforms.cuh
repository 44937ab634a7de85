#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/lib/primitives_operators_types.hpp>

#include "device_host/engine/cuda/launch.hpp"

/// What goes by elements, and copies. Every function queues on a stream and returns. T is an
/// integer of 32 or 64 bits, float or double.
namespace troupe::host::cuda::kernels {

/// y may be x.
template <class T>
cudaError_t transform(const Launch& launch, primitives::Unary op, std::uint64_t n, const T* x,
                      T* y);
/// z may be x or y.
template <class T>
cudaError_t transform(const Launch& launch, primitives::Binary op, std::uint64_t n, const T* x,
                      const T* y, T* z);
template <class From, class To>
cudaError_t convert(const Launch& launch, std::uint64_t n, const From* x, To* y);

/// How many elements transform_reduce() works in.
inline constexpr std::uint64_t kMostPartialResults = 1024;
/// `initial` combined with op(x[0]), ..., op(x[n - 1]), in an order that depends on n alone.
/// `partial` has kMostPartialResults elements.
template <class T>
cudaError_t transform_reduce(const Launch& launch, primitives::Unary op, primitives::Binary combine,
                             T initial, std::uint64_t n, const T* x, T* partial, T* result);

/// Copies that one launch makes; as an argument of a kernel they have at most 4096 bytes.
struct Copies {
  static constexpr int kMost = 112;
  const std::byte* from[kMost];
  std::byte* to[kMost];
  std::uint64_t bytes[kMost];
  std::uint32_t first_tile[kMost + 1];
  int count = 0;

  /// False: there is no room.
  bool add(const std::byte* its_from, std::byte* its_to, std::uint64_t its_bytes);
};
/// Ranges that do not overlap.
cudaError_t copy(const Launch& launch, const Copies& copies);

}  // namespace troupe::host::cuda::kernels
