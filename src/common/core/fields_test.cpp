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
struct Fourteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n;
};

TEST(Fields, AreCountedAndTiedInOrder) {
  static_assert(detail::count_fields<Nothing>() == 0);
  static_assert(detail::count_fields<One>() == 1);
  static_assert(detail::count_fields<Mixed>() == 6);
  static_assert(detail::count_fields<Fourteen>() == kMostFields);
  Mixed mixed;
  std::get<0>(tie_fields(mixed)) = 7;
  std::get<4>(tie_fields(mixed)) = "y";
  EXPECT_EQ(mixed.number, 7);
  EXPECT_EQ(mixed.text, "y");
  const Fourteen numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  int expected = 1;
  for_each_field(numbers, [&](int number) { EXPECT_EQ(number, expected++); });
  EXPECT_EQ(expected, 15);
}

}  // namespace
}  // namespace troupe
