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

namespace troupe::host::cuda {

/// Calls f(I{}) for i32 or i64.
template <class F>
Result<void> with_index(DType dtype, F&& f) {
  return dtype == DType::i32 ? f(std::int32_t{}) : f(std::int64_t{});
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
    : public LibraryHalfOf<
          Sparse, sparse::Spmv, sparse::SpmvSell, sparse::Gather, sparse::Spgemm,
          sparse::Transposition, sparse::Spmm, sparse::Sddmm, sparse::Gtsv, sparse::GtsvStrided,
          sparse::GtsvInterleaved, sparse::GpsvInterleaved, sparse::Scatter, sparse::Axpby,
          sparse::Rot, sparse::Spvv, sparse::Csr2Coo, sparse::Coo2Csr, sparse::CooSort,
          sparse::CsrSort, sparse::SparseToDense, sparse::BlockedEllToDense, sparse::DenseToSparse,
          sparse::Csr2Bsr, sparse::Bsr2Csr, sparse::Csr2Sell, sparse::Csr2BlockedEll> {
 public:
  explicit Sparse(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuSPARSE", &cusparseGetProperty)};
  }
  ~Sparse() override;
  Result<void> open(Queue queue) override;
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
  Result<void> run(const sparse::Scatter& op, const Call& call);
  Result<void> run(const sparse::Axpby& op, const Call& call);
  Result<void> run(const sparse::Rot& op, const Call& call);
  Result<void> run(const sparse::Spvv& op, const Call& call);
  Result<void> run(const sparse::Csr2Coo& op, const Call& call);
  Result<void> run(const sparse::Coo2Csr& op, const Call& call);
  Result<void> run(const sparse::CooSort& op, const Call& call);
  Result<void> run(const sparse::CsrSort& op, const Call& call);
  Result<void> run(const sparse::SparseToDense& op, const Call& call);
  Result<void> run(const sparse::BlockedEllToDense& op, const Call& call);
  Result<void> run(const sparse::DenseToSparse& op, const Call& call);
  Result<void> run(const sparse::Csr2Bsr& op, const Call& call);
  Result<void> run(const sparse::Bsr2Csr& op, const Call& call);
  Result<void> run(const sparse::Csr2Sell& op, const Call& call);
  Result<void> run(const sparse::Csr2BlockedEll& op, const Call& call);

 private:
  struct State {
    cudaStream_t stream = nullptr;
    SparseHandle handle;
    ScalarsAt scalars = ScalarsAt::host;
    std::list<PreparedMatrix> prepared;  ///< the most recently used first
    Multiplication multiplication;
    Transpositions transpositions;
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
  void forget(State& state, std::size_t keep);
  Result<void> warm_up(Queue queue);
  Result<void> warm_up_conversions(const Call& call, DType index, const Operand& row_begin);
  Result<void> warm_up_products(const Call& call, DType index, const Operand& row_begin);

  Services& services_;
  std::array<State, 2> states_;  ///< of the lane's own queue, of its detour
};

}  // namespace troupe::host::cuda
