#pragma once

#include <complex>
#include <utility>

namespace troupe::test::reference {

/// Calls add(T{}) for each T.
template <class... T, class Add>
void for_types(Add&& add) {
  (add(T{}), ...);
}
template <class Add>
void for_numbers(Add&& add) {
  for_types<float, double, std::complex<float>, std::complex<double>>(std::forward<Add>(add));
}

}  // namespace troupe::test::reference
