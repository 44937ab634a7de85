#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/dtype.hpp>
#include <troupe/lib/blas.hpp>
#include <troupe/ordered_fault.hpp>

namespace troupe::gemm {

/// Rows and columns.
using Pair = std::array<std::int64_t, 2>;

/// C = alpha op(A) op(B) + beta C, again and again.
struct Options {
  std::int64_t m = 0, n = 0, k = 0;  ///< op(A) is m x k, op(B) k x n
  DType dtype = DType::f64;
  blas::Transpose transpose_a = blas::Transpose::no, transpose_b = blas::Transpose::no;
  double alpha = 1, beta = 1;
  std::optional<Pair> grid;                       ///< none: one row
  std::optional<Pair> block_a, block_b, block_c;  ///< of the matrices as they are stored; none: one
                                                  ///< block for each rank
  std::int64_t panel = 0;                         ///< columns of op(A) that are sent at once
  std::int64_t repetitions = 0;
  std::int64_t commit_every = 0;
  bool test = false;  ///< compare every element with the host's
  std::uint64_t seed = 0;
  std::string json;
  std::vector<OrderedFault> faults;

  [[nodiscard]] Pair extents_a() const { return stored({m, k}, transpose_a); }
  [[nodiscard]] Pair extents_b() const { return stored({k, n}, transpose_b); }
  /// Of one product, as is usual: 2 m n k, and four times as many of complex numbers.
  [[nodiscard]] double flops() const;

 private:
  static Pair stored(const Pair& extents, blas::Transpose transpose) {
    return transpose == blas::Transpose::no ? extents : Pair{extents[1], extents[0]};
  }
};

std::vector<OptionSpec> option_specs();
/// Errors: invalid, one line that names the option.
Result<Options> parse_options(const Config& config);

/// As the options name them: "NT", "zdouble".
std::string transposes(const Options& options);
std::string type_name(DType dtype);

}  // namespace troupe::gemm
