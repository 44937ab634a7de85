#pragma once

#include <troupe/lib/sparse/form.hpp>

/// Sparse matrices as dense ones and the other way. Indices are i32 or i64 (`index_dtype`). Dense
/// matrices are column- or row-major, with a leading dimension.
///
/// cuda engine: own kernels, because cusparseDenseToSparse_analysis waits for the device.
namespace troupe::sparse {

/// The sparse matrices of these operations are in CSR, in CSC or in coordinates. Of both compressed
/// formats `offsets` has an entry more than there are rows (CSR) or columns (CSC), and `index` has
/// the column or the row of each element; of coordinates `offsets` has the row of each element, and
/// `index` its column.

/// The dense matrix of rows x columns that has these `nonzeros` elements, and is 0 elsewhere. A
/// place that occurs more than once has their sum. The rows of coordinates ascend. The cpu engine
/// leaves out elements that are outside of the matrix; the cuda engine does not look: there the
/// device may be lost.
struct SparseToDense {
  static constexpr std::string_view kName = "sparse.sparse_to_dense";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  Format format{};
  blas::Order order{};
  std::uint8_t reserved[6] = {};
  std::int64_t rows = 0, columns = 0, nonzeros = 0, leading = 0;
  Operand offsets, index, value, dense;

  static constexpr std::array kOperands{
      read("offsets", &SparseToDense::offsets), read("index", &SparseToDense::index),
      read("value", &SparseToDense::value), write("dense", &SparseToDense::dense)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  /// All of the dense matrix if there are no gaps in it.
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    const bool whole = leading == (order == blas::Order::column ? rows : columns);
    return whole ? static_cast<std::uint64_t>(rows * columns) * size_of(dtype) : 0;
  }
};

/// The same of a matrix in blocked ELL form: see BlockedEllMatrix.
struct BlockedEllToDense {
  static constexpr std::string_view kName = "sparse.blocked_ell_to_dense";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  blas::Order order{};
  std::uint8_t reserved[7] = {};
  std::int64_t rows = 0, columns = 0, block = 1, width = 0, leading = 0;
  Operand column, value, dense;

  static constexpr std::array kOperands{read("column", &BlockedEllToDense::column),
                                        read("value", &BlockedEllToDense::value),
                                        write("dense", &BlockedEllToDense::dense)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  /// All of the dense matrix if there are no gaps in it.
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    const bool whole = leading == (order == blas::Order::column ? rows : columns);
    return whole ? static_cast<std::uint64_t>(rows * columns) * size_of(dtype) : 0;
  }
};

/// The elements of a dense matrix of rows x columns that are not 0, in any of these forms. -0
/// counts as 0, a NaN does not. Rows ascend, and columns within a row; of CSC columns ascend, and
/// rows within a column.
///
/// `nonzeros` tells how many there are. The offsets of a compressed form are written in any case;
/// `index`, `value` and the rows of coordinates are written if they have room for that many,
/// `capacity`. Otherwise they stay as they are, and the command fails unless on_failure is
/// `report`. With a capacity of 0 they may be absent: the operation only counts then.
///
/// Errors, beside those of check(): invalid (there are more elements than the capacity, or more
/// than i32 indices can count).
struct DenseToSparse {
  static constexpr std::string_view kName = "sparse.dense_to_sparse";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;
  OpDType index_dtype;
  OnFailure on_failure{};
  Format format{};
  blas::Order order{};
  std::uint8_t reserved[2] = {};
  std::int64_t rows = 0, columns = 0, leading = 0, capacity = 0;
  Operand dense, offsets, index, value;
  Operand nonzeros;  ///< std::int64_t

  static constexpr std::array kOperands{
      read("dense", &DenseToSparse::dense), write("offsets", &DenseToSparse::offsets),
      write("index", &DenseToSparse::index), write("value", &DenseToSparse::value),
      write("nonzeros", &DenseToSparse::nonzeros)};
  static constexpr auto kCell = &DenseToSparse::nonzeros;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &nonzeros) return sizeof(std::int64_t);
    if (&operand != &offsets || format == Format::coo) return 0;
    return (static_cast<std::uint64_t>(format == Format::csr ? rows : columns) + 1) *
           size_of(index_dtype);
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// What SparseConversions::dense_to_sparse() is told.
struct DenseToSparseOptions {
  blas::Order order = blas::Order::column;  ///< of the dense matrix
  OnFailure on_failure = OnFailure::error;
};

/// Sparse matrices as dense ones and the other way. What is written overlaps no argument. Errors:
/// invalid, those of any command.
template <class Refs>
class SparseConversions : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  using Calls::Calls;

