#pragma once

#include <troupe/lib/blas/types.hpp>

/// BLAS level 3 (reference: https://www.netlib.org/blas) and what cuBLAS has beside it: geam, dgmm
/// and conversions of packed matrices. Column-major.
namespace troupe::blas {

/// C = alpha op(A) op(B) + beta C, op(A) being m x k, op(B) k x n, C m x n
struct Gemm {
  static constexpr std::string_view kName = "blas.gemm";
  static constexpr DTypes kDTypes = kNumbersAndNarrow;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;  ///< of scalar_type(dtype)
  Operand a, b, c;

  static constexpr std::array kOperands{read("alpha", &Gemm::alpha), read("beta", &Gemm::beta),
                                        read("a", &Gemm::a), read("b", &Gemm::b),
                                        update("c", &Gemm::c)};
  Result<void> check() const;
  /// With beta = 0 given by value, what stood in c is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &c && beta.is_zero(scalar_type(dtype)) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(dtype) : 0;
  }
};

/// C = alpha A B + beta C (left) or alpha B A + beta C (right), A being symmetric or Hermitian, B
/// and C m x n
struct Symm {
  static constexpr std::string_view kName = "blas.symm";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Symmetry symmetry{};
  Side side{};
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;
  Operand a, b, c;

  static constexpr std::array kOperands{read("alpha", &Symm::alpha), read("beta", &Symm::beta),
                                        read("a", &Symm::a), read("b", &Symm::b),
                                        update("c", &Symm::c)};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &c && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(dtype) : 0;
  }
};

/// One half of C = alpha op(A) op(A)^T + beta C (syrk), or with ^H and real scalars (herk); op(A)
/// is n x k
struct Syrk {
  static constexpr std::string_view kName = "blas.syrk";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Symmetry symmetry{};
  Uplo uplo{};
  Transpose transpose{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, k = 0, lda = 0, ldc = 0;
  Scalar alpha, beta;
  Operand a, c;

  static constexpr std::array kOperands{read("alpha", &Syrk::alpha), read("beta", &Syrk::beta),
                                        read("a", &Syrk::a), update("c", &Syrk::c)};
  Result<void> check() const;
};

/// One half of C = alpha op(A) op(B)^T + alpha op(B) op(A)^T + beta C (syr2k), or with ^H,
/// conj(alpha) in the second product and a real beta (her2k). `one`: the first product only, which
/// the caller knows to be symmetric or Hermitian (syrkx, herkx).
struct Syr2k {
  static constexpr std::string_view kName = "blas.syr2k";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;
  enum class Products : std::uint32_t { both, one };

  OpDType dtype;
  Symmetry symmetry{};
  Uplo uplo{};
  Transpose transpose{};
  Products products{};
  std::int64_t n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;
  Operand a, b, c;

  static constexpr std::array kOperands{read("alpha", &Syr2k::alpha), read("beta", &Syr2k::beta),
                                        read("a", &Syr2k::a), read("b", &Syr2k::b),
                                        update("c", &Syr2k::c)};
  Result<void> check() const;
};

/// C = alpha op(A) B (left) or alpha B op(A) (right), A being triangular, B and C m x n. C may be
/// B.
struct Trmm {
  static constexpr std::string_view kName = "blas.trmm";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Side side{};
  Uplo uplo{};
  Transpose transpose{};
  Diagonal diagonal{};
  std::int64_t m = 0, n = 0, lda = 0, ldb = 0, ldc = 0;
  Scalar alpha;
  Operand a, b, c;

  static constexpr std::array kOperands{read("alpha", &Trmm::alpha), read("a", &Trmm::a),
                                        read("b", &Trmm::b), write("c", &Trmm::c)};
  static constexpr auto kInPlace = std::array{InPlace{"b", "c"}};  ///< with ldb = ldc
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(dtype) : 0;
  }
};

/// B = the X of op(A) X = alpha B (left) or X op(A) = alpha B (right), A being triangular, B m x n.
/// Nothing tests whether A is singular.
struct Trsm {
  static constexpr std::string_view kName = "blas.trsm";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Side side{};
  Uplo uplo{};
  Transpose transpose{};
  Diagonal diagonal{};
  std::int64_t m = 0, n = 0, lda = 0, ldb = 0;
  Scalar alpha;
  Operand a, b;

