#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace troupe {

/// The most fields that tie_fields() takes.
inline constexpr std::size_t kMostFields = 37;

namespace detail {

/// Stands for a value of any type where fields are counted.
struct AnyField {
  template <class T>
  operator T() const;
};

template <class T, std::size_t... I>
constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), AnyField{})...};
  };
}

template <class T, std::size_t N = kMostFields>
constexpr std::size_t count_fields() {
  static_assert(!takes_fields<T>(std::make_index_sequence<kMostFields + 1>{}),
                "more fields than tie_fields() takes");
  if constexpr (N == 0 || takes_fields<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return count_fields<T, N - 1>();
  }
}

}  // namespace detail

// clang-format off
#define TROUPE_10_FIELDS a0, a1, a2, a3, a4, a5, a6, a7, a8, a9
#define TROUPE_20_FIELDS TROUPE_10_FIELDS, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9
#define TROUPE_30_FIELDS TROUPE_20_FIELDS, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9
#define TROUPE_TIE(number, ...)          \
  if constexpr (count == (number)) {     \
    auto& [__VA_ARGS__] = from;          \
    return std::tie(__VA_ARGS__);        \
  }

/// References to all fields of a struct, in the order of their declaration. For aggregates without
/// base classes, arrays, std::optional and std::variant among their own fields.
template <class T>
constexpr auto tie_fields(T& from) {
  using Plain = std::remove_const_t<T>;
  static_assert(std::is_aggregate_v<Plain>);
  constexpr std::size_t count = detail::count_fields<Plain>();
  if constexpr (count == 0) return std::tie();
  TROUPE_TIE(1, a0)
  TROUPE_TIE(2, a0, a1)
  TROUPE_TIE(3, a0, a1, a2)
  TROUPE_TIE(4, a0, a1, a2, a3)
  TROUPE_TIE(5, a0, a1, a2, a3, a4)
  TROUPE_TIE(6, a0, a1, a2, a3, a4, a5)
  TROUPE_TIE(7, a0, a1, a2, a3, a4, a5, a6)
  TROUPE_TIE(8, a0, a1, a2, a3, a4, a5, a6, a7)
  TROUPE_TIE(9, a0, a1, a2, a3, a4, a5, a6, a7, a8)
  TROUPE_TIE(10, TROUPE_10_FIELDS)
  TROUPE_TIE(11, TROUPE_10_FIELDS, b0)
  TROUPE_TIE(12, TROUPE_10_FIELDS, b0, b1)
  TROUPE_TIE(13, TROUPE_10_FIELDS, b0, b1, b2)
  TROUPE_TIE(14, TROUPE_10_FIELDS, b0, b1, b2, b3)
  TROUPE_TIE(15, TROUPE_10_FIELDS, b0, b1, b2, b3, b4)
  TROUPE_TIE(16, TROUPE_10_FIELDS, b0, b1, b2, b3, b4, b5)
  TROUPE_TIE(17, TROUPE_10_FIELDS, b0, b1, b2, b3, b4, b5, b6)
  TROUPE_TIE(18, TROUPE_10_FIELDS, b0, b1, b2, b3, b4, b5, b6, b7)
  TROUPE_TIE(19, TROUPE_10_FIELDS, b0, b1, b2, b3, b4, b5, b6, b7, b8)
  TROUPE_TIE(20, TROUPE_20_FIELDS)
  TROUPE_TIE(21, TROUPE_20_FIELDS, c0)
  TROUPE_TIE(22, TROUPE_20_FIELDS, c0, c1)
  TROUPE_TIE(23, TROUPE_20_FIELDS, c0, c1, c2)
  TROUPE_TIE(24, TROUPE_20_FIELDS, c0, c1, c2, c3)
  TROUPE_TIE(25, TROUPE_20_FIELDS, c0, c1, c2, c3, c4)
  TROUPE_TIE(26, TROUPE_20_FIELDS, c0, c1, c2, c3, c4, c5)
  TROUPE_TIE(27, TROUPE_20_FIELDS, c0, c1, c2, c3, c4, c5, c6)
  TROUPE_TIE(28, TROUPE_20_FIELDS, c0, c1, c2, c3, c4, c5, c6, c7)
  TROUPE_TIE(29, TROUPE_20_FIELDS, c0, c1, c2, c3, c4, c5, c6, c7, c8)
  TROUPE_TIE(30, TROUPE_30_FIELDS)
  TROUPE_TIE(31, TROUPE_30_FIELDS, d0)
  TROUPE_TIE(32, TROUPE_30_FIELDS, d0, d1)
  TROUPE_TIE(33, TROUPE_30_FIELDS, d0, d1, d2)
  TROUPE_TIE(34, TROUPE_30_FIELDS, d0, d1, d2, d3)
  TROUPE_TIE(35, TROUPE_30_FIELDS, d0, d1, d2, d3, d4)
  TROUPE_TIE(36, TROUPE_30_FIELDS, d0, d1, d2, d3, d4, d5)
  TROUPE_TIE(37, TROUPE_30_FIELDS, d0, d1, d2, d3, d4, d5, d6)
}
#undef TROUPE_TIE
#undef TROUPE_30_FIELDS
#undef TROUPE_20_FIELDS
#undef TROUPE_10_FIELDS
// clang-format on

/// Calls visit(field) for each field of a struct, in the order of their declaration: see
/// tie_fields().
template <class T, class Visit>
constexpr void for_each_field(T& from, Visit&& visit) {
  std::apply([&](auto&... field) { (visit(field), ...); }, tie_fields(from));
}

}  // namespace troupe
