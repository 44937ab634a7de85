#pragma once

#include <vector>

#include <troupe/lib/matrix_list.hpp>
#include <troupe/lib/solver/eigen.hpp>

/// Batches of small matrices of one shape. `info`: std::int32_t in device memory, one for each
/// matrix, as of the operation on one; a matrix without a result fails nobody. Extents and batches
/// are below 2^31.
namespace troupe::solver {

/// Potrf of a list of `batch` matrices, which is the record's tail. On GPUs what stands in the
/// other halves is overwritten.
struct PotrfBatched {
  static constexpr std::string_view kName = "solver.potrf_batched";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;
  static constexpr std::string_view kTail = "matrix";

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0, batch = 0;
  Operand info;

  static constexpr std::array kOperands{write("info", &PotrfBatched::info)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return sizeof(std::int32_t) * static_cast<std::uint64_t>(batch);
  }
};

/// Potrs of lists A and B of `batch` matrices, B being n x 1; A as PotrfBatched has made it.
struct PotrsBatched {
  static constexpr std::string_view kName = "solver.potrs_batched";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;
  static constexpr std::string_view kTail = "matrix";

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0, ldb = 0, batch = 0;

  static constexpr std::array<DeclaredOperand<PotrsBatched>, 0> kOperands{};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
};

/// Syevd of `batch` matrices in a, lda * n elements apart; w has n elements for each.
struct SyevBatched {
  static constexpr std::string_view kName = "solver.syev_batched";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  Vectors vectors{};
  Uplo uplo{};
  std::int64_t n = 0, lda = 0, batch = 0;
  Operand a, w, info;

  static constexpr std::array kOperands{update("a", &SyevBatched::a), write("w", &SyevBatched::w),
                                        write("info", &SyevBatched::info)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    const auto count = static_cast<std::uint64_t>(batch);
    if (&operand == &info) return sizeof(std::int32_t) * count;
    return &operand == &w ? static_cast<std::uint64_t>(n) * count * size_of(real_type(dtype)) : 0;
  }
};

/// The same by Jacobi's method, see Syevj.
struct SyevjBatched {
  static constexpr std::string_view kName = "solver.syevj_batched";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Vectors vectors{};
  Uplo uplo{};
  std::int32_t max_sweeps = 0;
  std::uint32_t reserved = 0;
  double tolerance = 0;
  std::int64_t n = 0, lda = 0, batch = 0;
  Operand a, w, info;

  static constexpr std::array kOperands{update("a", &SyevjBatched::a), write("w", &SyevjBatched::w),
                                        write("info", &SyevjBatched::info)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    const auto count = static_cast<std::uint64_t>(batch);
    if (&operand == &info) return sizeof(std::int32_t) * count;
    return &operand == &w ? static_cast<std::uint64_t>(n) * count * size_of(real_type(dtype)) : 0;
  }
};

/// Gesvdj of `batch` matrices, m and n at most 32, in a, lda * n elements apart; s has min(m, n)
/// elements for each, and u and v, ldu * m and ldv * n elements apart, all m and n vectors; they
/// are absent without vectors.
struct GesvdjBatched {
  static constexpr std::string_view kName = "solver.gesvdj_batched";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;
  static constexpr std::int64_t kMost = 32;

  OpDType dtype;
  Vectors vectors{};
  std::int32_t max_sweeps = 0;
  double tolerance = 0;
  std::int64_t m = 0, n = 0, lda = 0, ldu = 0, ldv = 0, batch = 0;
  Operand a, s, u, v, info;

