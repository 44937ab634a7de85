#pragma once

#include <troupe/lib/sparse/form.hpp>

/// Systems of linear equations whose matrices have three or five diagonals, by cuSPARSE's names
/// (https://docs.nvidia.com/cuda/cusparse/).
///
/// A diagonal has an element for each of the n rows: row i of a tridiagonal matrix is lower[i],
/// diagonal[i], upper[i], in columns i - 1 to i + 1; a pentadiagonal one has lower2[i] and
/// upper2[i] in columns i - 2 and i + 2. Elements that would be outside of the matrix are zero.
/// (The cpu engine does not read them.) n is 0 or at least 3.
///
/// Nothing tells of a matrix that is singular: what takes the place of the solution then is of no
/// use, on the cpu engine NaN. The cpu engine solves all of them by LAPACK's gbsv, with partial
/// pivoting; built without LAPACKE it answers unsupported.
namespace troupe::sparse {

/// B = the X of A X = B, A being tridiagonal and n x n, B column-major with `nrhs` columns. With
/// partial pivoting. cuda engine: cusparseXgtsv2.
struct Gtsv {
  static constexpr std::string_view kName = "sparse.gtsv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, nrhs = 0, ldb = 0;
  Operand lower, diagonal, upper, b;

  static constexpr std::array kOperands{read("lower", &Gtsv::lower),
                                        read("diagonal", &Gtsv::diagonal),
                                        read("upper", &Gtsv::upper), update("b", &Gtsv::b)};
  Result<void> check() const;
};

/// The same for `batch` matrices with a right side each: row i of number j is at element
/// j * stride + i of the diagonals and of x. Without pivoting on the cuda engine, where it is
/// cusparseXgtsv2StridedBatch: for matrices that are diagonally dominant, say.
struct GtsvStrided {
  static constexpr std::string_view kName = "sparse.gtsv_strided";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, batch = 0, stride = 0;
  Operand lower, diagonal, upper, x;

  static constexpr std::array kOperands{
      read("lower", &GtsvStrided::lower), read("diagonal", &GtsvStrided::diagonal),
      read("upper", &GtsvStrided::upper), update("x", &GtsvStrided::x)};
  Result<void> check() const;
};

/// How the cuda engine eliminates: cheaply without pivoting, with partial pivoting, or by
/// orthogonal rotations.
enum class Elimination : std::uint32_t { thomas, lu, qr };

/// The same for matrices that are interleaved: row i of number j is at element i * batch + j. The
/// diagonals are destroyed. cuda engine: cusparseXgtsvInterleavedBatch.
struct GtsvInterleaved {
  static constexpr std::string_view kName = "sparse.gtsv_interleaved";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Elimination elimination{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, batch = 0;
  Operand lower, diagonal, upper, x;

  static constexpr std::array kOperands{
      update("lower", &GtsvInterleaved::lower), update("diagonal", &GtsvInterleaved::diagonal),
      update("upper", &GtsvInterleaved::upper), update("x", &GtsvInterleaved::x)};
  Result<void> check() const;
};

/// The same for pentadiagonal matrices, by orthogonal rotations: cusparseXgpsvInterleavedBatch.
struct GpsvInterleaved {
  static constexpr std::string_view kName = "sparse.gpsv_interleaved";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, batch = 0;
  Operand lower2, lower, diagonal, upper, upper2, x;

  static constexpr std::array kOperands{
      update("lower2", &GpsvInterleaved::lower2),     update("lower", &GpsvInterleaved::lower),
      update("diagonal", &GpsvInterleaved::diagonal), update("upper", &GpsvInterleaved::upper),
      update("upper2", &GpsvInterleaved::upper2),     update("x", &GpsvInterleaved::x)};
  Result<void> check() const;
};

}  // namespace troupe::sparse

namespace troupe {

/// The diagonals of a tridiagonal matrix, or of several: see <troupe/lib/sparse/tridiagonal.hpp>.
template <class Ref>
struct Tridiagonal {
  using value_type = typename Ref::value_type;
  Ref lower, diagonal, upper;
};
template <class Ref>
Tridiagonal(Ref, Ref, Ref) -> Tridiagonal<Ref>;

/// Those of a pentadiagonal one.
template <class Ref>
struct Pentadiagonal {
  using value_type = typename Ref::value_type;
  Ref lower2, lower, diagonal, upper, upper2;
};
template <class Ref>
Pentadiagonal(Ref, Ref, Ref, Ref, Ref) -> Pentadiagonal<Ref>;

/// Systems of linear equations with few diagonals. Errors: invalid, unsupported (extents of 2^31 or
/// more on a GPU), those of any command.
template <class Refs>
class SparseTridiagonal : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  using Calls::Calls;

  /// B = the X of A X = B: see sparse::Gtsv. Any number of columns.
  template <FieldElement T>
  Future<void> gtsv(const Tridiagonal<Ref<T>>& a, const MatrixRef<Ref<T>>& b) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Gtsv{dtype_of<T>, b.rows, b.columns, b.leading, a.lower.operand(),
                     a.diagonal.operand(), a.upper.operand(), b.buffer.operand()},
        {{"lower", a.lower.length(), b.rows},
         {"diagonal", a.diagonal.length(), b.rows},
         {"upper", a.upper.length(), b.rows}});
  }
  /// x = the solutions of `batch` systems of n equations that lie `stride` elements apart, without
  /// pivoting: see sparse::GtsvStrided. A stride of 0: they stand one behind another.
  template <FieldElement T>
  Future<void> gtsv_strided(const Tridiagonal<Ref<T>>& a, const Ref<T>& x, std::int64_t n,
                            std::int64_t batch, std::int64_t stride = 0) const {
    return detail::submit(
        *submitter_,
        sparse::GtsvStrided{dtype_of<T>, n, batch, stride != 0 ? stride : n, a.lower.operand(),
                            a.diagonal.operand(), a.upper.operand(), x.operand()});
  }
  /// x = the solutions of `batch` systems that are interleaved: see sparse::GtsvInterleaved. The
  /// diagonals are destroyed.
  template <FieldElement T>
  Future<void> gtsv_interleaved(const Tridiagonal<Ref<T>>& a, const Ref<T>& x, std::int64_t n,
                                std::int64_t batch,
                                sparse::Elimination elimination = sparse::Elimination::lu) const {
    return detail::submit(*submitter_, sparse::GtsvInterleaved{
                                           dtype_of<T>, elimination, 0, n, batch, a.lower.operand(),
                                           a.diagonal.operand(), a.upper.operand(), x.operand()});
  }
  /// The same for pentadiagonal matrices: see sparse::GpsvInterleaved.
  template <FieldElement T>
  Future<void> gpsv_interleaved(const Pentadiagonal<Ref<T>>& a, const Ref<T>& x, std::int64_t n,
                                std::int64_t batch) const {
    return detail::submit(
        *submitter_, sparse::GpsvInterleaved{dtype_of<T>, n, batch, a.lower2.operand(),
                                             a.lower.operand(), a.diagonal.operand(),
                                             a.upper.operand(), a.upper2.operand(), x.operand()});
  }
};

}  // namespace troupe
