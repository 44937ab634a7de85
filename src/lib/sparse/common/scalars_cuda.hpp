#pragma once

#include <bit>

#include "device_host/engine/cuda/library.hpp"

namespace troupe::host::cuda {

/// A scalar of an operation, for a kernel that knows complex numbers as CUDA's libraries do.
template <class T>
kernels::ScalarValue<Native<T>> native_scalar(const Scalar& its_scalar, const Call& call) {
  const auto value = scalar<T>(its_scalar, call);
  return {reinterpret_cast<const Native<T>*>(value.device), std::bit_cast<Native<T>>(value.value)};
}

}  // namespace troupe::host::cuda
