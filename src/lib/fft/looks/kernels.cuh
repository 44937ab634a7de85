#pragma once

#include "device_host/engine/cuda/launch.hpp"
#include "lib/fft/looks/sums.hpp"

/// The looks at Fourier transforms on the cuda engine: see sums.hpp. Every function queues on
/// the launch's stream and returns.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_checks();

/// The types that numbers are stored as.
enum class FftNumber : unsigned char { f16, bf16, f32, f64 };

/// One side of a batch of transforms.
struct FftSide {
  const void* data = nullptr;
  FftNumber number{};
  bool complex = false, half = false;
  int last = 0;  ///< the last dimension
  std::int64_t batch = 0, distance = 0;
  std::int64_t extents[3] = {1, 1, 1}, pitch[3] = {};
  std::int64_t full[3] = {1, 1, 1};     ///< extents of the whole spectrum
  const sums::Number* weights[3] = {};  ///< in device memory, `full` of them
};
cudaError_t write_weights(const Launch& launch, const sums::FftWeights& of, sums::Number* weights);
/// `sums`: of each transform, zeros before.
cudaError_t add_elements(const Launch& launch, const FftSide& side, sums::FftSums* sums);

/// The first transform that is wrong, kNothingWrong if none is, and what was found of it.
struct FftVerdict {
  static constexpr unsigned long long kNothingWrong = ~0ull;
  unsigned long long first = kNothingWrong;
  sums::FftJudgement judged;
};
struct FftCheck {
  const sums::FftSums *input = nullptr, *output = nullptr;
  std::int64_t batch = 0, volume = 1;
  bool half = false, lopsided = false;
  sums::Rounding rounding;
};
cudaError_t judge(const Launch& launch, const FftCheck& check, FftVerdict* verdict);

/// Makes a number grossly wrong, and finite: for tests.
cudaError_t spoil(const Launch& launch, FftNumber number, void* data, std::int64_t index);

}  // namespace troupe::host::cuda::kernels
