#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"
#include "lib/blas/looks/dense_sums.hpp"

/// The looks at products of dense matrices on the cuda engine: see dense_sums.hpp. Every function
/// queues on the launch's stream and returns. Numbers of all matrices of a batch stand one behind
/// another.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_checks();

/// Writes the weights 0 to n - 1.
cudaError_t write_signs(const Launch& launch, std::int64_t n, sums::Number* signs);

/// Sums of rows. `weights` has a number for each column, for each matrix if
/// `weights_stride` is not 0. Sizes are sums of squares, or of absolute values (`lengths`).
struct RowSums {
  sums::Strided matrices;
  std::int64_t batch = 1;
  const sums::Number* weights = nullptr;
  std::int64_t weights_stride = 0;
  sums::Number* sum = nullptr;  ///< a number for each row, zeros before
  double* size = nullptr;
  bool lengths = false;
};
cudaError_t add_rows(const Launch& launch, const RowSums& sums);

/// total[i] = the sum of `count` numbers, for each of a batch; `total` is zeros before.
cudaError_t add_up(const Launch& launch, std::int64_t count, std::int64_t batch,
                   const double* number, double* total);

/// The two sides of a comparison, in device memory.
struct DenseCheck {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  const sums::Number *product = nullptr, *before = nullptr, *result = nullptr, *signs = nullptr;
  const double *a_size = nullptr, *b_size = nullptr, *before_size = nullptr, *result_size = nullptr;
  sums::Strided bias;
  /// Elements of `scalar` type: addresses in device memory, or, without one, the bytes.
  struct ScalarAt {
    const void* device = nullptr;
    unsigned char value[16] = {};
  };
  ScalarAt alpha, beta;
  sums::Stored scalar{};
  const float* factors[3] = {};  ///< nullptr: 1
  sums::Rounding rounding;
};
/// The verdict: which row is the first that is wrong, kNothingWrong if none is, and what was found
/// of it.
struct DenseVerdict {
  static constexpr unsigned long long kNothingWrong = ~0ull;
  unsigned long long first = kNothingWrong;
  sums::Judgement judged;
};
cudaError_t judge(const Launch& launch, const DenseCheck& check, DenseVerdict* verdict);

/// Makes one element of the matrices grossly wrong, and finite: for tests.
cudaError_t spoil(const Launch& launch, sums::Stored stored, void* data, std::int64_t index);

}  // namespace troupe::host::cuda::kernels
