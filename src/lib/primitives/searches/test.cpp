#include <troupe/lib/primitives.hpp>

#include <limits>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

using primitives::Bound;

template <class T>
class PrimitiveSearchOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveSearchOps, Reals);

/// The order is that of sort(): zeros are equal, and a NaN has a place by its bits.
TYPED_TEST(PrimitiveSearchOps, HasTheOrderOfSort) {
  using T = TypeParam;
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN(),
              kInfinity = std::numeric_limits<T>::infinity();
  const std::vector<T> values{-kNan, -kInfinity, T(-1), T(-0.0), T(0.0), T(2), kInfinity, kNan};
  auto library = primitives::on(device());
  const auto in = put(values), sorted = put(std::vector<T>(values.size()));
  library.sort(in, sorted);
  const auto positions = put(std::vector<std::int64_t>(values.size(), -1));
  library.search(sorted, in, positions);
  EXPECT_EQ(device().download(positions), (std::vector<std::int64_t>{0, 1, 2, 3, 3, 5, 6, 7}));
  library.search(sorted, in, positions, Bound::upper);
  EXPECT_EQ(device().download(positions), (std::vector<std::int64_t>{1, 2, 3, 5, 5, 6, 7, 8}));
}

TYPED_TEST(PrimitiveSearchOps, FindsNothingInNothing) {
  using T = TypeParam;
  auto library = primitives::on(device());
  const auto nothing = device().template alloc<T>(0);
  const auto positions = put(std::vector<std::int64_t>{7, 7});
  library.search(nothing, put(std::vector<T>{1, 2}), positions);
  EXPECT_EQ(device().download(positions), (std::vector<std::int64_t>{0, 0}));
  library.search(put(std::vector<T>{1, 2}), nothing, device().template alloc<std::int64_t>(0))
      .get();
}

/// More values than a grid has threads, in a range that takes many steps.
TEST(PrimitiveSearch, OfManyAmongMany) {
  constexpr std::int64_t kCount = 1'200'000;
  std::vector<std::int32_t> sorted, values;
  for (std::int64_t i = 0; i < kCount; ++i) {
    sorted.push_back(static_cast<std::int32_t>(i / 3 * 2));
    values.push_back(static_cast<std::int32_t>(i * 7919 % kCount));
  }
  const auto positions = put(std::vector<std::int64_t>(kCount, -1));
  primitives::on(device()).search(put(sorted), put(values), positions);
  const auto found = device().download(positions);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], std::min<std::int64_t>(3 * ((values[i] + 1) / 2), kCount)) << i;
}

TEST_F(BadArguments, OfSearches) {
  using primitives::Search;
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    Search op{DType::f64, Bound::upper, 0, 16, 16, x, x, x};
    change(op);
    expect_refused(op, code);
  };
  with([](auto& op) { op.n = -1; });
  with([](auto& op) { op.n = 17; });
  with([](auto& op) { op.count = 17; });
  with([](auto& op) { op.bound = static_cast<Bound>(2); });
  with([&](auto& op) { op.values = absent; });
  with([](auto&) {});  // positions that overlap the rest
  with([](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::test