  static constexpr std::array kOperands{read("alpha", &Trsm::alpha), read("a", &Trsm::a),
                                        update("b", &Trsm::b)};
  Result<void> check() const;
};

/// C = alpha op(A) + beta op(B), C being m x n. C may be A or B where that is not transposed.
struct Geam {
  static constexpr std::string_view kName = "blas.geam";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, lda = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;
  Operand a, b, c;

  static constexpr std::array kOperands{read("alpha", &Geam::alpha), read("beta", &Geam::beta),
                                        read("a", &Geam::a), read("b", &Geam::b),
                                        write("c", &Geam::c)};
  static constexpr auto kInPlace = std::array{InPlace{"a", "c"}, InPlace{"b", "c"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(dtype) : 0;
  }
};

/// C = diag(x) A (left) or A diag(x) (right), A and C being m x n. C may be A.
struct Dgmm {
  static constexpr std::string_view kName = "blas.dgmm";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Side side{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, incx = 1, ldc = 0;
  Operand a, x, c;

  static constexpr std::array kOperands{read("a", &Dgmm::a), read("x", &Dgmm::x),
                                        write("c", &Dgmm::c)};
  static constexpr auto kInPlace = std::array{InPlace{"a", "c"}};  ///< with lda = ldc
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(dtype) : 0;
  }
};

/// One half of an n x n matrix from packed to full storage. n is below 2^31.
struct Tpttr {
  static constexpr std::string_view kName = "blas.tpttr";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand packed, a;

  static constexpr std::array kOperands{read("packed", &Tpttr::packed), update("a", &Tpttr::a)};
  Result<void> check() const;
};

/// The same from full to packed storage.
struct Trttp {
  static constexpr std::string_view kName = "blas.trttp";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, packed;

  static constexpr std::array kOperands{read("a", &Trttp::a), write("packed", &Trttp::packed)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(packed_size(n)) * size_of(dtype);
  }
};

}  // namespace troupe::blas

namespace troupe {

/// The extents and layouts of a product of matrices in plain buffers.
struct GemmOptions {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  ///< 0: the number of rows of A, B, C as stored
  blas::Transpose transpose_a = blas::Transpose::no, transpose_b = blas::Transpose::no;
};

namespace detail {
/// All of an operation like Gemm but its matrices.
template <class Op>
Op of_shape(DType dtype, const GemmOptions& shape, const Scalar& alpha, const Scalar& beta) {
  Op op;
  op.dtype = dtype;
  op.transpose_a = shape.transpose_a, op.transpose_b = shape.transpose_b;
  op.m = shape.m, op.n = shape.n, op.k = shape.k;
  const auto leading = [](std::int64_t given, std::int64_t rows) {
    return given != 0 ? given : std::max<std::int64_t>(1, rows);
  };
  op.lda = leading(shape.lda, shape.transpose_a == blas::Transpose::no ? shape.m : shape.k);
  op.ldb = leading(shape.ldb, shape.transpose_b == blas::Transpose::no ? shape.k : shape.n);
  op.ldc = leading(shape.ldc, shape.m);
  op.alpha = alpha, op.beta = beta;
  return op;
}
}  // namespace detail

/// Level 3 of BasicBlas, with the names and the order of arguments of BLAS.
template <class Refs>
class BlasLevel3 : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using Matrix = MatrixRef<Ref<T>>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

