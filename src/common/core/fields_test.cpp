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
#define TROUPE_TEN(x) x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7, x##8, x##9
TROUPE_NUMBERS(9, a, b, c, d, e, f, g, h, i)
TROUPE_NUMBERS(10, TROUPE_TEN(a))
TROUPE_NUMBERS(11, TROUPE_TEN(a), b)
TROUPE_NUMBERS(21, TROUPE_TEN(a), TROUPE_TEN(b), c)
TROUPE_NUMBERS(36, TROUPE_TEN(a), TROUPE_TEN(b), TROUPE_TEN(c), d0, d1, d2, d3, d4, d5)
TROUPE_NUMBERS(37, TROUPE_TEN(a), TROUPE_TEN(b), TROUPE_TEN(c), d0, d1, d2, d3, d4, d5, d6)
#undef TROUPE_TEN
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
  expect_in_order<9>(std::make_index_sequence<9>{});
  expect_in_order<10>(std::make_index_sequence<10>{});
  expect_in_order<11>(std::make_index_sequence<11>{});
  expect_in_order<21>(std::make_index_sequence<21>{});
  expect_in_order<36>(std::make_index_sequence<36>{});
  expect_in_order<kMostFields>(std::make_index_sequence<kMostFields>{});
}

}  // namespace
}  // namespace troupe
