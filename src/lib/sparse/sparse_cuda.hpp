#pragma once

#include <array>
#include <bit>
#include <complex>
#include <cstdint>
#include <list>

#include <troupe/lib/sparse.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/sparse/descriptors_cuda.hpp"
#include "lib/sparse/spgemm_cuda.hpp"
#include "lib/sparse/status_cuda.hpp"
#include "lib/sparse/transposition_cuda.hpp"
#include "lib/sparse/triangular_cuda.hpp"

namespace troupe::host::cuda {

/// Calls f(I{}) for i32 or i64.
template <class F>
Result<void> with_index(DType dtype, F&& f) {
  return dtype == DType::i32 ? f(std::int32_t{}) : f(std::int64_t{});
}

template <class T>
kernels::ScalarValue<Native<T>> native_scalar(const Scalar& its_scalar, const Call& call) {
  const auto value = scalar<T>(its_scalar, call);
  return {reinterpret_cast<const Native<T>*>(value.device), std::bit_cast<Native<T>>(value.value)};
}

/// What cuSPARSE has prepared for one matrix, and everything that it depends on. Buffer and
/// generation stand for the contents: another matrix at the same address is another matrix.
struct PreparedMatrix {
  struct Key {
    const void *offsets, *column, *value;  ///< offsets: of the rows in CSR, of the slices in ELL
    std::int64_t rows, columns, nonzeros;
    std::int64_t stored, slice_rows;  ///< see sparse::SpmvSell; slice_rows is 0 for CSR
    std::uint64_t offsets_contents, column_contents;
    DType dtype, index_dtype;
    bool operator==(const Key&) const = default;
  };
  Key key;
  std::array<Operand, 2> structure;  ///< offsets and columns: written anew they are another matrix
  Matrix matrix;
  DenseVector x, y;
  void* workspace = nullptr;  ///< from the stream's pool, given back in stream order
};

class Sparse final
    : public LibraryHalfOf<Sparse, sparse::Spmv, sparse::SpmvSell, sparse::Gather, sparse::Spgemm,
                           sparse::Transposition, sparse::Spmm, sparse::Sddmm, sparse::Gtsv,
                           sparse::GtsvStrided, sparse::GtsvInterleaved, sparse::GpsvInterleaved,
                           sparse::Spsv, sparse::Spsm, sparse::Geam, sparse::SpgemmReuse> {
 public:
  explicit Sparse(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuSPARSE", &cusparseGetProperty)};
  }
  ~Sparse() override;
  Result<void> open(Queue queue) override;
  /// A triangular system does where an analysis is to be made or to be brought up to date.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override;
  [[nodiscard]] bool remembers_contents() const override { return true; }
  void overwrites(const Operand& range) override;
  Result<void> run(const sparse::Spmv& op, const Call& call);
  Result<void> run(const sparse::SpmvSell& op, const Call& call);
  Result<void> run(const sparse::Gather& op, const Call& call);
  /// Waits for the stream: see sparse::Spgemm::kTraits.
  Result<void> run(const sparse::Spgemm& op, const Call& call);
  Result<void> run(const sparse::Transposition& op, const Call& call);
  Result<void> run(const sparse::Spmm& op, const Call& call);
  Result<void> run(const sparse::Sddmm& op, const Call& call);
  Result<void> run(const sparse::Gtsv& op, const Call& call);
  Result<void> run(const sparse::GtsvStrided& op, const Call& call);
  Result<void> run(const sparse::GtsvInterleaved& op, const Call& call);
  Result<void> run(const sparse::GpsvInterleaved& op, const Call& call);
  Result<void> run(const sparse::Spsv& op, const Call& call);
  Result<void> run(const sparse::Spsm& op, const Call& call);
  Result<void> run(const sparse::Geam& op, const Call& call);
  Result<void> run(const sparse::SpgemmReuse& op, const Call& call);

 private:
  struct State {
    cudaStream_t stream = nullptr;
    SparseHandle handle;
    ScalarsAt scalars = ScalarsAt::host;
    std::list<PreparedMatrix> prepared;  ///< the most recently used first
    Multiplication multiplication;
    Transpositions transpositions;
    Analyses<SolveVector> vector_analyses;
    Analyses<SolveMatrix> matrix_analyses;
    Workspace workspace;
    DeviceMemory count;  ///< std::int64_t, on its way to a result cell
  };
  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  /// Tells the handle of an open queue where the scalars of the next call are.
  static Result<void> point_at(State& state, ScalarsAt where);
  Result<PreparedMatrix*> prepare(State& state, const PreparedMatrix::Key& key, const void* alpha,
                                  const void* beta, void* x, void* y);
  /// One product, with the matrix in any form; `op` gives scalars and vectors.
  template <class Op>
  Result<void> multiply(const Op& op, const PreparedMatrix::Key& key, const Call& call);
  template <class Op>
  static auto& analyses(State& state) {
    if constexpr (std::is_same_v<Op, sparse::Spsv>) {
      return state.vector_analyses;
    } else {
      return state.matrix_analyses;
    }
  }
  template <class Op>
  bool analyses_block(const Op& op, const Call& call);
  template <class Op>
  Result<void> solve(const Op& op, const Call& call);
  void forget(State& state, std::size_t keep);
  Result<void> warm_up(Queue queue);
  Result<void> warm_up_products(const Call& call, DType index, const Operand& row_begin);

  Services& services_;
  std::array<State, 2> states_;  ///< of the lane's own queue, of its detour
};

}  // namespace troupe::host::cuda