  /// C = alpha op(A) op(B) + beta C; also f16 and bf16
  template <class T>
  requires FieldElement<T> || NarrowElement<T> Future<void> gemm(
      const Ref<T>& a, const Ref<T>& b, const Ref<T>& c, const GemmOptions& shape,
      ScalarArgument<ScalarTypeOf<T>> alpha = ScalarTypeOf<T>(1),
      ScalarArgument<ScalarTypeOf<T>> beta = ScalarTypeOf<T>(0))
  const {
    auto op = detail::of_shape<blas::Gemm>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.a = a.operand(), op.b = b.operand(), op.c = c.operand();
    return detail::submit(*submitter_, op);
  }
  template <class T>
  requires FieldElement<T> || NarrowElement<T> Future<void> gemm(
      blas::Transpose transpose_a, blas::Transpose transpose_b,
      ScalarArgument<ScalarTypeOf<T>> alpha, const Matrix<T>& a, const Matrix<T>& b,
      ScalarArgument<ScalarTypeOf<T>> beta, const Matrix<T>& c)
  const {
    const bool plain = transpose_a == blas::Transpose::no;
    auto op = of_matrices<blas::Gemm>(a, c);
    op.transpose_a = transpose_a, op.transpose_b = transpose_b;
    op.k = plain ? a.columns : a.rows;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    add_b(op, b);
    return detail::submit_exact(
        *submitter_, op,
        {rows("op(a)", a, transpose_a, c.rows), rows("op(b)", b, transpose_b, op.k),
         columns("op(b)", b, transpose_b, c.columns)});
  }

  /// C = alpha A B + beta C (left), alpha B A + beta C (right) of a symmetric A
  template <FieldElement T>
  Future<void> symm(blas::Side side, blas::Uplo uplo, ScalarArgument<T> alpha, const Matrix<T>& a,
                    const Matrix<T>& b, ScalarArgument<T> beta, const Matrix<T>& c) const {
    return symmetric(blas::Symmetry::symmetric, side, uplo, alpha, a, b, beta, c);
  }
  /// The same for a Hermitian A.
  template <ComplexElement T>
  Future<void> hemm(blas::Side side, blas::Uplo uplo, ScalarArgument<T> alpha, const Matrix<T>& a,
                    const Matrix<T>& b, ScalarArgument<T> beta, const Matrix<T>& c) const {
    return symmetric(blas::Symmetry::hermitian, side, uplo, alpha, a, b, beta, c);
  }
  /// One half of C = alpha op(A) op(A)^T + beta C
  template <FieldElement T>
  Future<void> syrk(blas::Uplo uplo, blas::Transpose transpose, ScalarArgument<T> alpha,
                    const Matrix<T>& a, ScalarArgument<T> beta, const Matrix<T>& c) const {
    return rank_k(blas::Symmetry::symmetric, uplo, transpose, alpha.wire(), a, beta.wire(), c);
  }
  /// One half of C = alpha op(A) op(A)^H + beta C
  template <ComplexElement T>
  Future<void> herk(blas::Uplo uplo, blas::Transpose transpose, ScalarArgument<RealOf<T>> alpha,
                    const Matrix<T>& a, ScalarArgument<RealOf<T>> beta, const Matrix<T>& c) const {
    return rank_k(blas::Symmetry::hermitian, uplo, transpose, alpha.wire(), a, beta.wire(), c);
  }
  /// One half of C = alpha op(A) op(B)^T + alpha op(B) op(A)^T + beta C
  template <FieldElement T>
  Future<void> syr2k(blas::Uplo uplo, blas::Transpose transpose, ScalarArgument<T> alpha,
                     const Matrix<T>& a, const Matrix<T>& b, ScalarArgument<T> beta,
                     const Matrix<T>& c) const {
    return rank_2k(blas::Syr2k::Products::both, blas::Symmetry::symmetric, uplo, transpose,
                   alpha.wire(), a, b, beta.wire(), c);
  }
  /// One half of C = alpha op(A) op(B)^H + conj(alpha) op(B) op(A)^H + beta C
  template <ComplexElement T>
  Future<void> her2k(blas::Uplo uplo, blas::Transpose transpose, ScalarArgument<T> alpha,
                     const Matrix<T>& a, const Matrix<T>& b, ScalarArgument<RealOf<T>> beta,
                     const Matrix<T>& c) const {
    return rank_2k(blas::Syr2k::Products::both, blas::Symmetry::hermitian, uplo, transpose,
                   alpha.wire(), a, b, beta.wire(), c);
  }
  /// One half of C = alpha op(A) op(B)^T + beta C, which the caller knows to be symmetric
  template <FieldElement T>
  Future<void> syrkx(blas::Uplo uplo, blas::Transpose transpose, ScalarArgument<T> alpha,
                     const Matrix<T>& a, const Matrix<T>& b, ScalarArgument<T> beta,
                     const Matrix<T>& c) const {
    return rank_2k(blas::Syr2k::Products::one, blas::Symmetry::symmetric, uplo, transpose,
                   alpha.wire(), a, b, beta.wire(), c);
  }
  /// One half of C = alpha op(A) op(B)^H + beta C, which the caller knows to be Hermitian
  template <ComplexElement T>
  Future<void> herkx(blas::Uplo uplo, blas::Transpose transpose, ScalarArgument<T> alpha,
                     const Matrix<T>& a, const Matrix<T>& b, ScalarArgument<RealOf<T>> beta,
                     const Matrix<T>& c) const {
    return rank_2k(blas::Syr2k::Products::one, blas::Symmetry::hermitian, uplo, transpose,
                   alpha.wire(), a, b, beta.wire(), c);
  }

