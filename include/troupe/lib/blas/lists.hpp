#pragma once

#include <span>
#include <vector>

#include <troupe/lib/blas/batched.hpp>
#include <troupe/lib/blas/level2.hpp>
#include <troupe/lib/matrix_list.hpp>

/// Operations on lists of matrices, each a buffer or a part of one: they stand in the record's
/// tail, list by list; the tag of each is the number of its list.
namespace troupe::blas {

/// y_i = alpha op(A_i) x_i + beta y_i for `batch` matrices and vectors. Without a tail a, x and y
/// hold all of them, strides apart; strides of A and x may be 0. With a tail they are the lists A,
/// x and y. f16 and bf16 may have results of f32.
struct GemvBatched {
  static constexpr std::string_view kName = "blas.gemv_batched";
  static constexpr DTypes kDTypes = kNumbersAndNarrow;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "matrix";

  OpDType dtype;
  OpDType y_dtype;
  Transpose transpose{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, incx = 1, incy = 1;
  std::int64_t batch = 0, stride_a = 0, stride_x = 0, stride_y = 0;
  Scalar alpha, beta;  ///< of scalar_type(dtype)
  Operand a, x, y;

  static constexpr std::array kOperands{
      read("alpha", &GemvBatched::alpha), read("beta", &GemvBatched::beta),
      read("a", &GemvBatched::a), read("x", &GemvBatched::x), update("y", &GemvBatched::y)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  /// What a y in the tail is.
  [[nodiscard]] Access access_of_y() const noexcept {
    return beta.is_zero(scalar_type(dtype)) ? Access::write : Access::update;
  }
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y ? access_of_y() : declared;
  }
  [[nodiscard]] std::int64_t length_x() const noexcept {
    return transpose == Transpose::no ? n : m;
  }
  [[nodiscard]] std::int64_t length_y() const noexcept {
    return transpose == Transpose::no ? m : n;
  }
};

/// One group of GemmGrouped: `batch` products of one shape. alpha and beta are numbers of
/// scalar_type(dtype).
struct GemmGroup {
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0, batch = 0;
  double alpha = 1, beta = 0;
};

/// C_i = alpha op(A_i) op(B_i) + beta C_i in groups: the inline bytes are GemmGroups, the lists all
/// A, all B and all C, group by group.
struct GemmGrouped {
  static constexpr std::string_view kName = "blas.gemm_grouped";
  static constexpr DTypes kDTypes = DTypes::of({DType::f16, DType::bf16, DType::f32, DType::f64});
  static constexpr Traits kTraits = kComputes;
  static constexpr std::string_view kTail = "matrix";
  static constexpr std::size_t kMaxGroups = 128;
  static constexpr std::uint32_t kData = kMaxGroups * sizeof(GemmGroup);

  OpDType dtype;
  std::int64_t groups = 0;

  static constexpr std::array<DeclaredOperand<GemmGrouped>, 0> kOperands{};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
};

/// Trsm for lists A and B of `batch` matrices.
struct TrsmBatched {
  static constexpr std::string_view kName = "blas.trsm_batched";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "matrix";

  OpDType dtype;
  Side side{};
  Uplo uplo{};
  Transpose transpose{};
  Diagonal diagonal{};
  std::int64_t m = 0, n = 0, lda = 0, ldb = 0, batch = 0;
  Scalar alpha;

  static constexpr std::array kOperands{read("alpha", &TrsmBatched::alpha)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
};

/// A = P L U for a list of `batch` matrices A, n x n, as LAPACK's getrf
/// (https://www.netlib.org/lapack). `pivots`: std::int32_t, n for each matrix, from 1 on; absent: P
/// is the identity. `info`: std::int32_t, one for each matrix: 0, or i > 0 if the i-th diagonal
/// element of U is zero. Extents are below 2^31.
struct GetrfBatched {
  static constexpr std::string_view kName = "blas.getrf_batched";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "matrix";

  OpDType dtype;
  std::int64_t n = 0, lda = 0, batch = 0;
  Operand pivots, info;

