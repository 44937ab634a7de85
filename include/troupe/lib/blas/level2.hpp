#pragma once

#include <troupe/lib/blas/types.hpp>

/// BLAS level 2 (reference: https://www.netlib.org/blas): products of a matrix and a vector, sums
/// of a matrix and products of vectors, triangular systems. Column-major; increments of either
/// sign. Real types have no Hermitian matrices, and complex symmetric ones are stored in full.
namespace troupe::blas {

/// y = alpha op(A) x + beta y, A being m x n with leading dimension lda
struct Gemv {
  static constexpr std::string_view kName = "blas.gemv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Transpose transpose{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, incx = 1, incy = 1;
  Scalar alpha, beta;
  Operand a, x, y;

  static constexpr std::array kOperands{read("alpha", &Gemv::alpha), read("beta", &Gemv::beta),
                                        read("a", &Gemv::a), read("x", &Gemv::x),
                                        update("y", &Gemv::y)};
  Result<void> check() const;
  /// With beta = 0 given by value, what stood in y is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(dtype) ? Access::write : declared;
  }
  /// Nothing where A is empty: BLAS then leaves y as it is, whatever beta.
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    if (m == 0 || n == 0 || incy != 1) return 0;
    return static_cast<std::uint64_t>(transpose == Transpose::no ? m : n) * size_of(dtype);
  }
};

/// The same of a matrix with kl diagonals below the main one and ku above it: row ku + i - j of
/// column j of `a` holds A(i, j)
struct Gbmv {
  static constexpr std::string_view kName = "blas.gbmv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Transpose transpose{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, kl = 0, ku = 0, lda = 0, incx = 1, incy = 1;
  Scalar alpha, beta;
  Operand a, x, y;

  static constexpr std::array kOperands{read("alpha", &Gbmv::alpha), read("beta", &Gbmv::beta),
                                        read("a", &Gbmv::a), read("x", &Gbmv::x),
                                        update("y", &Gbmv::y)};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    if (m == 0 || n == 0 || incy != 1) return 0;
    return static_cast<std::uint64_t>(transpose == Transpose::no ? m : n) * size_of(dtype);
  }
};

/// y = alpha A x + beta y, A being n x n and symmetric or Hermitian: symv, sbmv and spmv, hemv,
/// hbmv and hpmv
struct Symv {
  static constexpr std::string_view kName = "blas.symv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Storage storage{};
  Symmetry symmetry{};
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;    ///< diagonals beside the main one; where banded
  std::int64_t lda = 0;  ///< unless packed
  std::int64_t incx = 1, incy = 1;
  Scalar alpha, beta;
  Operand a, x, y;

  static constexpr std::array kOperands{read("alpha", &Symv::alpha), read("beta", &Symv::beta),
                                        read("a", &Symv::a), read("x", &Symv::x),
                                        update("y", &Symv::y)};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return incy == 1 ? static_cast<std::uint64_t>(n) * size_of(dtype) : 0;
  }
};

/// A = alpha x y^T + A, or with y^H: ger, geru and gerc. A is m x n.
struct Ger {
  static constexpr std::string_view kName = "blas.ger";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Conjugate conjugate{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, incx = 1, incy = 1;
  Scalar alpha;
  Operand x, y, a;

  static constexpr std::array kOperands{read("alpha", &Ger::alpha), read("x", &Ger::x),
                                        read("y", &Ger::y), update("a", &Ger::a)};
  Result<void> check() const;
};

/// One half of A = alpha x x^T + A (syr, spr) or alpha x x^H + A (her, hpr; alpha is real)
struct Syr {
  static constexpr std::string_view kName = "blas.syr";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Storage storage{};  ///< full or packed
  Symmetry symmetry{};
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0, incx = 1;
  Scalar alpha;
  Operand x, a;

  static constexpr std::array kOperands{read("alpha", &Syr::alpha), read("x", &Syr::x),
                                        update("a", &Syr::a)};
  Result<void> check() const;
};

/// One half of A = alpha x y^T + alpha y x^T + A (syr2, spr2) or
/// alpha x y^H + conj(alpha) y x^H + A (her2, hpr2)
struct Syr2 {
  static constexpr std::string_view kName = "blas.syr2";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Storage storage{};  ///< full or packed
  Symmetry symmetry{};
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0, incx = 1, incy = 1;
  Scalar alpha;
  Operand x, y, a;

