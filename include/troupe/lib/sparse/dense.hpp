#pragma once

#include <troupe/lib/sparse/form.hpp>

/// Products of sparse matrices with dense ones.
namespace troupe::sparse {

/// C = alpha op(A) B + beta C, A being a sparse matrix in any format but sliced ELL (see Form for
/// its buffers), B and C dense with n columns: B has as many rows as op(A) has columns, C as many
/// as op(A) has rows. B and C are column- or row-major, each for itself. The elements of a row or
/// column of A may stand in any order.
///
/// The same inputs give the same bits in every run. For a transposed A, and for a plain one in csc,
/// the cuda engine caches where the elements of each column are, by the buffers and the form of A:
/// the values may change between calls. It takes two or three indices of device memory per element,
/// or per block.
///
/// cuda engine: own kernels, because cuSPARSE has no algorithm for CSR before 12.7, and none for a
/// transposed matrix, that gives the same bits in every run. cpu engine: all threads share the rows
/// of C, or its columns where A is gone through against the order of its elements, with the same
/// bits for any number of threads.
struct Spmm {
  static constexpr std::string_view kName = "sparse.spmm";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  blas::Transpose transpose_a{};
  blas::Order order_b{}, order_c{};
  std::uint8_t reserved[2] = {};
  Form a;
  std::int64_t n = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;
  Operand outer, inner, value, b, c;

  static constexpr std::array kOperands{read("alpha", &Spmm::alpha), read("beta", &Spmm::beta),
                                        read("outer", &Spmm::outer), read("inner", &Spmm::inner),
                                        read("value", &Spmm::value), read("b", &Spmm::b),
                                        update("c", &Spmm::c)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::int64_t rows_of_c() const noexcept {
    return transpose_a == blas::Transpose::no ? a.rows : a.columns;
  }
  [[nodiscard]] std::int64_t rows_of_b() const noexcept {
    return transpose_a == blas::Transpose::no ? a.columns : a.rows;
  }
  /// With beta = 0 given by value, what stood in C is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &c && beta.is_zero(dtype) ? Access::write : declared;
  }
  /// All of C if there are no gaps in it.
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    const bool whole = ldc == (order_c == blas::Order::column ? rows_of_c() : n);
    return whole ? static_cast<std::uint64_t>(rows_of_c() * n) * size_of(dtype) : 0;
  }
};

/// C = alpha (op(A) op(B)) o spy(C) + beta C: of the product of two dense matrices the elements
/// that the sparse matrix C has, which is in csr or bsr (see Form for its buffers); op(A) has `k`
/// columns. Only the values of C are written. op is the matrix itself or its transpose. A and B are
/// column- or row-major, each for itself. k is at least 1.
///
/// The same inputs give the same bits in every run. cuda engine: cusparseSDDMM for csr, an own
/// kernel for bsr, of blocks of any extent.
struct Sddmm {
  static constexpr std::string_view kName = "sparse.sddmm";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  blas::Transpose transpose_a{}, transpose_b{};
  blas::Order order_a{}, order_b{};
  std::uint8_t reserved[6] = {};
  Form c;
  std::int64_t k = 0, lda = 0, ldb = 0;
  Scalar alpha, beta;
  Operand outer, inner, a, b, value;