  static constexpr std::array kOperands{write("pivots", &GetrfBatched::pivots),
                                        write("info", &GetrfBatched::info)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return sizeof(std::int32_t) * static_cast<std::uint64_t>(&range == &pivots ? n * batch : batch);
  }
};

/// Others of LAPACK's functions for two lists of `batch` small matrices. Extents are below 2^31.
///
/// | task | lists | |
/// |---|---|---|
/// | getrs | A, B | B = the X of op(A) X = B by the factors of GetrfBatched, nrhs columns |
/// | getri | A, C | C = the inverse of A by the factors of GetrfBatched |
/// | matinv | A, C | C = the inverse of A, n at most 32 |
/// | geqrf | A, tau | A = Q R, m x n; tau has min(m, n) elements |
/// | gels | A, C | A = Q R as geqrf; C, m x nrhs: the n rows that minimise |A X - C|, m >= n |
///
/// `pivots`: as GetrfBatched has made them, for getrs and getri; absent: there are none. `info`,
/// for getri, matinv and gels: std::int32_t, one for each matrix: 0, or i > 0 if the i-th diagonal
/// element of a factor is zero.
struct LapackBatched {
  static constexpr std::string_view kName = "blas.lapack_batched";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "matrix";
  enum class Task : std::uint32_t { getrs, getri, matinv, geqrf, gels };

  OpDType dtype;
  Task task{};
  Transpose transpose{};  ///< getrs
  std::int64_t m = 0, n = 0, nrhs = 0, lda = 0;
  std::int64_t ldb = 0;  ///< of the second list
  std::int64_t batch = 0;
  Operand pivots, info;

  static constexpr std::array kOperands{read("pivots", &LapackBatched::pivots),
                                        write("info", &LapackBatched::info)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return sizeof(std::int32_t) * static_cast<std::uint64_t>(batch);
  }
  /// What its two lists are.
  [[nodiscard]] std::array<Access, 2> list_access() const noexcept {
    switch (task) {
      case Task::getrs: return {Access::read, Access::update};
      case Task::getri:
      case Task::matinv: return {Access::read, Access::write};
      case Task::geqrf: return {Access::update, Access::write};
      default: return {Access::update, Access::update};
    }
  }
  [[nodiscard]] bool tells_info() const noexcept {
    return task != Task::getrs && task != Task::geqrf;
  }
};

}  // namespace troupe::blas

namespace troupe {

/// A group of gemm_grouped: as many products as there are matrices, all of one shape.
template <class Ref>
struct GemmGroupOf {
  using ScalarArgument = ScalarTypeOf<typename Ref::value_type>;
  blas::Transpose transpose_a{}, transpose_b{};
  ScalarArgument alpha = ScalarArgument(1);
  std::vector<MatrixRef<Ref>> a, b;
  ScalarArgument beta = ScalarArgument(0);
  std::vector<MatrixRef<Ref>> c;
};

/// What BasicBlas does with lists of matrices. All matrices of a list have one shape.
template <class Refs>
class BlasLists : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using Matrices = std::vector<MatrixRef<Ref<T>>>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

