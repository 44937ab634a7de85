#pragma once

#include <array>
#include <complex>
#include <cstdint>

#include <troupe/lib/sparse.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/sparse/algebra/spgemm_cuda.hpp"
#include "lib/sparse/common/descriptors_cuda.hpp"
#include "lib/sparse/common/scalars_cuda.hpp"
#include "lib/sparse/common/status_cuda.hpp"
#include "lib/sparse/dense/spmm_kernels.cuh"
#include "lib/sparse/looks/checked_product.hpp"
#include "lib/sparse/spmv/prepared_cuda.hpp"
#include "lib/sparse/transpose/columns_cuda.hpp"
#include "lib/sparse/triangular/analyses_cuda.hpp"

namespace troupe::host::cuda {

/// Calls f(I{}) for i32 or i64.
template <class F>
Result<void> with_index(DType dtype, F&& f) {
  return dtype == DType::i32 ? f(std::int32_t{}) : f(std::int64_t{});
}

/// A sparse matrix as an argument of a product.
struct SparseArgument {
  const sparse::Form& form;
  blas::Transpose transpose;
  const Operand &outer, &inner, &value;
};

/// The matrix as cuSPARSE multiplies it with the same bits in every run, which it does to none that
/// is transposed; a format that it is not given to means: it does not. A transposed matrix by
/// columns is one by rows.
struct ForCusparse {
  bool has = false;
  sparse::Form form;
};
ForCusparse for_cusparse(const SparseArgument& a, DType dtype);

/// A product of a sparse matrix with a vector by cuSPARSE.
struct VectorProduct {
  SparseArgument a;
  const sparse::Form& form;  ///< as cuSPARSE gets the matrix
  const Operand &x, &y;
  const Scalar &alpha, &beta;
  DType dtype, y_dtype, sum_dtype;  ///< see PreparedMatrix
};

class Sparse;
/// See Sparse::blocks().
bool solves_block(const OperationInfo& info, const std::byte* op, const Call& call,
                  Sparse& library);

/// True if a product is to be looked at.
bool is_looked_at(const OperationInfo& info, const std::byte* op, const Call& call,
                  Sparse& library);
/// Carries a product out, and looks at it if it is to be.
Result<void> run_or_look(const sparse::Spmv& op, const Call& call, Sparse& library);
Result<void> run_or_look(const sparse::Spmm& op, const Call& call, Sparse& library);

class Sparse final : public LibraryHalfOf<Sparse, sparse::Operations> {
 public:
  explicit Sparse(Services& its_services)
      : services(its_services), looks(its_services.product_checks()) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuSPARSE", &cusparseGetProperty)};
  }
  ~Sparse() override;
  Result<void> open(Queue queue) override;
  /// A triangular system does where an analysis is to be made or to be brought up to date, and a
  /// product that is looked at.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override {
    return is_looked_at(info, op, call, *this) || solves_block(info, op, call, *this);
  }
  [[nodiscard]] bool remembers_contents() const override { return true; }
  void overwrites(const Operand& range) override;

  // For its operations.

  template <ProductThatIsLookedAt Op>
  Result<void> run(const Op& op, const Call& call) {
    return run_or_look(op, call, *this);
  }

  struct State {
    cudaStream_t stream = nullptr;
    SparseHandle handle;
    ScalarsAt scalars = ScalarsAt::host;
    PreparedMatrices prepared;
    Multiplication multiplication;
    Transpositions transpositions;
    Analyses<SolveVector> vector_analyses;
    Analyses<SolveMatrix> matrix_analyses;
    Workspace workspace;
    DeviceMemory count;  ///< std::int64_t, on its way to a result cell
  };
  [[nodiscard]] State& state(Queue queue) { return states[queue.detour ? 1 : 0]; }
  /// Tells the handle of an open queue where the scalars of the next call are.
  static Result<void> point_at(State& state, ScalarsAt where);
  template <class Op>
  static auto& analyses(State& state) {
    if constexpr (std::is_same_v<Op, sparse::Spsv>) {
      return state.vector_analyses;
    } else {
      return state.matrix_analyses;
    }
  }
  Result<void> warm_up(Queue queue);
  Result<void> warm_up_products(const Call& call, DType index, const Operand& row_begin);

  Services& services;
  ProductLooks looks;
  std::array<State, 2> states;  ///< of the lane's own queue, of its detour
};
template <class Op>
Result<void> solve(const Op& op, const Call& call, Sparse& library);
template <class Op>
bool analyses_block(const Op& op, const Call& call, Sparse& library);
/// y = alpha op(A) x + beta y by cuSPARSE: see for_cusparse().
Result<void> multiply_by_cusparse(const VectorProduct& product, const Call& call, Sparse& library);
/// C = alpha op(A) B + beta C by own kernels, for the same forms; C has elements. See
/// common/products_cuda.hpp.
template <class T, class C, class Sum>
Result<void> multiply_by_kernel(const SparseArgument& a,
                                const kernels::DenseOperands<T, C, Sum>& dense, const Call& call,
                                Sparse& library);
/// Where the elements of op(A) are; for all forms but a plain sliced ELL with elements.
template <class I>
Result<kernels::Pattern<I>> pattern_of(const SparseArgument& a, const Call& call, Sparse& library);
Result<void> warm_up_conversions(const Call& call, DType index, const Operand& row_begin,
                                 Sparse& library);
/// The elements of the product that a matrix of blocks has, by an own kernel.
Result<void> sample_by_kernel(const sparse::Sddmm& op, const Call& call, Sparse& library);

}  // namespace troupe::host::cuda
