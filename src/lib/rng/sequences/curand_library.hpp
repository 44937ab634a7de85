#pragma once

#include <cstddef>
#include <string>

namespace troupe::host::rng_numbers {

/// The part of libcurand's binary interface that is used. Loaded, not linked: the cpu engine is
/// built and runs where there is no CUDA, and most programs on GPUs need nothing of it.
struct Curand {
  using Handle = void*;
  using Status = int;
  static constexpr Status kSuccess = 0, kAllocationFailed = 102, kOutOfRange = 104;
  static constexpr int kPhilox = 161;  // CURAND_RNG_PSEUDO_PHILOX4_32_10

  Status (*create_host)(Handle* handle, int type) = nullptr;
  Status (*create)(Handle* handle, int type) = nullptr;
  Status (*destroy)(Handle handle) = nullptr;
  Status (*set_stream)(Handle handle, void* stream) = nullptr;
  Status (*set_ordering)(Handle handle, int ordering) = nullptr;
  Status (*set_dimensions)(Handle handle, unsigned dimensions) = nullptr;
  Status (*set_seed)(Handle handle, unsigned long long seed) = nullptr;
  Status (*set_offset)(Handle handle, unsigned long long offset) = nullptr;
  Status (*bits)(Handle handle, unsigned* to, std::size_t n) = nullptr;
  Status (*wide_bits)(Handle handle, unsigned long long* to, std::size_t n) = nullptr;
  Status (*uniform_f32)(Handle handle, float* to, std::size_t n) = nullptr;
  Status (*uniform_f64)(Handle handle, double* to, std::size_t n) = nullptr;
  Status (*normal_f32)(Handle handle, float* to, std::size_t n, float mean,
                       float deviation) = nullptr;
  Status (*normal_f64)(Handle handle, double* to, std::size_t n, double mean,
                       double deviation) = nullptr;
  Status (*log_normal_f32)(Handle handle, float* to, std::size_t n, float mean,
                           float deviation) = nullptr;
  Status (*log_normal_f64)(Handle handle, double* to, std::size_t n, double mean,
                           double deviation) = nullptr;
  Status (*poisson)(Handle handle, unsigned* to, std::size_t n, double mean) = nullptr;
  Status (*get_version)(int* version) = nullptr;
  bool loaded = false;
  std::string why;  ///< it is not, in the loader's words

  Curand();
};

/// Loaded at first use. Stays: its threads and handlers do not survive unloading.
const Curand& curand();

}  // namespace troupe::host::rng_numbers