  /// `dense` = a: see sparse::SparseToDense. With Order::row: a matrix from blas::row_major().
  template <FieldElement T, IndexElement I>
  Future<void> sparse_to_dense(const BasicCsrMatrix<Ref<T>, Ref<I>>& a,
                               const MatrixRef<Ref<T>>& dense,
                               blas::Order order = blas::Order::column) const {
    return to_dense<T, I>(sparse::Format::csr, a, {a.row_begin, a.column}, a.rows + 1, dense,
                          order);
  }
  template <FieldElement T, IndexElement I>
  Future<void> sparse_to_dense(const BasicCscMatrix<Ref<T>, Ref<I>>& a,
                               const MatrixRef<Ref<T>>& dense,
                               blas::Order order = blas::Order::column) const {
    return to_dense<T, I>(sparse::Format::csc, a, {a.column_begin, a.row}, a.columns + 1, dense,
                          order);
  }
  template <FieldElement T, IndexElement I>
  Future<void> sparse_to_dense(const BasicCooMatrix<Ref<T>, Ref<I>>& a,
                               const MatrixRef<Ref<T>>& dense,
                               blas::Order order = blas::Order::column) const {
    return to_dense<T, I>(sparse::Format::coo, a, {a.row, a.column}, a.value.length(), dense,
                          order);
  }
  template <FieldElement T, IndexElement I>
  Future<void> sparse_to_dense(const BasicBlockedEllMatrix<Ref<T>, Ref<I>>& a,
                               const MatrixRef<Ref<T>>& dense,
                               blas::Order order = blas::Order::column) const {
    sparse::BlockedEllToDense op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>, op.order = order;
    op.rows = a.rows, op.columns = a.columns, op.block = a.block, op.width = a.width;
    op.leading = dense.leading;
    op.column = a.column.operand(), op.value = a.value.operand();
    op.dense = dense.buffer.operand();
    return detail::submit_exact(*submitter_, op,
                                {{"dense, in rows,", dense.rows, a.rows},
                                 {"dense, in columns,", dense.columns, a.columns}});
  }

  /// a = the elements of `dense` that are not 0, in the buffers of `a`: see sparse::DenseToSparse.
  /// The future's value is how many there are; they take the first so many elements of a's indices
  /// and values. A caller who does not know it guesses, passes `report`, and comes again with more
  /// room where the value is above the length of a.value. Indices and values may be null
  /// references, to count first: all but the offsets of a compressed form.
  ///
  /// Only on this rank's own device.
  template <FieldElement T, IndexElement I>
  Future<std::int64_t> dense_to_sparse(
      const MatrixRef<Ref<T>>& dense, const BasicCsrMatrix<Ref<T>, Ref<I>>& a,
      const DenseToSparseOptions& options = {}) const requires std::same_as<Refs, LocalRefs> {
    return to_sparse<T, I>(sparse::Format::csr, dense, a, {a.row_begin, a.column}, a.rows + 1,
                           options);
  }
  template <FieldElement T, IndexElement I>
  Future<std::int64_t> dense_to_sparse(
      const MatrixRef<Ref<T>>& dense, const BasicCscMatrix<Ref<T>, Ref<I>>& a,
      const DenseToSparseOptions& options = {}) const requires std::same_as<Refs, LocalRefs> {
    return to_sparse<T, I>(sparse::Format::csc, dense, a, {a.column_begin, a.row}, a.columns + 1,
                           options);
  }
  template <FieldElement T, IndexElement I>
  Future<std::int64_t> dense_to_sparse(
      const MatrixRef<Ref<T>>& dense, const BasicCooMatrix<Ref<T>, Ref<I>>& a,
      const DenseToSparseOptions& options = {}) const requires std::same_as<Refs, LocalRefs> {
    return to_sparse<T, I>(sparse::Format::coo, dense, a, {a.row, a.column}, a.value.length(),
                           options);
  }

 private:
  /// Where the elements of a matrix are, in any form.
  template <class I>
  struct Places {
    const Ref<I>&offsets, &index;
  };
  template <class T, class I, class Matrix>
  Future<void> to_dense(sparse::Format format, const Matrix& a, const Places<I>& places,
                        std::int64_t offsets, const MatrixRef<Ref<T>>& dense,
                        blas::Order order) const {
    sparse::SparseToDense op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>, op.format = format, op.order = order;
    op.rows = a.rows, op.columns = a.columns, op.nonzeros = a.value.length();
    op.leading = dense.leading;
    op.offsets = places.offsets.operand(), op.index = places.index.operand();
    op.value = a.value.operand(), op.dense = dense.buffer.operand();
    return detail::submit_exact(*submitter_, op,
                                {{"dense, in rows,", dense.rows, a.rows},
                                 {"dense, in columns,", dense.columns, a.columns},
                                 {"offsets", places.offsets.length(), offsets},
                                 {"index", places.index.length(), a.value.length()}});
  }
  template <class T, class I, class Matrix>
  Future<std::int64_t> to_sparse(sparse::Format format, const MatrixRef<Ref<T>>& dense,
                                 const Matrix& a, const Places<I>& places, std::int64_t offsets,
                                 const DenseToSparseOptions& options) const {
    sparse::DenseToSparse op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>,
    op.on_failure = sparse::when_counting(!a.value, options.on_failure);
    op.format = format, op.order = options.order;
    op.rows = a.rows, op.columns = a.columns, op.leading = dense.leading;
    op.capacity = a.value.length();
    op.dense = dense.buffer.operand(), op.offsets = places.offsets.operand();
    op.index = places.index.operand(), op.value = a.value.operand();
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_, op,
        {{"dense, in rows,", dense.rows, a.rows},
         {"dense, in columns,", dense.columns, a.columns},
         {"offsets", places.offsets.length(), offsets},
         {"index", places.index.length(), a.value.length()}});
  }
};

}  // namespace troupe
