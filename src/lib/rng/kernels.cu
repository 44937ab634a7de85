#include "lib/rng/kernels.cuh"

#include <curand_kernel.h>

#include "device_host/engine/cuda/launch.cuh"

// Random numbers on cuRAND's device interface. Its host interface is told where to begin by a call
// that blocks until the stream is empty; here the place of each number is computed.
//
// The host generator deals the sequence out to 65536 streams, in groups of four numbers: group g is
// made by stream g mod 65536 (a subsequence of the device interface). Four f32 take one step of
// their stream, of four 32-bit words; four f64 take two, but the generator's offset is turned into
// steps as if they took one. The cpu engine's Philox has the same order.

namespace troupe::host::cuda::kernels {
namespace {

constexpr std::uint64_t kGroup = 4, kStreams = 65536;

using State = curandStatePhilox4_32_10_t;

struct Bits {
  __device__ static uint4 four(State& state) { return curand4(&state); }
};
struct Uniform {
  __device__ static float4 four(State& state) { return curand_uniform4(&state); }
  __device__ static double2 two(State& state) { return curand_uniform2_double(&state); }
};
struct Normal {
  __device__ static float4 four(State& state) { return curand_normal4(&state); }
  __device__ static double2 two(State& state) { return curand_normal2_double(&state); }
};

/// What becomes of the numbers that are drawn.
struct AsDrawn {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};
/// Mean 0 and deviation 1 change nothing.
template <class T>
struct Scaled {
  T mean, deviation;
  __device__ T operator()(T x) const { return mean + deviation * x; }
};
template <class T>
struct ExpOfScaled {
  T mean, deviation;
  __device__ T operator()(T x) const { return exp(mean + deviation * x); }
};

/// The next four numbers of a stream.
template <class Distribution>
__device__ void draw(State& state, float (&four)[kGroup]) {
  const float4 made = Distribution::four(state);
  four[0] = made.x, four[1] = made.y, four[2] = made.z, four[3] = made.w;
}
template <class Distribution>
__device__ void draw(State& state, double (&four)[kGroup]) {
  const double2 first = Distribution::two(state), second = Distribution::two(state);
  four[0] = first.x, four[1] = first.y, four[2] = second.x, four[3] = second.y;
}

template <class Distribution>
__device__ void draw(State& state, std::uint32_t (&four)[kGroup]) {
  const uint4 made = Distribution::four(state);
  four[0] = made.x, four[1] = made.y, four[2] = made.z, four[3] = made.w;
}

/// destination[i] = finish(number)
template <class Distribution, class Finish, class T>
__global__ void random_kernel(std::uint64_t seed, std::uint64_t position, std::uint64_t n,
                              Finish finish, T* destination, bool packed) {
  using P = Pack<T>;
  const std::uint64_t first = position / kGroup, groups = (position + n + kGroup - 1) / kGroup;
  for (auto group = first + first_index(); group < groups; group += index_step()) {
    const std::uint64_t visits = sizeof(T) == sizeof(double) ? (group - first) / kStreams : 0;
    State state;
    curand_init(seed, group % kStreams, (group / kStreams + visits) * kGroup, &state);
    T four[kGroup];
    draw<Distribution>(state, four);
    for (T& value : four) value = finish(value);
    const auto begin = group * kGroup - position;  // wraps round in front of the first
    if (packed && begin + kGroup <= n) {
#pragma unroll
      for (int k = 0; k < static_cast<int>(kGroup); k += P::kSize)
        *reinterpret_cast<P*>(destination + begin + k) = *reinterpret_cast<const P*>(four + k);
    } else {
      for (std::uint64_t k = 0; k < kGroup; ++k) {
        if (begin + k < n) destination[begin + k] = four[k];
      }
    }
  }
}

template <class Distribution, class Finish, class T>
cudaError_t random(const Launch& launch, const RandomRange& range, Finish finish, T* destination) {
  if (range.n <= 0) return cudaSuccess;
  const auto n = static_cast<std::uint64_t>(range.n);
  const bool packed = range.position % kGroup == 0 && aligned(destination);
  return queue(launch, n / kGroup + 2, random_kernel<Distribution, Finish, T>, range.seed,
               range.position, n, finish, destination, packed);
}

}  // namespace

cudaError_t preload_rng() {
  using std::uint32_t;
  const auto status =
      load_all(random_kernel<Bits, AsDrawn, uint32_t>, random_kernel<Uniform, AsDrawn, float>,
               random_kernel<Uniform, AsDrawn, double>, random_kernel<Normal, Scaled<float>, float>,
               random_kernel<Normal, Scaled<double>, double>,
               random_kernel<Normal, ExpOfScaled<float>, float>,
               random_kernel<Normal, ExpOfScaled<double>, double>);
  return status == cudaSuccess ? preload_laws() : status;
}

cudaError_t bits(const Launch& launch, const RandomRange& range, std::uint32_t* destination) {
  return random<Bits>(launch, range, AsDrawn{}, destination);
}
template <class T>
cudaError_t uniform(const Launch& launch, const RandomRange& range, T* destination) {
  return random<Uniform>(launch, range, AsDrawn{}, destination);
}
template <class T>
cudaError_t normal(const Launch& launch, const RandomRange& range, T mean, T deviation,
                   T* destination) {
  return random<Normal>(launch, range, Scaled<T>{mean, deviation}, destination);
}
template <class T>
cudaError_t log_normal(const Launch& launch, const RandomRange& range, T mean, T deviation,
                       T* destination) {
  return random<Normal>(launch, range, ExpOfScaled<T>{mean, deviation}, destination);
}

template cudaError_t uniform(const Launch&, const RandomRange&, float*);
template cudaError_t uniform(const Launch&, const RandomRange&, double*);
template cudaError_t normal(const Launch&, const RandomRange&, float, float, float*);
template cudaError_t normal(const Launch&, const RandomRange&, double, double, double*);
template cudaError_t log_normal(const Launch&, const RandomRange&, float, float, float*);
template cudaError_t log_normal(const Launch&, const RandomRange&, double, double, double*);

}  // namespace troupe::host::cuda::kernels