  static constexpr std::array kOperands{
      update("a", &GesvdjBatched::a), write("s", &GesvdjBatched::s), write("u", &GesvdjBatched::u),
      write("v", &GesvdjBatched::v), write("info", &GesvdjBatched::info)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    const auto count = static_cast<std::uint64_t>(batch);
    if (&operand == &info) return sizeof(std::int32_t) * count;
    return &operand == &s
               ? static_cast<std::uint64_t>(std::min(m, n)) * count * size_of(real_type(dtype))
               : 0;
  }
};

/// The largest `rank` singular values, and vectors, of `batch` tall matrices, m >= n, approximately
/// (https://docs.nvidia.com/cuda/cusolver, gesvdaStridedBatched), lda * n elements apart; s has
/// `rank` elements for each, u (m x rank) and v (n x rank) lie ldu * rank and ldv * rank elements
/// apart, or are absent without vectors.
struct GesvdaBatched {
  static constexpr std::string_view kName = "solver.gesvda_batched";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Vectors vectors{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, rank = 0, lda = 0, ldu = 0, ldv = 0, batch = 0;
  Operand a, s, u, v, info;

  static constexpr std::array kOperands{
      read("a", &GesvdaBatched::a), write("s", &GesvdaBatched::s), write("u", &GesvdaBatched::u),
      write("v", &GesvdaBatched::v), write("info", &GesvdaBatched::info)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    const auto count = static_cast<std::uint64_t>(batch);
    if (&operand == &info) return sizeof(std::int32_t) * count;
    return &operand == &s ? static_cast<std::uint64_t>(rank) * count * size_of(real_type(dtype))
                          : 0;
  }
};

}  // namespace troupe::solver

namespace troupe {

/// When the batches of Jacobi's methods stop.
struct JacobiBatchOptions {
  double tolerance = 0;  ///< 0: that of rounding
  std::int32_t max_sweeps = 100;
};

/// The batches of Solver: lists of matrices, or `batch` matrices side by side in one, which has
/// `batch` times as many columns as each of them.
class SolverBatches : public detail::SolverCalls {
 public:
  using Infos = GpuRef<std::int32_t>;
  using SolverCalls::SolverCalls;

  /// potrf for each of a
  template <FieldElement T>
  Future<void> potrf_batched(blas::Uplo uplo, const std::vector<MatrixRef<GpuRef<T>>>& a,
                             const Infos& info) const {
    auto op = of_list<solver::PotrfBatched>(uplo, a);
    op.info = info.operand();
    if (!are_square(a)) return refuse<solver::PotrfBatched>();
    std::vector<TailOperand> tail;
    detail::append(tail, a, 0, Access::update);
    return detail::submit(*submitter_, op, tail);
  }
  /// potrs for each pair of a and b, which has one column
  template <FieldElement T>
  Future<void> potrs_batched(
      blas::Uplo uplo, const std::vector<MatrixRef<GpuRef<T>>>& a,
      const std::type_identity_t<std::vector<MatrixRef<GpuRef<T>>>>& b) const {
    auto op = of_list<solver::PotrsBatched>(uplo, a);
    if (!are_square(a) || !detail::same_shapes(b) ||
        (!b.empty() && (b[0].columns != 1 || b[0].rows != op.n)))
      return refuse<solver::PotrsBatched>();
    if (!b.empty()) op.ldb = b[0].leading;
    std::vector<TailOperand> tail;
    detail::append(tail, a, 0, Access::read);
    detail::append(tail, b, 1, Access::update);
    return detail::submit(*submitter_, op, tail);
  }
  /// syevd for each part of a. See solver::SyevBatched.
  template <FieldElement T>
  Future<void> syev_batched(solver::Vectors vectors, blas::Uplo uplo, std::int64_t batch,
                            const Matrix<T>& a, const GpuRef<RealOf<T>>& w,
                            const Infos& info) const {
    const auto op = of_parts<solver::SyevBatched>(vectors, uplo, batch, a, w, info);
    return detail::submit_exact(*submitter_, op, {side_by_side(a, a.rows, batch)});
  }
  /// syevj for each part of a. See solver::SyevjBatched.
  template <FieldElement T>
  Future<void> syevj_batched(solver::Vectors vectors, blas::Uplo uplo, std::int64_t batch,
                             const Matrix<T>& a, const GpuRef<RealOf<T>>& w, const Infos& info,
                             const JacobiBatchOptions& options = {}) const {
    auto op = of_parts<solver::SyevjBatched>(vectors, uplo, batch, a, w, info);
    op.tolerance = options.tolerance, op.max_sweeps = options.max_sweeps;
    return detail::submit_exact(*submitter_, op, {side_by_side(a, a.rows, batch)});
  }
  /// gesvdj for each part of a, u and v. See solver::GesvdjBatched.
  template <FieldElement T>
  Future<void> gesvdj_batched(std::int64_t batch, const Matrix<T>& a, const GpuRef<RealOf<T>>& s,
                              const Matrix<T>& u, const Matrix<T>& v, const Infos& info,
                              const JacobiBatchOptions& options = {}) const {
    auto op = of_tall<solver::GesvdjBatched>(batch, a, s, u, v, info);
    op.tolerance = options.tolerance, op.max_sweeps = options.max_sweeps;
    return detail::submit_exact(
        *submitter_, op,
        {side_by_side(a, op.n, batch), side_by_side(u, op.m, batch), side_by_side(v, op.n, batch),
         length("u", u, u.rows, op.m), length("v", v, v.rows, op.n)});
  }
  /// The largest `rank` singular values of each part of a, and vectors. See solver::GesvdaBatched.
  template <FieldElement T>
  Future<void> gesvda_batched(std::int64_t batch, std::int64_t rank, const Matrix<T>& a,
                              const GpuRef<RealOf<T>>& s, const Matrix<T>& u, const Matrix<T>& v,
                              const Infos& info) const {
    auto op = of_tall<solver::GesvdaBatched>(batch, a, s, u, v, info);
    op.rank = rank;
    return detail::submit_exact(
        *submitter_, op,
        {side_by_side(a, op.n, batch), side_by_side(u, rank, batch), side_by_side(v, rank, batch),
         length("u", u, u.rows, op.m), length("v", v, v.rows, op.n)});
  }

