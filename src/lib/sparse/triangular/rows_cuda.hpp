#pragma once

#include <cstdint>

#include <troupe/dtype.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"

/// Triangular matrices as cuSPARSE is given them: by rows, and not transposed.
namespace troupe::host::cuda {

/// A system of equations, and everything that its analysis depends on. Buffer and generation stand
/// for the contents.
struct TriangularSystem {
  const void *outer, *inner, *value;
  std::uint64_t outer_contents, inner_contents, value_contents;
  std::int64_t n, nonzeros;
  std::int64_t stored, slice_rows;  ///< padding included, and of sliced ELL; else 0
  std::int64_t columns, leading;    ///< of the solution; both are 0 if it is a vector
  DType dtype, index_dtype;
  bool by_place, lower, unit, row_major;
  /// The matrix that is solved with is the transpose of this one. It is made for the analysis:
  /// cuSPARSE solves with a transposed matrix in an order that differs from run to run.
  bool transposed;
  bool operator==(const TriangularSystem&) const = default;

  /// Of the right side, which has no gaps.
  [[nodiscard]] std::int64_t right_leading() const { return row_major ? columns : n; }
};

/// The matrix that is solved with, by rows, in device memory. These are the caller's arrays where
/// they do. With others cuSPARSE's results differ from run to run, or may do so: those of a list of
/// places, of a transposed matrix and of sliced ELL.
class TriangularRows {
 public:
  /// Queues what makes them. Errors: out_of_memory.
  Result<void> make(const kernels::Launch& launch, const TriangularSystem& system);
  /// Brings the values up to date with those of the caller.
  Result<void> update_values(const kernels::Launch& launch, const TriangularSystem& system);

  [[nodiscard]] void* outer() const noexcept { return outer_; }
  [[nodiscard]] void* inner() const noexcept { return inner_; }
  [[nodiscard]] void* value() const noexcept { return value_; }

 private:
  template <class I>
  Result<void> find_row_begins(const kernels::Launch& launch, const TriangularSystem& system);
  template <class I>
  Result<void> rearrange(const kernels::Launch& launch, const TriangularSystem& system);

  void *outer_ = nullptr, *inner_ = nullptr, *value_ = nullptr;
  const void* place_ = nullptr;  ///< of each element among the caller's; nullptr: the same
  StreamMemory made_;            ///< those of the arrays that are not the caller's
};

}  // namespace troupe::host::cuda
