#include <troupe/lib/primitives/custom_each.hpp>

#include <cstdint>
#include <numeric>

#include "compiled.hpp"

/// Operators of the program's own that change buffers themselves.
namespace troupe::test {
namespace {

class PrimitiveCustomEach : public NeedsKernels {};

TEST_F(PrimitiveCustomEach, ChangesEachElement) {
  const auto next = primitives::compile_for_each<std::int32_t>(
                        device(), {"[](int& x) { x = x % 2 == 0 ? x / 2 : 3 * x + 1; }"})
                        .get();
  for (const std::int64_t n : {0, 1, 1023, 1025, 1'048'577}) {
    SCOPED_TRACE(n);
    std::vector<std::int32_t> values(static_cast<std::size_t>(n) + 2);
    std::iota(values.begin(), values.end(), 0);
    const auto x = put(values);
    next(x.slice(1, n)).get();
    for (std::size_t i = 1; i + 1 < values.size(); ++i)
      values[i] = values[i] % 2 == 0 ? values[i] / 2 : 3 * values[i] + 1;
    EXPECT_EQ(device().download(x), values);
  }
}

TEST_F(PrimitiveCustomEach, ElementsOfTheProgram) {
  struct Particle {
    float place, speed;
  };
  const auto move =
      primitives::compile_for_each<Particle>(device(), {"[](Particle& p) { p.place += p.speed; }",
                                                        "struct Particle { float place, speed; };",
                                                        {"Particle"}})
          .get();
  const auto particles = put(std::vector<float>{1, 2, 10, -1, 0, 5});
  move(particles).get();
  EXPECT_EQ(device().download(particles), (std::vector<float>{3, 2, 9, -1, 5, 5}));
  EXPECT_EQ(move(particles.slice(0, 5)).wait().code(), Errc::invalid);
}

/// Any element of any buffer: each row of a matrix is added up, and turned round.
TEST_F(PrimitiveCustomEach, BulkOverRows) {
  const auto add_rows =
      primitives::compile_bulk<const double, double, const std::int64_t>(
          device(),
          {R"([](long long row, const double* matrix, double* sums, const long long* columns) {
               for (long long i = 0; i < *columns; ++i) sums[row] += matrix[row * *columns + i];
             })"})
          .get();
  constexpr std::int64_t kRows = 3000, kColumns = 7;
  std::vector<double> matrix(kRows * kColumns), sums(kRows, 1.0);
  std::iota(matrix.begin(), matrix.end(), 0.0);
  const auto on_device = put(matrix), results = put(sums);
  add_rows(kRows - 1, on_device, results, put(std::vector<std::int64_t>{kColumns})).get();
  for (std::size_t row = 0; row + 1 < sums.size(); ++row) {
    for (std::size_t i = 0; i < kColumns; ++i) sums[row] += matrix[row * kColumns + i];
  }
  EXPECT_EQ(device().download(results), sums) << "the last row is not of the range";
  EXPECT_EQ(device().download(on_device), matrix);
}

TEST_F(PrimitiveCustomEach, BulkOfNothingAndOfWrongRanges) {
  const auto fill = primitives::compile_bulk<std::uint32_t>(
                        device(), {"[](long long i, unsigned* x) { x[i] = 5; }"})
                        .get();
  const auto x = put(std::vector<std::uint32_t>{1, 2});
  fill(0, x).get();
  EXPECT_EQ(device().download(x), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(fill(-1, x).wait().code(), Errc::invalid);
  const auto bytes = put(std::vector<std::uint8_t>(7));
  EXPECT_EQ(fill(1, bytes).wait().code(), Errc::invalid);
  fill(2, x).get();
  EXPECT_EQ(device().download(x), (std::vector<std::uint32_t>{5, 5}));
}

}  // namespace
}  // namespace troupe::test