  /// y_i = alpha op(A_i) x_i + beta y_i, the i-th of each i strides from the start; `options`
  /// tells of A, and stride_b and stride_c are those of x and y.
  template <class T, class Y>
  requires(FieldElement<T> || NarrowElement<T>) &&
      (std::same_as<T, Y> || (NarrowElement<T> && std::same_as<Y, float>))
          Future<void> gemv_batched(
              const Ref<T>& a, const Ref<T>& x, const Ref<Y>& y, const GemvOptions& options,
              const BatchOptions& batch, ScalarArgument<ScalarTypeOf<T>> alpha = ScalarTypeOf<T>(1),
              ScalarArgument<ScalarTypeOf<T>> beta = ScalarTypeOf<T>(0)) const {
    auto op = batched_gemv<T, Y>(options, alpha.wire(), beta.wire());
    op.batch = batch.batch;
    op.stride_a = batch.stride_a, op.stride_x = batch.stride_b, op.stride_y = batch.stride_c;
    op.a = a.operand(), op.x = x.operand(), op.y = y.operand();
    return detail::submit(*submitter_, op);
  }
  /// The same of lists.
  template <class T, class Y>
  requires(FieldElement<T> || NarrowElement<T>) &&
      (std::same_as<T, Y> || (NarrowElement<T> && std::same_as<Y, float>))
          Future<void> gemv_batched(
              const std::vector<Ref<T>>& a, const std::vector<Ref<T>>& x,
              const std::vector<Ref<Y>>& y, const GemvOptions& options,
              ScalarArgument<ScalarTypeOf<T>> alpha = ScalarTypeOf<T>(1),
              ScalarArgument<ScalarTypeOf<T>> beta = ScalarTypeOf<T>(0)) const {
    auto op = batched_gemv<T, Y>(options, alpha.wire(), beta.wire());
    op.batch = std::ssize(y);
    std::vector<TailOperand> tail;
    for (const auto& one : a) tail.push_back({one.operand(), 0, Access::read});
    for (const auto& one : x) tail.push_back({one.operand(), 1, Access::read});
    for (const auto& one : y) tail.push_back({one.operand(), 2, op.access_of_y()});
    return detail::submit(*submitter_, op, tail);
  }
  /// At most blas::GemmGrouped::kMaxGroups.
  template <class T>
  requires RealElement<T> || NarrowElement<T> Future<void> gemm_grouped(
      const std::vector<GemmGroupOf<Ref<T>>>& groups)
  const {
    std::vector<blas::GemmGroup> shapes;
    std::vector<TailOperand> tail;
    for (const auto& group : groups) {
      blas::GemmGroup shape{group.transpose_a, group.transpose_b};
      shape.alpha = static_cast<double>(group.alpha), shape.beta = static_cast<double>(group.beta);
      shape.batch = std::ssize(group.c);
      if (!detail::same_shapes(group.a) || !detail::same_shapes(group.b) ||
          !detail::same_shapes(group.c))
        return refuse<blas::GemmGrouped>();
      if (shape.batch > 0 && !group.a.empty() && !group.b.empty()) {
        const auto &a = group.a[0], &b = group.b[0], &c = group.c[0];
        const bool plain = shape.transpose_a == blas::Transpose::no;
        shape.m = c.rows, shape.n = c.columns, shape.k = plain ? a.columns : a.rows;
        shape.lda = a.leading, shape.ldb = b.leading, shape.ldc = c.leading;
      }
      shapes.push_back(shape);
    }
    for (const auto& group : groups) detail::append(tail, group.a, 0, Access::read);
    for (const auto& group : groups) detail::append(tail, group.b, 1, Access::read);
    for (const auto& group : groups)
      detail::append(tail, group.c, 2, group.beta == 0 ? Access::write : Access::update);
    return detail::submit(*submitter_, blas::GemmGrouped{dtype_of<T>, std::ssize(groups)},
                          Parts(tail, std::as_bytes(std::span(shapes))));
  }
  /// trsm for each pair of a and b
  template <FieldElement T>
  Future<void> trsm_batched(blas::Side side, blas::Uplo uplo, blas::Transpose transpose,
                            blas::Diagonal diagonal, ScalarArgument<T> alpha, const Matrices<T>& a,
                            const std::type_identity_t<Matrices<T>>& b) const {
    if (!detail::same_shapes(a) || !detail::same_shapes(b)) return refuse<blas::TrsmBatched>();
    blas::TrsmBatched op;
    op.dtype = dtype_of<T>;
    op.side = side, op.uplo = uplo, op.transpose = transpose, op.diagonal = diagonal;
    if (!a.empty() && !b.empty())
      op.m = b[0].rows, op.n = b[0].columns, op.lda = a[0].leading, op.ldb = b[0].leading;
    op.batch = std::ssize(b), op.alpha = alpha.wire();
    std::vector<TailOperand> tail;
    detail::append(tail, a, 0, Access::read);
    detail::append(tail, b, 1, Access::update);
    return detail::submit(*submitter_, op, tail);
  }