  static constexpr std::array kOperands{read("alpha", &Syr2::alpha), read("x", &Syr2::x),
                                        read("y", &Syr2::y), update("a", &Syr2::a)};
  Result<void> check() const;
};

/// x = op(A) x (trmv, tbmv, tpmv) or the solution of op(A) x' = x (trsv, tbsv, tpsv), A being n x n
/// and triangular. Nothing tests whether A is singular.
struct Trmv {
  static constexpr std::string_view kName = "blas.trmv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;
  enum class Task : std::uint32_t { multiply, solve };

  OpDType dtype;
  Task task{};
  Storage storage{};
  Uplo uplo{};
  Transpose transpose{};
  Diagonal diagonal{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;    ///< diagonals beside the main one; where banded
  std::int64_t lda = 0;  ///< unless packed
  std::int64_t incx = 1;
  Operand a, x;

  static constexpr std::array kOperands{read("a", &Trmv::a), update("x", &Trmv::x)};
  Result<void> check() const;
};

}  // namespace troupe::blas

namespace troupe {

/// The extents and layouts of a product of a matrix in a plain buffer and a vector.
struct GemvOptions {
  std::int64_t m = 0, n = 0;
  std::int64_t lda = 0;  ///< 0: m
  blas::Transpose transpose = blas::Transpose::no;
};

/// Level 2 of BasicBlas, with the names and the order of arguments of BLAS. Of a banded matrix the
/// MatrixRef tells how it is stored: a row for each diagonal. A packed one is a buffer.
template <class Refs>
class BlasLevel2 : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using Matrix = MatrixRef<Ref<T>>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

  /// y = alpha op(A) x + beta y
  template <FieldElement T>
  Future<void> gemv(const Ref<T>& a, const Ref<T>& x, const Ref<T>& y, const GemvOptions& shape,
                    ScalarArgument<T> alpha = T(1), ScalarArgument<T> beta = T(0)) const {
    return detail::submit(*submitter_,
                          blas::Gemv{dtype_of<T>, shape.transpose, 0, shape.m, shape.n,
                                     shape.lda != 0 ? shape.lda : shape.m, 1, 1, alpha.wire(),
                                     beta.wire(), a.operand(), x.operand(), y.operand()});
  }
  template <class X, class Y, FieldElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> gemv(blas::Transpose transpose,
                                                      ScalarArgument<T> alpha, const Matrix<T>& a,
                                                      const X& x, ScalarArgument<T> beta,
                                                      const Y& y)
  const {
    blas::Gemv op;
    op.m = a.rows, op.n = a.columns;
    return product(op, transpose, alpha, a, x, beta, y);
  }
  /// The matrix has a.columns columns and m rows; a.rows is kl + ku + 1.
  template <class X, class Y, FieldElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> gbmv(blas::Transpose transpose, std::int64_t m,
                                                      std::int64_t kl, std::int64_t ku,
                                                      ScalarArgument<T> alpha, const Matrix<T>& a,
                                                      const X& x, ScalarArgument<T> beta,
                                                      const Y& y)
  const {
    blas::Gbmv op;
    op.m = m, op.n = a.columns, op.kl = kl, op.ku = ku;
    return product(op, transpose, alpha, a, x, beta, y, {"a column of a", a.rows, kl + ku + 1});
  }

