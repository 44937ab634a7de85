#pragma once

#include <cstdint>

#include "lib/dnn/own/graph_kernels.cuh"
#include "lib/dnn/pointwise/numbers.hpp"

/// Kernels for functions of single elements, reductions, and gradients of instance norms. All
/// compute in f64, and always in the same order. In C++17, because kernels are compiled so.
namespace troupe::host::cuda::kernels {

/// Loads the kernels below onto the current device.
cudaError_t preload_own_numbers();

/// A function of elements: of those that its mode takes. Elements i belong together, in an order
/// that all tensors share.
struct Function {
  dnn::Mode mode{};
  dnn::numbers::Constants with{};
  Elements a, b, c, y;
};
/// Queues on the launch's stream and returns, as do those below.
cudaError_t compute_elements(const Launch& launch, std::uint64_t n, const Function& function);

/// How the elements of which each result is made are shared out. It follows from extents and
/// strides alone, so that sums are made in the same order on any device.
struct Shares {
  std::int64_t results = 1, each = 1;  ///< how many, and of how many elements each is made
  /// Parts into which the elements of each result are cut, one after another.
  std::int64_t parts = 1;
  /// How many threads of a block share a part, taking turns: a power of 2. The others work for
  /// other results.
  std::int32_t lanes = 1;
  bool results_adjoin = false;  ///< in memory, so that neighbouring threads take those
};
/// Where elements are that are reduced: number e of those of result j lies behind the place of j by
/// as much as that of e.
struct Reduced {
  Elements results, each;
};
/// Where the sums go: that of part p of result j to sums[p * results + j], or, where there is one
/// part, rounded to y.
struct Sums {
  double* sums = nullptr;
  Elements y;
};
/// Reduces x.
cudaError_t reduce_elements(const Launch& launch, dnn::ReduceOp reduction, const Shares& shares,
                            const Reduced& x, const Sums& to);
/// Reduces numbers that stand as `sums` of as many parts as `shares` has elements for each result.
cudaError_t reduce_sums(const Launch& launch, dnn::ReduceOp reduction, const Shares& shares,
                        const double* sums, const Sums& to);

/// The elements of dy and x that a norm has made together, and what it has made of them.
struct Products {
  Reduced dy, x;
  Elements mean, inverse_deviation;  ///< of the results
};
/// Adds up dy * (x - mean) * inverse_deviation.
cudaError_t add_products(const Launch& launch, const Shares& shares, const Products& products,
                         const Sums& to);

/// With n = (x - mean) * inverse_deviation, for each element:
/// dx = inverse_deviation * scale * (dy - (sum of dy + n * sum of dy * n) / count).
struct NormGradient {
  Elements dy, x, scale, mean, inverse_deviation, dx;
  Elements set;  ///< not in memory: the place of an element's sums
  const double *sums = nullptr, *products = nullptr;  ///< of dy, of dy * n
  double count = 1;                                   ///< elements of a set
};
cudaError_t norm_gradient(const Launch& launch, std::uint64_t n, const NormGradient& gradient);

}  // namespace troupe::host::cuda::kernels