  /// See blas::GetrfBatched.
  template <FieldElement T>
  Future<void> getrf_batched(const std::vector<MatrixRef<Ref<T>>>& a,
                             const Ref<std::int32_t>& pivots, const Ref<std::int32_t>& info) const {
    return factorise(a, pivots.operand(), info);
  }
  /// Without pivots.
  template <FieldElement T>
  Future<void> getrf_batched(const std::vector<MatrixRef<Ref<T>>>& a,
                             const Ref<std::int32_t>& info) const {
    return factorise(a, Operand(), info);
  }
  /// See blas::LapackBatched, as for those that follow.
  template <FieldElement T>
  Future<void> getrs_batched(blas::Transpose transpose, const std::vector<MatrixRef<Ref<T>>>& a,
                             const Ref<std::int32_t>& pivots,
                             const std::vector<MatrixRef<Ref<T>>>& b) const {
    return lapack<T>(blas::LapackBatched::Task::getrs, a, b, &pivots, nullptr, transpose);
  }
  template <FieldElement T>
  Future<void> getri_batched(const std::vector<MatrixRef<Ref<T>>>& a,
                             const Ref<std::int32_t>& pivots,
                             const std::vector<MatrixRef<Ref<T>>>& c,
                             const Ref<std::int32_t>& info) const {
    return lapack<T>(blas::LapackBatched::Task::getri, a, c, &pivots, &info);
  }
  template <FieldElement T>
  Future<void> matinv_batched(const std::vector<MatrixRef<Ref<T>>>& a,
                              const std::vector<MatrixRef<Ref<T>>>& c,
                              const Ref<std::int32_t>& info) const {
    return lapack<T>(blas::LapackBatched::Task::matinv, a, c, nullptr, &info);
  }
  /// `tau`: matrices of min(m, n) x 1
  template <FieldElement T>
  Future<void> geqrf_batched(const std::vector<MatrixRef<Ref<T>>>& a,
                             const std::vector<MatrixRef<Ref<T>>>& tau) const {
    return lapack<T>(blas::LapackBatched::Task::geqrf, a, tau, nullptr, nullptr);
  }
  template <FieldElement T>
  Future<void> gels_batched(const std::vector<MatrixRef<Ref<T>>>& a,
                            const std::vector<MatrixRef<Ref<T>>>& c,
                            const Ref<std::int32_t>& info) const {
    return lapack<T>(blas::LapackBatched::Task::gels, a, c, nullptr, &info);
  }

 private:
  template <class Op>
  Future<void> refuse() const {
    return submitter_->refuse(
        {Errc::invalid, 0, std::string(Op::kName) + ": matrices of one list differ in shape"});
  }
  template <class T, class Y>
  static blas::GemvBatched batched_gemv(const GemvOptions& options, const Scalar& alpha,
                                        const Scalar& beta) {
    blas::GemvBatched op;
    op.dtype = dtype_of<T>, op.y_dtype = dtype_of<Y>;
    op.transpose = options.transpose;
    op.m = options.m, op.n = options.n;
    op.lda = options.lda != 0 ? options.lda : std::max<std::int64_t>(1, options.m);
    op.alpha = alpha, op.beta = beta;
    return op;
  }
  template <class M>
  Future<void> factorise(const std::vector<M>& a, const Operand& pivots,
                         const Ref<std::int32_t>& info) const {
    if (!detail::same_shapes(a)) return refuse<blas::GetrfBatched>();
    blas::GetrfBatched op;
    op.dtype = dtype_of<typename M::value_type>, op.batch = std::ssize(a);
    if (!a.empty()) op.n = a[0].rows, op.lda = a[0].leading;
    op.pivots = pivots, op.info = info.operand();
    if (!a.empty() && a[0].columns != op.n) {
      return submitter_->refuse(
          {Errc::invalid, 0, std::string(op.kName) + ": a matrix is not square"});
    }
    std::vector<TailOperand> tail;
    detail::append(tail, a, 0, Access::update);
    return detail::submit(*submitter_, op, tail);
  }
  template <class T>
  Future<void> lapack(blas::LapackBatched::Task task, const Matrices<T>& a,
                      const Matrices<T>& second, const Ref<std::int32_t>* pivots,
                      const Ref<std::int32_t>* info,
                      blas::Transpose transpose = blas::Transpose::no) const {
    if (!detail::same_shapes(a) || !detail::same_shapes(second))
      return refuse<blas::LapackBatched>();
    blas::LapackBatched op;
    op.dtype = dtype_of<T>;
    op.task = task, op.transpose = transpose, op.batch = std::ssize(a);
    if (!a.empty()) op.m = a[0].rows, op.n = a[0].columns, op.lda = a[0].leading;
    if (!second.empty()) op.nrhs = second[0].columns, op.ldb = second[0].leading;
    if (pivots != nullptr) op.pivots = pivots->operand();
    if (info != nullptr) op.info = info->operand();
    std::vector<TailOperand> tail;
    detail::append(tail, a, 0, op.list_access()[0]);
    detail::append(tail, second, 1, op.list_access()[1]);
    return detail::submit(*submitter_, op, tail);
  }
};

}  // namespace troupe
