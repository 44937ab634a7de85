#pragma once

#include <type_traits>

#include "common/core/narrow.hpp"

/// Numbers of any real type in f64, and back with one rounding.
namespace troupe::dnn {

template <class T>
double wide(T value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<double>(to_float(value));
}
template <class T>
T narrow_to(double value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return from_float<T>(static_cast<float>(value));
}

}  // namespace troupe::dnn
