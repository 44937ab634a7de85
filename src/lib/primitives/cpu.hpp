#pragma once

#include <troupe/lib/primitives.hpp>

#include "common/core/narrow.hpp"
#include "device_host/engine/cpu/library.hpp"
#include "lib/primitives/common/visit.hpp"

namespace troupe::host::cpu {

/// An element as it is computed with: f16 and bf16 as float.
template <class T>
auto number(T element) {
  if constexpr (primitives::kNarrowFloats.has(dtype_of<T>)) {
    return to_float(element);
  } else {
    return element;
  }
}
template <class T>
using NumberOf = decltype(number(T{}));
template <class T, class V>
T rounded(V value) {
  if constexpr (primitives::kNarrowFloats.has(dtype_of<T>)) {
    return from_float<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
bool equal(T a, T b) {
  return number(a) == number(b);
}

class Primitives final : public LibraryHalfOf<Primitives, primitives::Operations> {
 public:
  explicit Primitives(Services& its_services) : services(its_services) {}

  // For its operations.

  Services& services;
};

}  // namespace troupe::host::cpu
