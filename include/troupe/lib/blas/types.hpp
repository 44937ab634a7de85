#pragma once

#include <troupe/lib/matrix.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe::blas {

inline constexpr DTypes kNumbers = DTypes::of({DType::f32, DType::f64, DType::c64, DType::c128});
/// f16 and bf16 beside them, which are computed in f32 and rounded once.
inline constexpr DTypes kNumbersAndNarrow =
    DTypes::of({DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128});

}  // namespace troupe::blas