  /// y = alpha A x + beta y of a symmetric A
  template <class X, class Y, FieldElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> symv(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const Matrix<T>& a, const X& x,
                                                      ScalarArgument<T> beta, const Y& y)
  const { return symmetric(full(a), blas::Symmetry::symmetric, uplo, alpha, x, beta, y); }
  /// The same for a Hermitian A.
  template <class X, class Y, ComplexElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> hemv(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const Matrix<T>& a, const X& x,
                                                      ScalarArgument<T> beta, const Y& y)
  const { return symmetric(full(a), blas::Symmetry::hermitian, uplo, alpha, x, beta, y); }
  /// The same for an A with k diagonals beside the main one.
  template <class X, class Y, RealElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> sbmv(blas::Uplo uplo, std::int64_t k,
                                                      ScalarArgument<T> alpha, const Matrix<T>& a,
                                                      const X& x, ScalarArgument<T> beta,
                                                      const Y& y)
  const { return symmetric(banded(a, k), blas::Symmetry::symmetric, uplo, alpha, x, beta, y); }
  template <class X, class Y, ComplexElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> hbmv(blas::Uplo uplo, std::int64_t k,
                                                      ScalarArgument<T> alpha, const Matrix<T>& a,
                                                      const X& x, ScalarArgument<T> beta,
                                                      const Y& y)
  const { return symmetric(banded(a, k), blas::Symmetry::hermitian, uplo, alpha, x, beta, y); }
  /// The same for a packed A.
  template <class X, class Y, RealElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> spmv(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const Ref<T>& a, const X& x,
                                                      ScalarArgument<T> beta, const Y& y)
  const {
    return symmetric(packed(a, detail::vector_of(x).length), blas::Symmetry::symmetric, uplo, alpha,
                     x, beta, y);
  }
  template <class X, class Y, ComplexElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> hpmv(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const Ref<T>& a, const X& x,
                                                      ScalarArgument<T> beta, const Y& y)
  const {
    return symmetric(packed(a, detail::vector_of(x).length), blas::Symmetry::hermitian, uplo, alpha,
                     x, beta, y);
  }

  /// A = alpha x y^T + A; geru of complex numbers
  template <class X, class Y, FieldElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> ger(ScalarArgument<T> alpha, const X& x,
                                                     const Y& y, const Matrix<T>& a)
  const { return outer(blas::Conjugate::no, alpha, x, y, a); }
  /// A = alpha x y^H + A
  template <class X, class Y, ComplexElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> gerc(ScalarArgument<T> alpha, const X& x,
                                                      const Y& y, const Matrix<T>& a)
  const { return outer(blas::Conjugate::yes, alpha, x, y, a); }
  /// One half of A = alpha x x^T + A
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> syr(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                  const X& x, const Matrix<T>& a)
  const { return rank_one(full(a), blas::Symmetry::symmetric, uplo, alpha.wire(), x); }
  /// One half of A = alpha x x^H + A
  template <class X, ComplexElement T>
  requires VectorsOf<Refs, T, X> Future<void> her(blas::Uplo uplo, ScalarArgument<RealOf<T>> alpha,
                                                  const X& x, const Matrix<T>& a)
  const { return rank_one(full(a), blas::Symmetry::hermitian, uplo, alpha.wire(), x); }
  template <class X, RealElement T>
  requires VectorsOf<Refs, T, X> Future<void> spr(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                  const X& x, const Ref<T>& a)
  const {
    return rank_one(packed(a, detail::vector_of(x).length), blas::Symmetry::symmetric, uplo,
                    alpha.wire(), x);
  }
  template <class X, ComplexElement T>
  requires VectorsOf<Refs, T, X> Future<void> hpr(blas::Uplo uplo, ScalarArgument<RealOf<T>> alpha,
                                                  const X& x, const Ref<T>& a)
  const {
    return rank_one(packed(a, detail::vector_of(x).length), blas::Symmetry::hermitian, uplo,
                    alpha.wire(), x);
  }
  /// One half of A = alpha x y^T + alpha y x^T + A
  template <class X, class Y, FieldElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> syr2(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const X& x, const Y& y, const Matrix<T>& a)
  const { return rank_two(full(a), blas::Symmetry::symmetric, uplo, alpha, x, y); }
  /// One half of A = alpha x y^H + conj(alpha) y x^H + A
  template <class X, class Y, ComplexElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> her2(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const X& x, const Y& y, const Matrix<T>& a)
  const { return rank_two(full(a), blas::Symmetry::hermitian, uplo, alpha, x, y); }
  template <class X, class Y, RealElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> spr2(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const X& x, const Y& y, const Ref<T>& a)
  const {
    return rank_two(packed(a, detail::vector_of(x).length), blas::Symmetry::symmetric, uplo, alpha,
                    x, y);
  }
  template <class X, class Y, ComplexElement T>
  requires VectorsOf<Refs, T, X, Y> Future<void> hpr2(blas::Uplo uplo, ScalarArgument<T> alpha,
                                                      const X& x, const Y& y, const Ref<T>& a)
  const {
    return rank_two(packed(a, detail::vector_of(x).length), blas::Symmetry::hermitian, uplo, alpha,
                    x, y);
  }

