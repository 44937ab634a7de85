// Systems of linear equations whose matrices have three or five diagonals.
#include <troupe/lib/sparse.hpp>

#include <algorithm>

#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

using sparse::Elimination;

template <class T>
class SparseTridiagonals : public Typed<T> {};
TYPED_TEST_SUITE(SparseTridiagonals, Numbers);

/// The diagonals of a random matrix of order n, from the lowest one on.
struct Diagonals {
  std::int64_t n = 0;
  std::vector<std::vector<Wide>> element;

  [[nodiscard]] std::int64_t band() const { return std::ssize(element) / 2; }
  /// Calls visit(column, element) for those of a row.
  template <class Visit>
  void each_in_row(std::int64_t row, Visit&& visit) const {
    for (std::int64_t d = 0; d < std::ssize(element); ++d) {
      const auto column = row + d - band();
      if (column >= 0 && column < n)
        visit(static_cast<std::size_t>(column),
              element[static_cast<std::size_t>(d)][static_cast<std::size_t>(row)]);
    }
  }
};

enum class SystemKind {
  dominant,  ///< it needs no pivoting
  any        ///< it does: one element in five of the diagonal is zero
};

template <class T>
Diagonals random_diagonals(std::int64_t n, std::int64_t band, std::uint64_t seed, SystemKind kind) {
  Diagonals a{n, {}};
  for (std::int64_t d = 0; d <= 2 * band; ++d)
    a.element.push_back(numbers<T>(n, seed + static_cast<std::uint64_t>(d), Data::fractions));
  for (std::int64_t row = 0; row < n; ++row) {
    const auto at = static_cast<std::size_t>(row);
    for (std::int64_t d = 0; d <= 2 * band; ++d) {
      const auto column = row + d - band;
      if (column < 0 || column >= n) a.element[static_cast<std::size_t>(d)][at] = 0;
    }
    auto& middle = a.element[static_cast<std::size_t>(band)][at];
    if (kind == SystemKind::dominant) middle += Wide(5 * static_cast<double>(band));
    if (kind == SystemKind::any && row % 5 == 1) middle = 0;
    middle = widen(to_number<T>(middle));
  }
  return a;
}

/// Whether x solves A x = b: the residual of a stable method is a small multiple of eps (|A| |x| +
/// |b|) in norm (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, 9.6).
template <class T>
::testing::AssertionResult solves(const Diagonals& a, const std::vector<Wide>& x,
                                  const std::vector<Wide>& b) {
  double largest_x = 0, largest_b = 0, largest_row = 0, largest_residual = 0;
  for (std::int64_t row = 0; row < a.n; ++row) {
    const auto at = static_cast<std::size_t>(row);
    Wide residual = b[at];
    double sum = 0;
    a.each_in_row(row, [&](std::size_t column, const Wide& element) {
      residual -= element * x[column];
      sum += std::abs(element);
    });
    if (!std::isfinite(std::abs(residual)))
      return ::testing::AssertionFailure() << "row " << row << " has no solution";
    largest_x = std::max(largest_x, std::abs(x[at]));
    largest_b = std::max(largest_b, std::abs(b[at]));
    largest_row = std::max(largest_row, sum);
    largest_residual = std::max(largest_residual, std::abs(residual));
  }
  const double bound = 16 * static_cast<double>(std::ssize(a.element)) *
                       static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon()) *
                       (largest_row * largest_x + largest_b);
  if (largest_residual <= bound) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "a residual of " << largest_residual << " above " << bound;
}

/// Several systems in memory: row i of number j is at j * start + i * step.
struct Arrangement {
  std::int64_t n, batch, start, step;

  [[nodiscard]] std::size_t at(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(j * start + i * step);
  }
  [[nodiscard]] std::size_t length() const {
    return n == 0 || batch == 0 ? 0 : at(n - 1, batch - 1) + 1;
  }
  /// With fillers between them.
  template <class T, class Pick>
  GpuRef<T> put_all(Pick&& pick) const {
    std::vector<Wide> memory(length(), kFiller<Wide>);
    for (std::int64_t j = 0; j < batch; ++j) {
      for (std::int64_t i = 0; i < n; ++i)
        memory[at(i, j)] = pick(static_cast<std::size_t>(j))[static_cast<std::size_t>(i)];
    }
    return put_numbers<T>(memory);
  }
  [[nodiscard]] std::vector<Wide> taken(const std::vector<Wide>& memory, std::int64_t j) const {
    std::vector<Wide> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(memory[at(i, j)]);
    return values;
  }
};

