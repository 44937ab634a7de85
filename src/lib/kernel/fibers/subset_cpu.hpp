// What kernels in CUDA C++ see where the host's compiler compiles them for the cpu engine. It is
// included in front of the program's source, which troupe-compile has changed in one respect: a
// declaration `extern __shared__ T name[];` has become a pointer.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "lib/kernel/fibers/image_cpu.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __grid_constant__
#define __syncthreads() ::troupe_kernel::barrier()

namespace troupe_kernel {

inline thread_local Block* current = nullptr;
inline void barrier() {
  current->barrier(current);
}
template <class T>
T* dynamic_shared() {
  // Outside of a kernel there is none: the engine finds out when it loads the image.
  return current == nullptr ? nullptr : static_cast<T*>(current->shared);
}

}  // namespace troupe_kernel

#define threadIdx (::troupe_kernel::current->thread)
#define blockIdx (::troupe_kernel::current->index)
#define blockDim (::troupe_kernel::current->extent)
#define gridDim (::troupe_kernel::current->grid)

// Vector types

using uint3 = ::troupe_kernel::Index;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1)
      : x(in_x), y(in_y), z(in_z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

#define TROUPE_VECTORS(T, name, a2, a4)               \
  struct name##1 {                                    \
    T x;                                              \
  };                                                  \
  struct alignas(a2) name##2 {                        \
    T x, y;                                           \
  };                                                  \
  struct alignas(a4) name##4 {                        \
    T x, y, z, w;                                     \
  };                                                  \
  inline name##1 make_##name##1(T x) {                \
    return {x};                                       \
  }                                                   \
  inline name##2 make_##name##2(T x, T y) {           \
    return {x, y};                                    \
  }                                                   \
  inline name##4 make_##name##4(T x, T y, T z, T w) { \
    return {x, y, z, w};                              \
  }
#define TROUPE_VECTOR3(T, name)                  \
  struct name##3 {                               \
    T x, y, z;                                   \
  };                                             \
  inline name##3 make_##name##3(T x, T y, T z) { \
    return {x, y, z};                            \
  }
TROUPE_VECTORS(signed char, char, 2, 4)
TROUPE_VECTORS(unsigned char, uchar, 2, 4)
TROUPE_VECTORS(short, short, 4, 8)
TROUPE_VECTORS(unsigned short, ushort, 4, 8)
TROUPE_VECTORS(int, int, 8, 16)
TROUPE_VECTORS(unsigned, uint, 8, 16)
TROUPE_VECTORS(long long, longlong, 16, 16)
TROUPE_VECTORS(unsigned long long, ulonglong, 16, 16)
TROUPE_VECTORS(float, float, 8, 16)
TROUPE_VECTORS(double, double, 16, 16)
TROUPE_VECTOR3(signed char, char)
TROUPE_VECTOR3(unsigned char, uchar)
TROUPE_VECTOR3(short, short)
TROUPE_VECTOR3(unsigned short, ushort)
TROUPE_VECTOR3(int, int)
TROUPE_VECTOR3(long long, longlong)
TROUPE_VECTOR3(unsigned long long, ulonglong)
TROUPE_VECTOR3(float, float)
TROUPE_VECTOR3(double, double)
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) {
  return {x, y, z};
}
#undef TROUPE_VECTORS
#undef TROUPE_VECTOR3

// Atomics

