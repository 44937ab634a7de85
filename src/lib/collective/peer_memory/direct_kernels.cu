#include "lib/collective/peer_memory/direct_kernels.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstring>
#include <type_traits>

#include "common/core/extremes.hpp"
#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// Sums are computed in it: in float for narrow numbers.
template <class T>
using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <class T>
__device__ Wide<T> widened(T x) {
  return static_cast<Wide<T>>(x);
}
template <class T>
__device__ T narrowed(Wide<T> x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return T(x);
}

/// Signed integers wrap around by way of unsigned ones.
template <class W>
__device__ W sum_of(W a, W b) {
  if constexpr (std::is_integral_v<W>)
    return static_cast<W>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}
template <class W>
__device__ W product_of(W a, W b) {
  if constexpr (std::is_integral_v<W>)
    return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

template <class W>
__device__ W combined(DirectOp op, W a, W b) {
  switch (op) {
    case DirectOp::product: return product_of(a, b);
    case DirectOp::min: return smaller(a, b);
    case DirectOp::max: return larger(a, b);
    default: return sum_of(a, b);
  }
}

/// The least power of two that is not below.
__device__ int power_of_two(int ranks) {
  return ranks <= 1 ? 1 : 1 << (32 - __clz(ranks - 1));
}

/// What a rank adds to a mean, and what the sum becomes.
template <class W>
__device__ W before_mean(W x, int ranks) {
  if constexpr (std::is_integral_v<W>)
    return x;
  else
    return x / static_cast<W>(power_of_two(ranks));
}
template <class W>
__device__ W behind_mean(W x, int ranks) {
  // The number of ranks may not fit into the type.
  using Divided = std::conditional_t<std::is_signed_v<W>, std::int64_t, std::uint64_t>;
  if constexpr (std::is_integral_v<W>)
    return static_cast<W>(static_cast<Divided>(x) / static_cast<Divided>(ranks));
  else
    return x / (static_cast<W>(ranks) / static_cast<W>(power_of_two(ranks)));
}

/// The elements of a line.
template <class T>
struct alignas(kLinePayload) Elements {
  static constexpr int kCount = kLinePayload / sizeof(T);
  T at[kCount];
};

__device__ uint4 load_line(const uint4* line) {
  uint4 loaded;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(loaded.x), "=r"(loaded.y), "=r"(loaded.z), "=r"(loaded.w)
               : "l"(line)
               : "memory");
  return loaded;
}
__device__ void store_line(uint4* line, uint2 payload, std::uint32_t call) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(line), "r"(payload.x),
               "r"(call), "r"(payload.y), "r"(call)
               : "memory");
}

/// This thread's line in an inbox.
__device__ uint4* line_of(std::byte* inbox, const DirectRanks& ranks, std::uint32_t call,
                          int sender) {
  const auto slot = call % 2 * ranks.ranks + sender;
  return reinterpret_cast<uint4*>(inbox) +
         (static_cast<std::size_t>(slot) * kDirectBlocks + blockIdx.x) * kDirectLines + threadIdx.x;
}

/// Sends this rank's line to all others. By turns from the next one on, lest all send to one.
__device__ void send_line(const DirectRanks& ranks, std::uint32_t call, uint2 payload) {
  for (int i = 1; i < ranks.ranks; ++i) {
    const int peer = (ranks.rank + i) % ranks.ranks;
    std::byte* inbox = nullptr;
#pragma unroll
    for (int r = 0; r < kDirectRanks; ++r) {  // an index known late would need memory
      if (r == peer) inbox = ranks.inbox[r];
    }
    store_line(line_of(inbox, ranks, call, ranks.rank), payload, call);
  }
}