/// A batch of systems, and their solution by `call`, which is given the diagonals and x.
template <class T, class Call>
void expect_solved(const Arrangement& arrangement, std::int64_t band, SystemKind kind,
                   Call&& call) {
  SCOPED_TRACE(::testing::Message() << arrangement.batch << " of " << arrangement.n);
  std::vector<Diagonals> systems;
  std::vector<std::vector<Wide>> right_sides;
  for (std::int64_t j = 0; j < arrangement.batch; ++j) {
    const auto seed = static_cast<std::uint64_t>(100 * j);
    systems.push_back(random_diagonals<T>(arrangement.n, band, seed, kind));
    right_sides.push_back(numbers<T>(arrangement.n, seed + 50, Data::fractions));
  }
  std::vector<GpuRef<T>> diagonals;
  for (std::size_t d = 0; d < static_cast<std::size_t>(2 * band + 1); ++d) {
    diagonals.push_back(arrangement.template put_all<T>([&](std::size_t j) -> const auto& {
      return systems[j].element[d];
    }));
  }
  const auto x =
      arrangement.template put_all<T>([&](std::size_t j) -> const auto& { return right_sides[j]; });
  call(diagonals, x);
  const auto found = got(x);
  for (std::int64_t j = 0; j < arrangement.batch; ++j) {
    const auto number = static_cast<std::size_t>(j);
    EXPECT_TRUE(solves<T>(systems[number], arrangement.taken(found, j), right_sides[number]))
        << "number " << j;
  }
}

constexpr std::int64_t kTridiagonalOrders[] = {4, 18, 200, 1000};
struct BatchShape {
  std::int64_t n, batch;
};
constexpr BatchShape kBatchShapes[] = {{6, 1}, {4, 5}, {34, 64}, {300, 3}, {0, 3}, {4, 0}};

TYPED_TEST(SparseTridiagonals, GtsvSolvesWithPivoting) {
  using T = TypeParam;
  for (const auto n : kTridiagonalOrders) {
    for (const auto kind : {SystemKind::dominant, SystemKind::any}) {
      for (const std::int64_t nrhs : {1, 5}) {
        SCOPED_TRACE(::testing::Message() << n << ", " << nrhs);
        const auto a = random_diagonals<T>(n, 1, 81, kind);
        const Tridiagonal diagonals(put_numbers<T>(a.element[0]), put_numbers<T>(a.element[1]),
                                    put_numbers<T>(a.element[2]));
        const auto b = random_matrix<T>(n, nrhs, 82, Data::fractions);
        const auto x = put_matrix<T>(b, n + 2);
        device().sparse().gtsv(diagonals, x);
        const auto memory = got(x.buffer);
        for (std::int64_t j = 0; j < nrhs; ++j) {
          const auto column = [&](const std::vector<Wide>& from, std::int64_t leading) {
            const auto first = from.begin() + j * leading;
            return std::vector<Wide>(first, first + n);
          };
          EXPECT_TRUE(solves<T>(a, column(memory, n + 2), column(b.element, n)));
          EXPECT_EQ(memory[static_cast<std::size_t>(j * (n + 2) + n)], kFiller<Wide>);
        }
        for (std::size_t d = 0; d < 3; ++d) {
          const auto& ref = d == 0   ? diagonals.lower
                            : d == 1 ? diagonals.diagonal
                                     : diagonals.upper;
          EXPECT_EQ(got(ref), a.element[d]) << "the matrix is only read";
        }
      }
    }
  }
}

/// 2 on the diagonal and -1 beside it: the second difference of i (n - i) is 2, exactly.
TYPED_TEST(SparseTridiagonals, GtsvOfSecondDifferences) {
  using T = TypeParam;
  constexpr std::int64_t n = 31;
  std::vector<T> lower(n, T(-1)), upper(n, T(-1)), expected;
  lower.front() = upper.back() = T(0);
  for (std::int64_t i = 1; i <= n; ++i) expected.push_back(T(static_cast<float>(i * (n + 1 - i))));
  const auto b = put(std::vector<T>(n, T(2)));
  device().sparse().gtsv(Tridiagonal(put(lower), put(std::vector<T>(n, T(2))), put(upper)),
                         MatrixRef(b, n, 1));
  const auto found = device().download(b);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_LE(std::abs(found[i] - expected[i]),
              RealOf<T>(1e5) * std::numeric_limits<RealOf<T>>::epsilon())
        << i;
}

TYPED_TEST(SparseTridiagonals, GtsvStrided) {
  using T = TypeParam;
  for (const auto& [n, batch] : kBatchShapes) {
    for (const std::int64_t gap : {0, 3}) {
      const Arrangement arrangement{n, batch, n + gap, 1};
      expect_solved<T>(
          arrangement, 1, SystemKind::dominant,
          [&, n = n, batch = batch](const auto& a, const auto& x) {
            device().sparse().gtsv_strided(Tridiagonal(a[0], a[1], a[2]), x, n, batch, n + gap);
            const auto memory = got(x);
            for (std::int64_t j = 0; j + 1 < batch && n > 0; ++j) {
              for (std::int64_t i = n; i < n + gap; ++i)
                EXPECT_EQ(memory[arrangement.at(i, j)], kFiller<Wide>) << "between the systems";
            }
          });
    }
  }
}