namespace troupe_kernel {

/// From which T is not deduced.
template <class T>
struct SameAs {
  using type = T;
};
template <class T>
using Same = typename SameAs<T>::type;

template <class T, class F>
T update(T* at, F f) {
  T seen, wanted;
  __atomic_load(at, &seen, __ATOMIC_RELAXED);
  do {
    wanted = f(seen);
  } while (
      !__atomic_compare_exchange(at, &seen, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return seen;
}

}  // namespace troupe_kernel

template <class T>
T atomicAdd(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T seen) { return static_cast<T>(seen + value); });
}
template <class T>
T atomicSub(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T seen) { return static_cast<T>(seen - value); });
}
template <class T>
T atomicMin(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T seen) { return value < seen ? value : seen; });
}
template <class T>
T atomicMax(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T seen) { return seen < value ? value : seen; });
}
template <class T>
T atomicExch(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T) { return value; });
}
template <class T>
T atomicAnd(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T seen) { return static_cast<T>(seen & value); });
}
template <class T>
T atomicOr(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T seen) { return static_cast<T>(seen | value); });
}
template <class T>
T atomicXor(T* at, ::troupe_kernel::Same<T> value) {
  return ::troupe_kernel::update(at, [value](T seen) { return static_cast<T>(seen ^ value); });
}
inline unsigned atomicInc(unsigned* at, unsigned last) {
  return ::troupe_kernel::update(at, [last](unsigned seen) { return seen >= last ? 0 : seen + 1; });
}
inline unsigned atomicDec(unsigned* at, unsigned last) {
  return ::troupe_kernel::update(
      at, [last](unsigned seen) { return seen == 0 || seen > last ? last : seen - 1; });
}
template <class T>
T atomicCAS(T* at, ::troupe_kernel::Same<T> expected, ::troupe_kernel::Same<T> value) {
  __atomic_compare_exchange(at, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
inline void __trap() {
  __builtin_trap();
}
inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// Numbers. What is in <cmath> is there as it is.

template <class A, class B>
constexpr auto min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
}
template <class A, class B>
constexpr auto max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class T>
T __ldg(const T* at) {
  return *at;
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline float fdividef(float x, float y) {
  return x / y;
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __clz(unsigned x) {
  return x == 0 ? 32 : __builtin_clz(x);
}
inline int __clzll(unsigned long long x) {
  return x == 0 ? 64 : __builtin_clzll(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline float __int_as_float(int x) {
  float y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
inline int __float_as_int(float x) {
  int y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
inline double __longlong_as_double(long long x) {
  double y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
inline long long __double_as_longlong(double x) {
  long long y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
// These names are the C library's as well, for other purposes.
namespace troupe_kernel {
inline float fast_exp(float x) {
  return std::exp(x);
}
inline float fast_log(float x) {
  return std::log(x);
}
inline float fast_sin(float x) {
  return std::sin(x);
}
inline float fast_cos(float x) {
  return std::cos(x);
}
inline float fast_pow(float x, float y) {
  return std::pow(x, y);
}
}  // namespace troupe_kernel
#define __expf(x) ::troupe_kernel::fast_exp(x)
#define __logf(x) ::troupe_kernel::fast_log(x)
#define __sinf(x) ::troupe_kernel::fast_sin(x)
#define __cosf(x) ::troupe_kernel::fast_cos(x)
#define __powf(x, y) ::troupe_kernel::fast_pow(x, y)

// What is beyond this subset, so that the compiler says so.

#define TROUPE_NO_WARPS(name)                                                     \
  template <class... A>                                                           \
  int name(A...) {                                                                \
    static_assert(sizeof...(A) > 99,                                              \
                  "the cpu engine has no warps: " #name " is beyond its subset"); \
    return 0;                                                                     \
  }
TROUPE_NO_WARPS(__shfl_sync)
TROUPE_NO_WARPS(__shfl_up_sync)
TROUPE_NO_WARPS(__shfl_down_sync)
TROUPE_NO_WARPS(__shfl_xor_sync)
TROUPE_NO_WARPS(__ballot_sync)
TROUPE_NO_WARPS(__any_sync)
TROUPE_NO_WARPS(__all_sync)
TROUPE_NO_WARPS(__syncwarp)
TROUPE_NO_WARPS(__activemask)
TROUPE_NO_WARPS(__match_any_sync)
TROUPE_NO_WARPS(__reduce_add_sync)
#undef TROUPE_NO_WARPS

// The kernels of an image: troupe-compile writes one line for each behind the program's source.

namespace troupe_kernel {

template <class T>
T loaded(const void* from) {
  alignas(T) unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  return *reinterpret_cast<T*>(bytes);
}

template <auto kernel>
struct Caller;
template <class... P, void (*kernel)(P...)>
struct Caller<kernel> {
  static constexpr unsigned kSizes[] = {sizeof(P)..., 0};
  static void run(void* const* arguments) { call(arguments, std::index_sequence_for<P...>()); }
  static constexpr Entry entry(const char* name) { return {name, &run, kSizes, sizeof...(P)}; }

 private:
  template <std::size_t... i>
  static void call([[maybe_unused]] void* const* arguments, std::index_sequence<i...>) {
    kernel(loaded<P>(arguments[i])...);
  }
};

inline void enter(Block* block) {
  current = block;
}

}  // namespace troupe_kernel