  /// C = alpha op(A) B (left), alpha B op(A) (right) of a triangular A; C may be B
  template <FieldElement T>
  Future<void> trmm(blas::Side side, blas::Uplo uplo, blas::Transpose transpose,
                    blas::Diagonal diagonal, ScalarArgument<T> alpha, const Matrix<T>& a,
                    const Matrix<T>& b, const Matrix<T>& c) const {
    auto op = triangular<blas::Trmm>(side, uplo, transpose, diagonal, alpha, a, b);
    op.ldc = c.leading, op.c = c.buffer.operand();
    return detail::submit_exact(
        *submitter_, op,
        {order(a, side, b), rows("c", c, kNo, b.rows), columns("c", c, kNo, b.columns), square(a)});
  }
  /// The X of op(A) X = alpha B (left), X op(A) = alpha B (right); it replaces B
  template <FieldElement T>
  Future<void> trsm(blas::Side side, blas::Uplo uplo, blas::Transpose transpose,
                    blas::Diagonal diagonal, ScalarArgument<T> alpha, const Matrix<T>& a,
                    const Matrix<T>& b) const {
    const auto op = triangular<blas::Trsm>(side, uplo, transpose, diagonal, alpha, a, b);
    return detail::submit_exact(*submitter_, op, {order(a, side, b), square(a)});
  }
  /// C = alpha op(A) + beta op(B); C may be what is not transposed of A and B
  template <FieldElement T>
  Future<void> geam(blas::Transpose transpose_a, blas::Transpose transpose_b,
                    ScalarArgument<T> alpha, const Matrix<T>& a, ScalarArgument<T> beta,
                    const Matrix<T>& b, const Matrix<T>& c) const {
    auto op = of_matrices<blas::Geam>(a, c);
    op.transpose_a = transpose_a, op.transpose_b = transpose_b;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    add_b(op, b);
    return detail::submit_exact(
        *submitter_, op,
        {rows("op(a)", a, transpose_a, c.rows), columns("op(a)", a, transpose_a, c.columns),
         rows("op(b)", b, transpose_b, c.rows), columns("op(b)", b, transpose_b, c.columns)});
  }
  /// C = diag(x) A (left), A diag(x) (right); C may be A
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> dgmm(blas::Side side, const Matrix<T>& a, const X& x,
                                                   const Matrix<T>& c)
  const {
    const auto u = detail::vector_of(x);
    auto op = of_matrices<blas::Dgmm>(a, c);
    op.side = side, op.incx = u.increment, op.x = u.buffer.operand();
    return detail::submit_exact(*submitter_, op,
                                {rows("a", a, kNo, c.rows),
                                 columns("a", a, kNo, c.columns),
                                 {"x", u.length, side == blas::Side::left ? c.rows : c.columns}});
  }
  /// The half of a from its packed form.
  template <FieldElement T>
  Future<void> tpttr(blas::Uplo uplo, const Ref<T>& packed, const Matrix<T>& a) const {
    const blas::Tpttr op{dtype_of<T>,       uplo, 0, a.rows, a.leading, packed.operand(),
                         a.buffer.operand()};
    return detail::submit_exact(*submitter_, op, {square(a)});
  }
  /// The packed form of the half of a.
  template <FieldElement T>
  Future<void> trttp(blas::Uplo uplo, const Matrix<T>& a, const Ref<T>& packed) const {
    const blas::Trttp op{dtype_of<T>,     uplo, 0, a.rows, a.leading, a.buffer.operand(),
                         packed.operand()};
    return detail::submit_exact(*submitter_, op, {square(a)});
  }

