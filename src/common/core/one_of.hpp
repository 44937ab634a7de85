#pragma once

#include <type_traits>

namespace troupe {

/// True if T is one of these types.
template <class T, class... Types>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);

}  // namespace troupe
