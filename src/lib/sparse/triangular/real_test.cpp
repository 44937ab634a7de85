#include "real_matrix.hpp"
#include "sparse_formats.hpp"

namespace troupe::test::reference {
namespace {

/// One step of the symmetric method of Gauss and Seidel with a matrix of a power network: what is
/// solved with are the triangles of one and the same matrix.
TEST(SparseTriangularReal, StepsOfGaussAndSeidel) {
  const auto real = real_matrix("494_bus.mtx");
  if (real.rows == 0) GTEST_SKIP() << "494_bus.mtx is not in $TROUPE_SHARED/matrices";
  const auto n = real.rows;
  Dense whole{n, n};
  std::vector<std::int32_t> begin{0}, column;
  std::vector<double> value;
  for (const auto& [place, element] : real.element) {
    while (std::ssize(begin) <= place.first)
      begin.push_back(static_cast<std::int32_t>(value.size()));
    column.push_back(static_cast<std::int32_t>(place.second));
    value.push_back(element);
    whole(place.first, place.second) = element;
  }
  begin.push_back(static_cast<std::int32_t>(value.size()));
  ASSERT_EQ(std::ssize(begin), n + 1);
  const CsrMatrix<double, std::int32_t> a{n, n, put(begin), put(column), put(value)};
  const auto right = numbers<double>(n, 344, Data::fractions);
  const auto b = put_numbers<double>(right);
  const auto x = device().alloc<double>(n);
  for (const auto uplo : kUplos) {
    Dense triangle = whole;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i)
        if (uplo == Uplo::lower ? j > i : j < i) triangle(i, j) = 0;
    }
    for (const auto transpose : kTransposes) {
      device().sparse().spsv(a, b, x, {.uplo = uplo, .transpose = transpose});
      expect_solves<double>(op(triangle, transpose), got(x), right);
    }
  }
}

}  // namespace
}  // namespace troupe::test::reference
