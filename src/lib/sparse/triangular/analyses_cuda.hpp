#pragma once

#include <cusparse.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>

#include <troupe/lib/sparse/triangular.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"
#include "lib/sparse/common/descriptors_cuda.hpp"
#include "lib/sparse/triangular/rows_cuda.hpp"

/// Triangular systems by cuSPARSE, which analyses a matrix before it solves with it.
namespace troupe::host::cuda {

/// What is known of the systems of one queue that were solved last; Solve is SolveVector or
/// SolveMatrix.
template <class Solve>
class Analyses {
 public:
  /// Whether solve() does nothing but launch.
  [[nodiscard]] bool ready(const TriangularSystem& system) const;
  /// x = the solution for the right side b, another vector or matrix. The handle takes scalars from
  /// the host. Waits for the stream unless it is ready. Errors: out_of_memory, unsupported (a graph
  /// is recorded, and it is not ready), what cuSPARSE reports.
  Result<void> solve(Services& services, const kernels::Launch& launch, cusparseHandle_t handle,
                     const TriangularSystem& system, const std::array<Operand, 3>& matrix,
                     const void* b, void* x);
  /// Forgets the matrices whose structure is in this range, and the values that are.
  void overwrites(Services& services, const Operand& range);

 private:
  struct Analysis {
    TriangularSystem system;
    std::array<Operand, 3> operands;  ///< outer, inner, value
    bool has_values = true;           ///< those that the matrix has now
    bool recorded = false;            ///< a graph uses it
    TriangularRows rows;
    WritableMatrix matrix;
    StreamMemory memory;  ///< outlives the descriptor, which uses it
    typename Solve::Descriptor descriptor;
  };
  using Entry = std::unique_ptr<Analysis>;
  static constexpr std::size_t kMost = 8;  ///< each takes about as much memory as its matrix

  static void void_graphs(Services& services, Analysis& analysis);
  Result<void> analyse(Services& services, const kernels::Launch& launch, cusparseHandle_t handle,
                       const TriangularSystem& system, const std::array<Operand, 3>& matrix,
                       const typename Solve::Sides& sides);
  Result<void> update(Services& services, const kernels::Launch& launch, cusparseHandle_t handle);
  /// It is destroyed when what was queued with it has ended.
  Result<void> retire(Services& services, typename std::list<Entry>::iterator entry);

  std::list<Entry> entries_;       ///< the most recently used first
  cudaStream_t stream_ = nullptr;  ///< always the same
  RetiredPlans<Entry> retired_;
};

struct SpsvTraits {
  using Type = cusparseSpSVDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type descriptor) { (void)cusparseSpSV_destroyDescr(descriptor); }
};
struct SpsmTraits {
  using Type = cusparseSpSMDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type descriptor) { (void)cusparseSpSM_destroyDescr(descriptor); }
};
struct WritableDenseMatrixTraits {
  using Type = cusparseDnMatDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type matrix) { (void)cusparseDestroyDnMat(matrix); }
};

/// A vector on either side.
struct SolveVector {
  using Descriptor = Handle<SpsvTraits>;
  struct Sides {
    DenseVector b, x;
  };
  static cusparseStatus_t describe(const TriangularSystem& system, const void* b, void* x,
                                   Sides& sides);
  static cusparseStatus_t buffer_size(cusparseHandle_t handle, const TriangularSystem& system,
                                      cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                      const Descriptor& descriptor, std::size_t* bytes);
  static cusparseStatus_t analyse(cusparseHandle_t handle, const TriangularSystem& system,
                                  cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                  const Descriptor& descriptor, void* memory);
  static cusparseStatus_t update(cusparseHandle_t handle, const Descriptor& descriptor,
                                 const void* values);
  static cusparseStatus_t solve(cusparseHandle_t handle, const TriangularSystem& system,
                                cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                const Descriptor& descriptor);
  static cusparseStatus_t create(Descriptor& descriptor) {
    return cusparseSpSV_createDescr(descriptor.out());
  }
};

/// The same with matrices, both in the same order.
struct SolveMatrix {
  using Descriptor = Handle<SpsmTraits>;
  struct Sides {
    DenseMatrix b;
    Handle<WritableDenseMatrixTraits> x;
  };
  static cusparseStatus_t describe(const TriangularSystem& system, const void* b, void* x,
                                   Sides& sides);
  static cusparseStatus_t buffer_size(cusparseHandle_t handle, const TriangularSystem& system,
                                      cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                      const Descriptor& descriptor, std::size_t* bytes);
  static cusparseStatus_t analyse(cusparseHandle_t handle, const TriangularSystem& system,
                                  cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                  const Descriptor& descriptor, void* memory);
  static cusparseStatus_t update(cusparseHandle_t handle, const Descriptor& descriptor,
                                 const void* values);
  static cusparseStatus_t solve(cusparseHandle_t handle, const TriangularSystem& system,
                                cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                const Descriptor& descriptor);
  static cusparseStatus_t create(Descriptor& descriptor) {
    return cusparseSpSM_createDescr(descriptor.out());
  }
};

}  // namespace troupe::host::cuda