TYPED_TEST(SparseTridiagonals, GtsvInterleaved) {
  using T = TypeParam;
  for (const auto& [n, batch] : kBatchShapes) {
    for (const auto way : {Elimination::thomas, Elimination::lu, Elimination::qr}) {
      SCOPED_TRACE(::testing::Message() << "elimination " << static_cast<int>(way));
      expect_solved<T>({n, batch, 1, batch}, 1,
                       way == Elimination::thomas ? SystemKind::dominant : SystemKind::any,
                       [&, n = n, batch = batch](const auto& a, const auto& x) {
                         device().sparse().gtsv_interleaved(Tridiagonal(a[0], a[1], a[2]), x, n,
                                                            batch, way);
                       });
    }
  }
}

TYPED_TEST(SparseTridiagonals, GpsvInterleaved) {
  using T = TypeParam;
  for (const auto& [n, batch] : kBatchShapes) {
    for (const auto kind : {SystemKind::dominant, SystemKind::any}) {
      expect_solved<T>({n, batch, 1, batch}, 2, kind,
                       [&, n = n, batch = batch](const auto& a, const auto& x) {
                         device().sparse().gpsv_interleaved(
                             Pentadiagonal(a[0], a[1], a[2], a[3], a[4]), x, n, batch);
                       });
    }
  }
}

/// The cuda engine's numbers are of no use then: see <troupe/lib/sparse/tridiagonal.hpp>.
TYPED_TEST(SparseTridiagonals, OfSingularMatrices) {
  using T = TypeParam;
  if (on_cuda()) GTEST_SKIP() << "only the cpu engine says what a singular matrix gives";
  const auto zeros = put(std::vector<T>(5)), x = put(std::vector<T>(5, T(1)));
  device().sparse().gtsv(Tridiagonal(zeros, zeros, zeros), MatrixRef(x, 5, 1));
  for (const auto& value : got(x)) EXPECT_TRUE(std::isnan(value.real()));
}

TEST_F(BadArguments, OfTridiagonalMatrices) {
  const auto result = put(std::vector<double>(16));
  const auto to = result.operand();
  using namespace sparse;
  const auto changed = [&](auto good, auto change, Errc code = Errc::invalid) {
    change(good);
    expect_refused(good, code);
  };
  const Gtsv one_system{DType::f64, 8, 2, 8, x, x, x, to};
  changed(one_system, [](auto& bad) { bad.n = 2; });
  changed(one_system, [](auto& bad) { bad.n = -3; });
  changed(one_system, [](auto& bad) { bad.n = bad.ldb = 17, bad.nrhs = 0; });
  changed(one_system, [](auto& bad) { bad.nrhs = -1; });
  changed(one_system, [](auto& bad) { bad.nrhs = 3; });
  changed(one_system, [](auto& bad) { bad.ldb = 7; });
  changed(one_system, [&](auto& bad) { bad.lower = absent; });
  changed(one_system, [&](auto& bad) { bad.upper = unaligned; });
  changed(one_system, [&](auto& bad) { bad.b = x; });  // which is read as well
  changed(
      one_system, [](auto& bad) { bad.dtype = DType::bf16; }, Errc::unsupported);
  const GtsvStrided strided{DType::f64, 5, 3, 5, x, x, x, to};
  changed(strided, [](auto& bad) { bad.stride = 4; });
  changed(strided, [](auto& bad) { bad.stride = 6; });
  changed(strided, [](auto& bad) { bad.stride = INT64_MAX; });
  changed(strided, [](auto& bad) { bad.batch = 4; });
  changed(strided, [](auto& bad) { bad.batch = -1; });
  changed(strided, [](auto& bad) { bad.n = 1; });
  const auto part = [&](std::int64_t at) { return result.slice(4 * at, 4).operand(); };
  const GtsvInterleaved interleaved{DType::f64, Elimination::lu, 0,       4,      1,
                                    part(0),    part(1),         part(2), part(3)};
  changed(interleaved, [](auto& bad) { bad.batch = 2; });
  changed(interleaved, [](auto& bad) { bad.batch = -1; });
  changed(interleaved, [](auto& bad) { bad.batch = INT64_MAX; });
  changed(interleaved, [](auto& bad) { bad.n = 5; });
  changed(interleaved, [](auto& bad) { bad.elimination = static_cast<Elimination>(3); });
  changed(interleaved, [](auto& bad) { bad.lower = bad.upper; });  // both are written
  const auto third = [&](std::int64_t at) { return result.slice(3 * at, 3).operand(); };
  const auto more = put(std::vector<double>(3));
  const GpsvInterleaved five{DType::f64, 3,        1,        third(0),      third(1),
                             third(2),   third(3), third(4), more.operand()};
  changed(five, [](auto& bad) { bad.n = 4; });
  changed(five, [](auto& bad) { bad.batch = 2; });
  changed(five, [&](auto& bad) { bad.lower2 = absent; });
  changed(five, [&](auto& bad) { bad.upper2 = bad.lower2; });
  EXPECT_EQ(device().download(result), std::vector<double>(16));
}

}  // namespace
}  // namespace troupe::test::reference
