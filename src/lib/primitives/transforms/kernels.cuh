#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/lib/primitives/operators_types.hpp>

#include "device_host/engine/cuda/launch.hpp"

/// What goes by elements, and copies. Every function queues on a stream and returns. T is an
/// integer of 32 or 64 bits, float or double.
namespace troupe::host::cuda::kernels {

/// Floating-point numbers of 16 bits, which are computed with as float and rounded once. Which of
/// them they are is known when a kernel runs.
enum class NarrowFloat : std::uint32_t { f16, bf16 };

/// y may be x.
template <class T>
cudaError_t transform(const Launch& launch, primitives::Unary op, std::uint64_t n, const T* x,
                      T* y);
cudaError_t transform(const Launch& launch, primitives::Unary op, std::uint64_t n,
                      NarrowFloat format, const std::uint16_t* x, std::uint16_t* y);
/// z may be x or y.
template <class T>
cudaError_t transform(const Launch& launch, primitives::Binary op, std::uint64_t n, const T* x,
                      const T* y, T* z);
cudaError_t transform(const Launch& launch, primitives::Binary op, std::uint64_t n,
                      NarrowFloat format, const std::uint16_t* x, const std::uint16_t* y,
                      std::uint16_t* z);

template <class From, class To>
cudaError_t convert(const Launch& launch, std::uint64_t n, const From* x, To* y);
template <class To>
cudaError_t widen(const Launch& launch, std::uint64_t n, NarrowFloat format, const std::uint16_t* x,
                  To* y);
template <class From>
cudaError_t narrow(const Launch& launch, std::uint64_t n, const From* x, NarrowFloat format,
                   std::uint16_t* y);
cudaError_t reformat(const Launch& launch, std::uint64_t n, NarrowFloat from,
                     const std::uint16_t* x, NarrowFloat to, std::uint16_t* y);

/// What is made of elements: `initial` combined with x[0], ..., x[n - 1], or with what an operator
/// gives of them, in an order that depends on n alone.
template <class T>
struct Reducing {
  primitives::Binary combine;
  T initial;
  bool applies = false;  ///< the operator
  primitives::Unary op{};
};
/// How many elements of type T reduce() works in.
inline constexpr std::uint64_t kMostPartialResults = 1024;
template <class T>
cudaError_t reduce(const Launch& launch, const Reducing<T>& how, std::uint64_t n, const T* x,
                   T* partial, T* result);
cudaError_t reduce(const Launch& launch, const Reducing<float>& how, std::uint64_t n,
                   NarrowFloat format, const std::uint16_t* x, float* partial,
                   std::uint16_t* result);

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
