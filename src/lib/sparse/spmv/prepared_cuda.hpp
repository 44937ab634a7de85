#pragma once

#include <array>
#include <cstdint>
#include <list>

#include <troupe/lib/sparse/form.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"
#include "lib/sparse/common/descriptors_cuda.hpp"

/// What cuSPARSE prepares for products of a matrix with vectors.
namespace troupe::host::cuda {

/// For one matrix: its descriptors, and everything that they depend on. Buffer and generation stand
/// for the contents: another matrix at the same address is another matrix.
struct PreparedMatrix {
  struct Key {
    const void *outer, *inner, *value;
    std::uint64_t outer_contents, inner_contents;
    sparse::Form form;
    DType dtype, y_dtype;  ///< of the matrix and x, of y
    DType sum_dtype;       ///< of the scalars and of what is added up
    bool operator==(const Key&) const = default;
  };
  Key key;
  std::array<Operand, 2> structure;  ///< written anew they are another matrix
  Matrix matrix;
  DenseVector x, y;
  StreamMemory workspace;

  /// For each form the one algorithm whose results are the same, bit for bit, in every run: a
  /// replay must repeat the answer.
  [[nodiscard]] cusparseSpMVAlg_t algorithm() const noexcept;
};

/// The vectors and scalars of a product.
struct VectorOperands {
  const void *alpha, *beta;
  void *x, *y;
};

/// Those of one queue that were used last.
class PreparedMatrices {
 public:
  /// What is kept for the matrix, made if it is not there, with x and y set to the given vectors.
  /// It stays until others have been asked for, or overwrites(). Errors: those of cuSPARSE;
  /// unsupported (not there while a graph is recorded).
  Result<PreparedMatrix*> find(Services& services, Queue queue, cusparseHandle_t handle,
                               const PreparedMatrix::Key& key, const VectorOperands& vectors);
  /// Forgets the matrices whose structure is in this range.
  void overwrites(Services& services, const Operand& range);
  /// Keeps the `keep` most recently used ones.
  void forget(Services& services, std::size_t keep);

 private:
  static constexpr std::size_t kMost = 64;

  std::list<PreparedMatrix> entries_;  ///< the most recently used first
};

}  // namespace troupe::host::cuda
