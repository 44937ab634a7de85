#pragma once

#include <cstdint>

#include <troupe/lib/matrix.hpp>
#include <troupe/lib/operation.hpp>

namespace troupe::solver {

using blas::Diagonal;
using blas::Side;
using blas::Transpose;
using blas::Uplo;

inline constexpr DTypes kDTypes = DTypes::of({DType::f32, DType::f64, DType::c64, DType::c128});
/// The info of an operation that iterates (eigenvalues, singular values, gesv, gels) if the matrix
/// has an element that is infinite or not a number. Then the values or the solution are NaN, and
/// what else would be computed is undefined. Elements that the operation does not read, as in the
/// other half of a Hermitian matrix, do not count.
inline constexpr std::int32_t kNotFinite = INT32_MAX;

/// On the rank's own device only.
inline constexpr Traits kComputesHere{.repeatable = true, .capturable = true};
/// The traits of what works on the host as well, or waits for the device.
inline constexpr Traits kBlocksHere{.repeatable = true, .blocking = true};

}  // namespace troupe::solver