/// The lines of all ranks, `payload` being that of this one. False: given up.
__device__ bool receive_lines(const DirectRanks& ranks, std::uint32_t call, uint2 payload,
                              uint2 (&received)[kDirectRanks]) {
  // The first look at the host's memory comes after some 5 ms, and each warp has a time of its own
  // for it: to read it takes each of them half a microsecond, one after the other.
  constexpr std::uint32_t kLooks = 1024;
  constexpr std::uint32_t kEagerLooks = 8;  // without a pause
  constexpr unsigned kPauseNs = 50, kWarp = 32;
  const auto turn = (blockIdx.x * kDirectLines + threadIdx.x) / kWarp % kLooks;
  std::byte* own = nullptr;
#pragma unroll
  for (int r = 0; r < kDirectRanks; ++r) {
    if (r == ranks.rank) own = ranks.inbox[r];
  }
  uint4 lines[kDirectRanks];
#pragma unroll
  for (int r = 0; r < kDirectRanks; ++r) {  // all of them are on their way at once
    if (r < ranks.ranks && r != ranks.rank) lines[r] = load_line(line_of(own, ranks, call, r));
  }
#pragma unroll
  for (int r = 0; r < kDirectRanks; ++r) {
    if (r >= ranks.ranks) continue;
    if (r == ranks.rank) {
      received[r] = payload;
      continue;
    }
    for (std::uint32_t looks = 1; lines[r].y != call || lines[r].w != call; ++looks) {
      if (looks > kEagerLooks) __nanosleep(kPauseNs);
      if (looks >= kLooks && looks % kLooks == turn && *ranks.given_up != 0) return false;
      lines[r] = load_line(line_of(own, ranks, call, r));
    }
    received[r] = make_uint2(lines[r].x, lines[r].z);
  }
  return true;
}

template <class T>
__device__ Elements<T> combined_lines(DirectOp op, int ranks,
                                      const uint2 (&received)[kDirectRanks]) {
  Elements<T> result{};
#pragma unroll
  for (int k = 0; k < Elements<T>::kCount; ++k) {
    Wide<T> all{};
#pragma unroll
    for (int r = 0; r < kDirectRanks; ++r) {
      if (r >= ranks) continue;
      Elements<T> its;
      memcpy(&its, &received[r], sizeof its);
      auto x = widened(its.at[k]);
      if (op == DirectOp::mean) x = before_mean(x, ranks);
      all = r == 0 ? x : combined(op, all, x);
    }
    if (op == DirectOp::mean) all = behind_mean(all, ranks);
    result.at[k] = narrowed<T>(all);
  }
  return result;
}

/// The number of this block's next call.
__device__ std::uint32_t next_call(const DirectRanks& ranks) {
  const auto before = ranks.calls[blockIdx.x];
  return before == kLastCall ? kFirstCall : before + 1;
}

/// This block's call is done. All of its threads.
__device__ void end_call(const DirectRanks& ranks, std::uint32_t call) {
  if (call >= kLastCall - 1) {
    std::byte* own = nullptr;
#pragma unroll
    for (int r = 0; r < kDirectRanks; ++r) {
      if (r == ranks.rank) own = ranks.inbox[r];
    }
    for (int sender = 0; sender < ranks.ranks; ++sender) {
      auto* const line = line_of(own, ranks, call, sender) - threadIdx.x;
      for (int i = threadIdx.x; i < kDirectLines; i += blockDim.x)
        store_line(line + i, make_uint2(0, 0), 0);
    }
  }
  if (threadIdx.x == 0) ranks.calls[blockIdx.x] = call;
}

/// One warp, whose first thread sends a line without meaning and waits for those of the others.
__global__ void __launch_bounds__(32) meet_kernel(DirectRanks ranks) {
  const auto call = next_call(ranks);
  bool lost = false;
  if (threadIdx.x == 0) {
    __threadfence_system();
    send_line(ranks, call, make_uint2(0, 0));
    uint2 received[kDirectRanks];
    lost = !receive_lines(ranks, call, make_uint2(0, 0), received);
    __threadfence_system();
  }
  if (__syncthreads_or(lost ? 1 : 0) == 0) end_call(ranks, call);
}