  /// x = op(A) x; A is stored in full
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> trmv(blas::Uplo uplo, blas::Transpose transpose,
                                                   blas::Diagonal diagonal, const Matrix<T>& a,
                                                   const X& x)
  const { return triangular<T>(full(a), blas::Trmv::Task::multiply, uplo, transpose, diagonal, x); }
  /// The solution of op(A) x' = x; A is stored in full
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> trsv(blas::Uplo uplo, blas::Transpose transpose,
                                                   blas::Diagonal diagonal, const Matrix<T>& a,
                                                   const X& x)
  const { return triangular<T>(full(a), blas::Trmv::Task::solve, uplo, transpose, diagonal, x); }
  /// x = op(A) x; A has k diagonals beside the main one
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> tbmv(blas::Uplo uplo, blas::Transpose transpose,
                                                   blas::Diagonal diagonal, std::int64_t k,
                                                   const Matrix<T>& a, const X& x)
  const {
    return triangular<T>(banded(a, k), blas::Trmv::Task::multiply, uplo, transpose, diagonal, x);
  }
  /// The solution of op(A) x' = x; A has k diagonals beside the main one
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> tbsv(blas::Uplo uplo, blas::Transpose transpose,
                                                   blas::Diagonal diagonal, std::int64_t k,
                                                   const Matrix<T>& a, const X& x)
  const {
    return triangular<T>(banded(a, k), blas::Trmv::Task::solve, uplo, transpose, diagonal, x);
  }
  /// x = op(A) x; A is packed
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> tpmv(blas::Uplo uplo, blas::Transpose transpose,
                                                   blas::Diagonal diagonal, const Ref<T>& a,
                                                   const X& x)
  const {
    return triangular<T>(packed(a, detail::vector_of(x).length), blas::Trmv::Task::multiply, uplo,
                         transpose, diagonal, x);
  }
  /// The solution of op(A) x' = x; A is packed
  template <class X, FieldElement T>
  requires VectorsOf<Refs, T, X> Future<void> tpsv(blas::Uplo uplo, blas::Transpose transpose,
                                                   blas::Diagonal diagonal, const Ref<T>& a,
                                                   const X& x)
  const {
    return triangular<T>(packed(a, detail::vector_of(x).length), blas::Trmv::Task::solve, uplo,
                         transpose, diagonal, x);
  }

 private:
  /// A square matrix as operations of level 2 have it.
  struct Stored {
    blas::Storage storage{};
    std::int64_t n = 0, k = 0, lda = 0;
    Operand where;
    detail::Length extent;  ///< its other one
  };
  template <class M>
  static Stored full(const M& a) {
    return {blas::Storage::full, a.columns,          0,
            a.leading,           a.buffer.operand(), {"a column of a", a.rows, a.columns}};
  }
  template <class M>
  static Stored banded(const M& a, std::int64_t k) {
    return {blas::Storage::banded,           a.columns, k, a.leading, a.buffer.operand(),
            {"a column of a", a.rows, k + 1}};
  }
  template <class R>
  static Stored packed(const R& a, std::int64_t n) {
    return {blas::Storage::packed, n, 0, 0, a.operand(), {"a", a.length(), blas::packed_size(n)}};
  }
  template <class Op>
  static void place(Op& op, const Stored& a, blas::Uplo uplo) {
    op.storage = a.storage, op.uplo = uplo, op.n = a.n, op.lda = a.lda, op.a = a.where;
  }

