#pragma once

#include <troupe/lib/sparse/form.hpp>

/// Products of sparse matrices with vectors.
namespace troupe::sparse {

/// y = alpha op(A) x + beta y, A being a sparse matrix in any format but blocked ELL: see Form for
/// its buffers. x has as many elements as op(A) has columns, y as many as it has rows.
///
/// The same inputs give the same bits in every run. What the engine prepares for a matrix it keeps,
/// by the buffers and the form: the values may change between calls; indices that are written anew
/// are another matrix.
///
/// cuda engine: cuSPARSE for csr, coo and sell, with CUSPARSE_SPMV_CSR_ALG2, COO_ALG2 and
/// SELL_ALG1, and for a transposed csc, which is a csr. Own kernels for the others, because
/// cuSPARSE's transposed products differ from run to run. For those that go against the order of
/// the elements (transposed, or a plain csc) it caches where the elements of each column are, which
/// takes two or three indices of device memory per element. cpu engine: what goes along the order
/// of the elements on all threads, with the same bits for any number of them; the rest on one.
struct Spmv {
  static constexpr std::string_view kName = "sparse.spmv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  blas::Transpose transpose{};
  std::uint8_t reserved[4] = {};
  Form a;
  Scalar alpha, beta;
  Operand outer, inner, value, x, y;

  static constexpr std::array kOperands{read("alpha", &Spmv::alpha), read("beta", &Spmv::beta),
                                        read("outer", &Spmv::outer), read("inner", &Spmv::inner),
                                        read("value", &Spmv::value), read("x", &Spmv::x),
                                        update("y", &Spmv::y)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::int64_t length_of_x() const noexcept {
    return transpose == blas::Transpose::no ? a.columns : a.rows;
  }
  [[nodiscard]] std::int64_t length_of_y() const noexcept {
    return transpose == blas::Transpose::no ? a.rows : a.columns;
  }
  /// With beta = 0 given by value, what stood in y is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(length_of_y()) * size_of(dtype);
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// Products of a sparse matrix with vectors. Errors: invalid, those of any command.
template <class Refs>
class SparseVectorProducts : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;

  using Calls::Calls;

  /// y = alpha A x + beta y: see sparse::Spmv. `a`: a CsrMatrix, CscMatrix, CooMatrix, BsrMatrix,
  /// SellMatrix or SparseRef.
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> spmv(const Matrix& a, const Ref<T>& x, const Ref<T>& y,
                    ScalarArgument<T> alpha = T(1), ScalarArgument<T> beta = T(0)) const {
    return spmv(blas::Transpose::no, alpha, a, x, beta, y);
  }
  /// y = alpha op(A) x + beta y
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> spmv(blas::Transpose transpose, ScalarArgument<T> alpha, const Matrix& a,
                    const Ref<T>& x, ScalarArgument<T> beta, const Ref<T>& y) const {
    sparse::Spmv op;
    op.dtype = dtype_of<T>, op.transpose = transpose;
    op.a = sparse::form_of(a);
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.outer = sparse::outer_of(a).operand(), op.inner = sparse::inner_of(a).operand();
    op.value = a.value.operand(), op.x = x.operand(), op.y = y.operand();
    const auto [outer, inner, value] = sparse::lengths_of(op.a, a);
    return detail::submit_exact(*submitter_, op,
                                {outer,
                                 inner,
                                 value,
                                 {"x", x.length(), op.length_of_x()},
                                 {"y", y.length(), op.length_of_y()}});
  }
};

}  // namespace troupe