/// With `aligned` both are at a multiple of kLinePayload.
template <class T>
__global__ void __launch_bounds__(kDirectLines)
    reduce_kernel(DirectRanks ranks, DirectOp op, std::uint64_t count, bool scaled,
                  ScalarValue<T> scalar, const T* source, T* destination, bool aligned) {
  constexpr int kCount = Elements<T>::kCount;
  const auto first = (std::uint64_t{blockIdx.x} * kDirectLines + threadIdx.x) * kCount;
  const auto call = next_call(ranks);
  const bool whole = aligned && first + kCount <= count;
  bool lost = false;
  if (first < count) {
    Elements<T> mine{};
    if (whole) {
      mine = *reinterpret_cast<const Elements<T>*>(source + first);
    } else {
      for (int k = 0; k < kCount; ++k) {
        if (first + k < count) mine.at[k] = source[first + k];
      }
    }
    if (scaled) {
      const T by = scalar.device != nullptr ? *scalar.device : scalar.value;
      for (int k = 0; k < kCount; ++k)
        mine.at[k] = narrowed<T>(product_of(widened(by), widened(mine.at[k])));
    }
    uint2 payload;
    memcpy(&payload, &mine, sizeof payload);
    send_line(ranks, call, payload);
    uint2 received[kDirectRanks];
    lost = !receive_lines(ranks, call, payload, received);
    if (!lost) {
      const auto result = combined_lines<T>(op, ranks.ranks, received);
      if (whole) {
        *reinterpret_cast<Elements<T>*>(destination + first) = result;
      } else {
        for (int k = 0; k < kCount; ++k) {
          if (first + k < count) destination[first + k] = result.at[k];
        }
      }
    }
  }
  if (__syncthreads_or(lost ? 1 : 0) == 0) end_call(ranks, call);
}

template <class... T>
cudaError_t load_for() {
  return load_all(&meet_kernel, &reduce_kernel<T>...);
}

}  // namespace

cudaError_t preload_direct() {
  return load_for<__half, __nv_bfloat16, float, double, __nv_fp8_e4m3, __nv_fp8_e5m2, std::int8_t,
                  std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>();
}

cudaError_t meet_directly(const Launch& launch, const DirectRanks& ranks) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = launch.stream;
  return cudaLaunchKernelEx(&config, meet_kernel, ranks);
}

template <class T>
cudaError_t reduce_directly(const Launch& launch, const DirectRanks& ranks, DirectOp op,
                            std::uint64_t count, bool scaled, ScalarValue<T> scalar,
                            const T* source, T* destination) {
  if (count == 0) return cudaSuccess;
  const auto both =
      reinterpret_cast<std::uintptr_t>(source) | reinterpret_cast<std::uintptr_t>(destination);
  const auto lines = (count * sizeof(T) + kLinePayload - 1) / kLinePayload;
  const auto blocks = (lines + kDirectLines - 1) / kDirectLines;
  constexpr std::uint64_t kWarp = 32;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim =
      dim3(blocks > 1 ? kDirectLines : static_cast<unsigned>((lines + kWarp - 1) / kWarp * kWarp));
  config.stream = launch.stream;
  return cudaLaunchKernelEx(&config, reduce_kernel<T>, ranks, op, count, scaled, scalar, source,
                            destination, both % kLinePayload == 0);
}

template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<__half>, const __half*, __half*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<__nv_bfloat16>, const __nv_bfloat16*,
                                     __nv_bfloat16*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<float>, const float*, float*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<double>, const double*, double*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<__nv_fp8_e4m3>, const __nv_fp8_e4m3*,
                                     __nv_fp8_e4m3*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<__nv_fp8_e5m2>, const __nv_fp8_e5m2*,
                                     __nv_fp8_e5m2*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<std::int8_t>, const std::int8_t*,
                                     std::int8_t*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<std::uint8_t>, const std::uint8_t*,
                                     std::uint8_t*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<std::int32_t>, const std::int32_t*,
                                     std::int32_t*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<std::uint32_t>, const std::uint32_t*,
                                     std::uint32_t*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<std::int64_t>, const std::int64_t*,
                                     std::int64_t*);
template cudaError_t reduce_directly(const Launch&, const DirectRanks&, DirectOp, std::uint64_t,
                                     bool, ScalarValue<std::uint64_t>, const std::uint64_t*,
                                     std::uint64_t*);

}  // namespace troupe::host::cuda::kernels
