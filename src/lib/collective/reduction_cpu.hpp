#pragma once

#include <cstddef>

#include <troupe/lib/collective.hpp>

/// Elementwise reductions on the host, with NCCL's meaning: integers wrap around, avg of integers
/// is the sum divided by the number of ranks, truncated. The narrow floats are not reduced as such
/// but widened to f32.
namespace troupe::host::cpu {

/// out[i] = a[i] op b[i], i < count; out may be a or b.
using Combine = void (*)(void* out, const void* a, const void* b, std::size_t count);

/// For any reducible dtype but the narrow ones; avg combines as sum does.
Combine combine_function(DType dtype, ReduceOp op);

/// out[i] = scalar * in[i], for any reducible dtype; `scalar`: an element. A narrow float is
/// rounded as its arithmetic would.
void scale_all(DType dtype, const void* scalar, const void* in, void* out, std::size_t count);

/// The end of an avg: data[i] /= ranks.
void divide_by_ranks(DType dtype, void* data, std::size_t count, int ranks);

/// f16, bf16, f8e4m3, f8e5m2
[[nodiscard]] bool is_narrow(DType dtype) noexcept;
void widen_all(DType dtype, const void* narrow, float* wide, std::size_t count);
void narrow_all(DType dtype, const float* wide, void* narrow, std::size_t count);

}  // namespace troupe::host::cpu
