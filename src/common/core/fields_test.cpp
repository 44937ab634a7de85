#include "common/core/fields.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe {
namespace {

struct Nothing {};
struct One {
  std::vector<std::string> names{};
};
struct Mixed {
  std::int32_t number = 3;
  Error error{Errc::ok, 0, {}};
  std::vector<std::byte> bytes{};
  One one{};
  std::string text = "x";
  bool flag = false;
  [[nodiscard]] bool sound() const { return flag; }
};
template <std::size_t>
struct Numbers;
#define TROUPE_NUMBERS(count, ...) \
  template <>                      \
  struct Numbers<count> {          \
    int __VA_ARGS__;               \
  };
TROUPE_NUMBERS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
TROUPE_NUMBERS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
TROUPE_NUMBERS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
TROUPE_NUMBERS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
TROUPE_NUMBERS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
TROUPE_NUMBERS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
#undef TROUPE_NUMBERS

template <std::size_t N, std::size_t... I>
void expect_in_order(std::index_sequence<I...>) {
  const Numbers<N> numbers{static_cast<int>(I)...};
  static_assert(detail::count_fields<Numbers<N>>() == N);
  int expected = 0;
  for_each_field(numbers, [&](int number) { EXPECT_EQ(number, expected++); });
  EXPECT_EQ(expected, static_cast<int>(N));
}

TEST(Fields, AreCountedAndTiedInOrder) {
  static_assert(detail::count_fields<Nothing>() == 0);
  static_assert(detail::count_fields<One>() == 1);
  static_assert(detail::count_fields<Mixed>() == 6);
  Mixed mixed;
  std::get<0>(tie_fields(mixed)) = 7;
  std::get<4>(tie_fields(mixed)) = "y";
  EXPECT_EQ(mixed.number, 7);
  EXPECT_EQ(mixed.text, "y");
  expect_in_order<13>(std::make_index_sequence<13>{});
  expect_in_order<14>(std::make_index_sequence<14>{});
  expect_in_order<15>(std::make_index_sequence<15>{});
  expect_in_order<16>(std::make_index_sequence<16>{});
  expect_in_order<17>(std::make_index_sequence<17>{});
  expect_in_order<kMostFields>(std::make_index_sequence<kMostFields>{});
}

}  // namespace
}  // namespace troupe