  static constexpr std::array kOperands{read("alpha", &Sddmm::alpha),  read("beta", &Sddmm::beta),
                                        read("outer", &Sddmm::outer),  read("inner", &Sddmm::inner),
                                        read("a", &Sddmm::a),          read("b", &Sddmm::b),
                                        update("value", &Sddmm::value)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  /// With beta = 0 given by value, the values of C are not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &value && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(c.stored) * size_of(dtype);
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// What SparseProducts::spmm() does beside multiplying.
struct SpmmOptions {
  blas::Transpose transpose_a = blas::Transpose::no;
  blas::Order order_b = blas::Order::column, order_c = blas::Order::column;
};

/// What SparseProducts::sddmm() does beside multiplying.
struct SddmmOptions {
  blas::Transpose transpose_a = blas::Transpose::no, transpose_b = blas::Transpose::no;
  blas::Order order_a = blas::Order::column, order_b = blas::Order::column;
};

/// Products of a sparse matrix with dense ones. Errors: invalid, those of any command.
template <class Refs>
class SparseProducts : public detail::Calls {
 public:
  using Calls::Calls;
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;

  /// C = op(A) B: see sparse::Spmm. `a`: a CsrMatrix, CscMatrix, CooMatrix, BsrMatrix,
  /// BlockedEllMatrix or SparseRef. blas::row_major() gives row-major matrices.
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> spmm(const Matrix& a, const MatrixRef<Ref<T>>& b, const MatrixRef<Ref<T>>& c,
                    const SpmmOptions& options = {}) const {
    return spmm(ScalarArgument<T>(T(1)), a, b, ScalarArgument<T>(T(0)), c, options);
  }
  /// C = alpha op(A) B + beta C
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> spmm(ScalarArgument<T> alpha, const Matrix& a, const MatrixRef<Ref<T>>& b,
                    ScalarArgument<T> beta, const MatrixRef<Ref<T>>& c,
                    const SpmmOptions& options = {}) const {
    sparse::Spmm op;
    op.dtype = dtype_of<T>, op.transpose_a = options.transpose_a;
    op.order_b = options.order_b, op.order_c = options.order_c;
    op.a = sparse::form_of(a);
    op.n = c.columns, op.ldb = b.leading, op.ldc = c.leading;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.outer = sparse::outer_of(a).operand(), op.inner = sparse::inner_of(a).operand();
    op.value = a.value.operand(), op.b = b.buffer.operand(), op.c = c.buffer.operand();
    const auto [outer, inner, value] = sparse::lengths_of(op.a, a);
    return detail::submit_exact(*submitter_, op,
                                {outer,
                                 inner,
                                 value,
                                 {"b, in rows,", b.rows, op.rows_of_b()},
                                 {"b, in columns,", b.columns, c.columns},
                                 {"c, in rows,", c.rows, op.rows_of_c()}});
  }

  /// The values of c = those of op(A) op(B) where c has elements: see sparse::Sddmm. `c`: a
  /// CsrMatrix, BsrMatrix or SparseRef.
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> sddmm(const MatrixRef<Ref<T>>& a, const MatrixRef<Ref<T>>& b, const Matrix& c,
                     const SddmmOptions& options = {}) const {
    return sddmm(ScalarArgument<T>(T(1)), a, b, ScalarArgument<T>(T(0)), c, options);
  }
  /// The values of c = alpha op(A) op(B) + beta c, where c has elements.
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> sddmm(ScalarArgument<T> alpha, const MatrixRef<Ref<T>>& a,
                     const MatrixRef<Ref<T>>& b, ScalarArgument<T> beta, const Matrix& c,
                     const SddmmOptions& options = {}) const {
    const bool plain_a = options.transpose_a == blas::Transpose::no;
    const bool plain_b = options.transpose_b == blas::Transpose::no;
    sparse::Sddmm op;
    op.dtype = dtype_of<T>;
    op.transpose_a = options.transpose_a, op.transpose_b = options.transpose_b;
    op.order_a = options.order_a, op.order_b = options.order_b;
    op.c = sparse::form_of(c);
    op.k = plain_a ? a.columns : a.rows, op.lda = a.leading, op.ldb = b.leading;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.outer = sparse::outer_of(c).operand(), op.inner = sparse::inner_of(c).operand();
    op.a = a.buffer.operand(), op.b = b.buffer.operand(), op.value = c.value.operand();
    const auto [outer, inner, value] = sparse::lengths_of(op.c, c);
    return detail::submit_exact(
        *submitter_, op,
        {outer,
         inner,
         value,
         {"op(a), in rows,", plain_a ? a.rows : a.columns, op.c.rows},
         {"op(b), in rows,", plain_b ? b.rows : b.columns, op.k},
         {"op(b), in columns,", plain_b ? b.columns : b.rows, op.c.columns}});
  }
};

}  // namespace troupe
