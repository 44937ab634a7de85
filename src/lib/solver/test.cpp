#include <troupe/lib/solver.hpp>

#include <complex>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

using solver::Uplo;
using solver::Vectors;

template <class T>
class SolverOps : public Typed<T> {};
TYPED_TEST_SUITE(SolverOps, NumberTypes);

template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, RealOf<T>>;

template <class T>
T conjugate(const T& x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

/// A column-major n x n matrix within one of lda rows; the rest holds -7.
template <class T>
struct Square {
  std::int64_t n, lda;
  std::vector<T> element = std::vector<T>(static_cast<std::size_t>(n * lda), T(-7));
  T& operator()(std::int64_t row, std::int64_t column) {
    return element[static_cast<std::size_t>(column * lda + row)];
  }
  const T& operator()(std::int64_t row, std::int64_t column) const {
    return element[static_cast<std::size_t>(column * lda + row)];
  }
};

/// Lower triangular, of small integers with powers of two on the diagonal: whatever the algorithm,
/// its product and the factorisation of that are exact.
template <class T>
Square<T> exact_factor(std::int64_t n, std::int64_t lda, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto integer = [&] { return static_cast<RealOf<T>>(static_cast<int>(random() % 3) - 1); };
  Square<T> factor{n, lda};
  for (std::int64_t j = 0; j < n; ++j) {
    factor(j, j) = T(random() % 2 == 0 ? 1 : 2);
    for (std::int64_t i = j + 1; i < n; ++i) {
      if constexpr (kIsComplex<T>) {
        factor(i, j) = T(integer(), integer());
      } else {
        factor(i, j) = integer();
      }
    }
  }
  return factor;
}

/// The half `uplo` of L L^H.
template <class T>
Square<T> product(const Square<T>& lower, Uplo uplo) {
  Square<T> a{lower.n, lower.lda};
  for (std::int64_t i = 0; i < a.n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      T sum{};
      for (std::int64_t k = 0; k <= j; ++k) sum += lower(i, k) * conjugate(lower(j, k));
      if (uplo == Uplo::lower) {
        a(i, j) = sum;
      } else {
        a(j, i) = conjugate(sum);
      }
    }
  }
  return a;
}

TYPED_TEST(SolverOps, CholeskyOfIntegersIsExact) {
  using T = TypeParam;
  for (const std::int64_t n : {0, 1, 2, 7, 40}) {
    for (const std::int64_t extra : {0, 3}) {
      for (const auto uplo : {Uplo::lower, Uplo::upper}) {
        SCOPED_TRACE(::testing::Message() << n << "+" << extra << " " << static_cast<int>(uplo));
        const auto lower = exact_factor<T>(n, std::max<std::int64_t>(1, n) + extra, 31);
        const auto a = put(product(lower, uplo).element);
        EXPECT_EQ(device().solver().potrf(uplo, MatrixRef(a, n, n, lower.lda)).get(), 0);
        auto expected = Square<T>{n, lower.lda};
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = j; i < n; ++i) {
            if (uplo == Uplo::lower) {
              expected(i, j) = lower(i, j);
            } else {
              expected(j, i) = conjugate(lower(i, j));
            }
          }
        }
        EXPECT_EQ(device().download(a), expected.element);
      }
    }
  }
}

TYPED_TEST(SolverOps, AMatrixThatIsNotDefiniteIsANumericFailure) {
  using T = TypeParam;
  Square<T> matrix{4, 4};
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) matrix(i, j) = T(i == j ? (i == 2 ? -1 : 4) : 0);
  }
  const auto a = put(matrix.element), b = put(std::vector<T>(4, T(1)));
  const auto failed = device().solver().potrf(Uplo::lower, MatrixRef(a, 4, 4));
  ASSERT_EQ(failed.wait().code(), Errc::numeric);
  EXPECT_EQ(failed.wait().error().native, 3);
  EXPECT_NE(failed.wait().error().message.find("order 3"), std::string::npos);
  EXPECT_FALSE(a.valid()) << "half a factor passes for one";
  EXPECT_EQ(device().copy(a.slice(0, 4), b).wait().code(), Errc::stale);
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
  EXPECT_EQ(device().download(b), std::vector<T>(4, T(1)));

  const auto c = put(matrix.element);
  const auto reported = device().solver().potrf(Uplo::lower, MatrixRef(c, 4, 4), OnFailure::report);
  EXPECT_EQ(reported.get(), 3);
  EXPECT_TRUE(c.valid());
  EXPECT_TRUE(device().take_error().ok());
}

TEST_F(BadArguments, OfTheSolver) {
  const auto cell = device().submitter().result_cell(sizeof(std::int32_t)).take();
  const solver::Potrf good{DType::f64, Uplo::lower, OnFailure::error, 4, 4, x, cell.where};
  const auto with = [&](auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  with([](auto& op) { op.n = -1; });
  with([](auto& op) { op.n = 5; });
  with([](auto& op) { op.lda = 3; });
  with([](auto& op) { op.lda = 5; });
  with([](auto& op) { op.n = op.lda = std::int64_t{1} << 40; });
  with([](auto& op) { op.uplo = static_cast<Uplo>(2); });
  with([](auto& op) { op.on_failure = static_cast<OnFailure>(2); });
  with([&](auto& op) { op.a = unaligned; });
  with([&](auto& op) { op.a = absent; });
  with([&](auto& op) { op.info = absent; });
  with([&](auto& op) { op.info = i; });  // not pinned
  auto wrong_type = good;
  wrong_type.dtype = DType::i32;
  expect_refused(wrong_type, Errc::unsupported);
  const solver::Syevd values{DType::f64, Vectors::no, Uplo::lower, OnFailure::error, 0,
                             4,          4,           x,           absent,           cell.where};
  expect_refused(values);
  auto overlapping = values;
  overlapping.w = x;
  expect_refused(overlapping);
}

}  // namespace
}  // namespace troupe::test
