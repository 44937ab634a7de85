#include <troupe/lib/primitives.hpp>

#include <concepts>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

using primitives::Neighbour;

template <class T>
class PrimitiveDifferenceOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveDifferenceOps, PrimitiveNumbers);

TYPED_TEST(PrimitiveDifferenceOps, AdjacentDifference) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const auto neighbour : {Neighbour::left, Neighbour::right}) {
      SCOPED_TRACE(::testing::Message() << n << ", side " << static_cast<int>(neighbour));
      std::vector<T> values;
      if constexpr (std::integral<T>) {
        values = keys_of<T>(Keys::any, n, 117);
      } else {
        values = random_values<T>(n, 117);
      }
      auto expected = values;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto other = neighbour == Neighbour::left ? i - 1 : i + 1;
        if (other < 0 || other >= n) continue;
        const auto a = values[static_cast<std::size_t>(i)];
        const auto b = values[static_cast<std::size_t>(other)];
        auto& difference = expected[static_cast<std::size_t>(i)];
        if constexpr (std::integral<T>) {
          difference = static_cast<T>(static_cast<BitsOf<T>>(a) - static_cast<BitsOf<T>>(b));
        } else {
          difference = a - b;  // rounds once
        }
      }
      const auto x = put(values);
      const auto around = put(std::vector<T>(static_cast<std::size_t>(n + 2), T(7)));
      primitives::on(device()).adjacent_difference(x, around.slice(1, n), neighbour);
      EXPECT_EQ(device().download(x), values) << "the input has changed";
      primitives::on(device()).adjacent_difference(x, x, neighbour);
      EXPECT_EQ(device().download(x), expected) << "in place";
      expected.insert(expected.begin(), T(7));
      expected.push_back(T(7));
      EXPECT_EQ(device().download(around), expected);
    }
  }
}

TEST_F(BadArguments, OfDifferences) {
  using primitives::AdjacentDifference;
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const AdjacentDifference difference{DType::f64, Neighbour::right, 0, 16, x, x};
  EXPECT_TRUE(difference.check().ok());
  with(difference, [](auto& op) { op.n = -1; });
  with(difference, [](auto& op) { op.n = 17; });
  with(difference, [](auto& op) { op.neighbour = static_cast<Neighbour>(2); });
  with(difference, [&](auto& op) { op.x = absent; });
  with(difference, [&](auto& op) { op.y = absent; });
  with(difference, [](auto& op) { op.n = 8, op.y.offset += 8, op.y.bytes -= 8; });  // shifted
  with(
      difference, [](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);

  const auto other = put(std::vector<double>(16));
  const auto refused = primitives::on(device()).adjacent_difference(ref.slice(0, 4), other);
  ASSERT_TRUE(refused.ready());
  ASSERT_EQ(refused.wait().code(), Errc::invalid);
  EXPECT_EQ(refused.wait().error().message,
            "primitives.adjacent_difference: y has 16 elements, not 4");
}

}  // namespace
}  // namespace troupe::test