 private:
  template <class M>
  static detail::Length side_by_side(const M& matrix, std::int64_t columns, std::int64_t batch) {
    return length("a row of a batch", matrix, matrix.columns, columns * batch);
  }
  template <class M>
  static bool are_square(const std::vector<M>& list) {
    return detail::same_shapes(list) && (list.empty() || list[0].rows == list[0].columns);
  }
  template <class Op>
  Future<void> refuse() const {
    return submitter_->refuse(
        {Errc::invalid, 0,
         std::string(Op::kName) + ": matrices of one list differ in shape, or are not square"});
  }
  template <class Op, class M>
  static Op of_list(blas::Uplo uplo, const std::vector<M>& a) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>, op.uplo = uplo, op.batch = std::ssize(a);
    if (!a.empty()) op.n = a[0].rows, op.lda = a[0].leading;
    return op;
  }
  template <class Op, class M, class W>
  static Op of_parts(solver::Vectors vectors, blas::Uplo uplo, std::int64_t batch, const M& a,
                     const W& w, const Infos& info) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>, op.vectors = vectors, op.uplo = uplo;
    op.n = a.rows, op.lda = a.leading, op.batch = batch;
    op.a = a.buffer.operand(), op.w = w.operand(), op.info = info.operand();
    return op;
  }
  template <class Op, class M, class S>
  static Op of_tall(std::int64_t batch, const M& a, const S& s, const M& u, const M& v,
                    const Infos& info) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>;
    op.vectors = u.buffer ? solver::Vectors::yes : solver::Vectors::no;
    op.m = a.rows, op.n = batch > 0 ? a.columns / batch : 0, op.batch = batch;
    op.lda = a.leading, op.ldu = u.leading, op.ldv = v.leading;
    op.a = a.buffer.operand(), op.s = s.operand(), op.info = info.operand();
    op.u = u.buffer.operand(), op.v = v.buffer.operand();
    return op;
  }
};

}  // namespace troupe