  /// What gemv and gbmv have in common.
  template <class Op, class M, class X, class Y, class F>
  Future<void> product(Op op, blas::Transpose transpose, const F& alpha, const M& a, const X& x,
                       const F& beta, const Y& y, detail::Length rows = {}) const {
    const auto u = detail::vector_of(x);
    const auto v = detail::vector_of(y);
    op.dtype = dtype_of<typename M::value_type>;
    op.transpose = transpose, op.lda = a.leading;
    op.incx = u.increment, op.incy = v.increment;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.a = a.buffer.operand(), op.x = u.buffer.operand(), op.y = v.buffer.operand();
    const bool plain = transpose == blas::Transpose::no;
    return detail::submit_exact(
        *submitter_, op,
        {{"x", u.length, plain ? op.n : op.m}, {"y", v.length, plain ? op.m : op.n}, rows});
  }
  template <class X, class Y, class F>
  Future<void> symmetric(const Stored& a, blas::Symmetry symmetry, blas::Uplo uplo, const F& alpha,
                         const X& x, const F& beta, const Y& y) const {
    const auto u = detail::vector_of(x);
    const auto v = detail::vector_of(y);
    blas::Symv op;
    op.dtype = dtype_of<typename X::value_type>;
    place(op, a, uplo);
    op.symmetry = symmetry, op.k = a.k, op.incx = u.increment, op.incy = v.increment;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.x = u.buffer.operand(), op.y = v.buffer.operand();
    return detail::submit_exact(*submitter_, op,
                                {a.extent, {"x", u.length, a.n}, {"y", v.length, a.n}});
  }
  template <class X, class Y, class F, class M>
  Future<void> outer(blas::Conjugate conjugate, const F& alpha, const X& x, const Y& y,
                     const M& a) const {
    const auto u = detail::vector_of(x);
    const auto v = detail::vector_of(y);
    const blas::Ger op{dtype_of<typename X::value_type>,
                       conjugate,
                       0,
                       a.rows,
                       a.columns,
                       a.leading,
                       u.increment,
                       v.increment,
                       alpha.wire(),
                       u.buffer.operand(),
                       v.buffer.operand(),
                       a.buffer.operand()};
    return detail::submit_exact(*submitter_, op,
                                {{"x", u.length, a.rows}, {"y", v.length, a.columns}});
  }
  template <class X>
  Future<void> rank_one(const Stored& a, blas::Symmetry symmetry, blas::Uplo uplo,
                        const Scalar& alpha, const X& x) const {
    const auto u = detail::vector_of(x);
    blas::Syr op;
    op.dtype = dtype_of<typename X::value_type>;
    place(op, a, uplo);
    op.symmetry = symmetry, op.incx = u.increment, op.alpha = alpha, op.x = u.buffer.operand();
    return detail::submit_exact(*submitter_, op, {a.extent, {"x", u.length, a.n}});
  }
  template <class X, class Y, class F>
  Future<void> rank_two(const Stored& a, blas::Symmetry symmetry, blas::Uplo uplo, const F& alpha,
                        const X& x, const Y& y) const {
    const auto u = detail::vector_of(x);
    const auto v = detail::vector_of(y);
    blas::Syr2 op;
    op.dtype = dtype_of<typename X::value_type>;
    place(op, a, uplo);
    op.symmetry = symmetry, op.incx = u.increment, op.incy = v.increment;
    op.alpha = alpha.wire(), op.x = u.buffer.operand(), op.y = v.buffer.operand();
    return detail::submit_exact(*submitter_, op,
                                {a.extent, {"x", u.length, a.n}, {"y", v.length, a.n}});
  }
  template <class T, class X>
  Future<void> triangular(const Stored& a, blas::Trmv::Task task, blas::Uplo uplo,
                          blas::Transpose transpose, blas::Diagonal diagonal, const X& x) const {
    const auto u = detail::vector_of(x);
    blas::Trmv op;
    op.dtype = dtype_of<T>;
    place(op, a, uplo);
    op.task = task, op.transpose = transpose, op.diagonal = diagonal, op.k = a.k;
    op.incx = u.increment, op.x = u.buffer.operand();
    return detail::submit_exact(*submitter_, op, {a.extent, {"x", u.length, a.n}});
  }
};

}  // namespace troupe
