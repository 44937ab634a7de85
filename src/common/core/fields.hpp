#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace troupe {

/// The most fields that tie_fields() takes.
inline constexpr std::size_t kMostFields = 18;

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

/// References to all fields of a struct, in the order of their declaration. For aggregates without
/// base classes, arrays, std::optional and std::variant among their own fields.
template <class T>
constexpr auto tie_fields(T& from) {
  using Plain = std::remove_const_t<T>;
  static_assert(std::is_aggregate_v<Plain>);
  constexpr std::size_t count = detail::count_fields<Plain>();
  if constexpr (count == 0) {
    return std::tie();
  } else if constexpr (count == 1) {
    auto& [a] = from;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = from;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = from;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = from;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = from;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = from;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = from;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = from;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = from;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = from;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  }
}

/// Calls visit(field) for each field of a struct, in the order of their declaration: see
/// tie_fields().
template <class T, class Visit>
constexpr void for_each_field(T& from, Visit&& visit) {
  std::apply([&](auto&... field) { (visit(field), ...); }, tie_fields(from));
}

}  // namespace troupe