 private:
  static constexpr auto kNo = blas::Transpose::no;

  template <class M>
  static detail::Length rows(std::string_view name, const M& matrix, blas::Transpose transpose,
                             std::int64_t needed) {
    return {name, transpose == kNo ? matrix.rows : matrix.columns, needed};
  }
  template <class M>
  static detail::Length columns(std::string_view name, const M& matrix, blas::Transpose transpose,
                                std::int64_t needed) {
    return {name, transpose == kNo ? matrix.columns : matrix.rows, needed};
  }
  template <class M>
  static detail::Length square(const M& a) {
    return {"a column of a square matrix", a.rows, a.columns};
  }
  /// A square matrix that stands on a side of b.
  template <class M>
  static detail::Length order(const M& a, blas::Side side, const M& b) {
    return {"a", a.rows, side == blas::Side::left ? b.rows : b.columns};
  }
  template <class Op, class M>
  static Op of_matrices(const M& a, const M& c) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>;
    op.m = c.rows, op.n = c.columns, op.lda = a.leading, op.ldc = c.leading;
    op.a = a.buffer.operand(), op.c = c.buffer.operand();
    return op;
  }
  template <class Op, class M>
  static void add_b(Op& op, const M& b) {
    op.ldb = b.leading, op.b = b.buffer.operand();
  }
  template <class F, class M>
  Future<void> symmetric(blas::Symmetry symmetry, blas::Side side, blas::Uplo uplo, const F& alpha,
                         const M& a, const M& b, const F& beta, const M& c) const {
    auto op = of_matrices<blas::Symm>(a, c);
    op.symmetry = symmetry, op.side = side, op.uplo = uplo;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    add_b(op, b);
    return detail::submit_exact(
        *submitter_, op,
        {order(a, side, c), square(a), rows("b", b, kNo, c.rows), columns("b", b, kNo, c.columns)});
  }
  template <class M>
  Future<void> rank_k(blas::Symmetry symmetry, blas::Uplo uplo, blas::Transpose transpose,
                      const Scalar& alpha, const M& a, const Scalar& beta, const M& c) const {
    const blas::Syrk op{dtype_of<typename M::value_type>,
                        symmetry,
                        uplo,
                        transpose,
                        0,
                        c.columns,
                        transpose == kNo ? a.columns : a.rows,
                        a.leading,
                        c.leading,
                        alpha,
                        beta,
                        a.buffer.operand(),
                        c.buffer.operand()};
    return detail::submit_exact(*submitter_, op, {rows("op(a)", a, transpose, c.rows), square(c)});
  }
  template <class M>
  Future<void> rank_2k(blas::Syr2k::Products products, blas::Symmetry symmetry, blas::Uplo uplo,
                       blas::Transpose transpose, const Scalar& alpha, const M& a, const M& b,
                       const Scalar& beta, const M& c) const {
    blas::Syr2k op;
    op.dtype = dtype_of<typename M::value_type>;
    op.symmetry = symmetry, op.uplo = uplo, op.transpose = transpose, op.products = products;
    op.n = c.columns, op.k = transpose == kNo ? a.columns : a.rows;
    op.lda = a.leading, op.ldc = c.leading;
    op.alpha = alpha, op.beta = beta;
    op.a = a.buffer.operand(), op.c = c.buffer.operand();
    add_b(op, b);
    return detail::submit_exact(
        *submitter_, op,
        {rows("op(a)", a, transpose, c.rows), rows("op(b)", b, transpose, c.rows),
         columns("op(b)", b, transpose, op.k), square(c)});
  }
  /// Trmm or Trsm, without what only one of them has.
  template <class Op, class F, class M>
  static Op triangular(blas::Side side, blas::Uplo uplo, blas::Transpose transpose,
                       blas::Diagonal diagonal, const F& alpha, const M& a, const M& b) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>;
    op.side = side, op.uplo = uplo, op.transpose = transpose, op.diagonal = diagonal;
    op.m = b.rows, op.n = b.columns, op.lda = a.leading;
    op.alpha = alpha.wire();
    op.a = a.buffer.operand();
    add_b(op, b);
    return op;
  }
};

}  // namespace troupe
