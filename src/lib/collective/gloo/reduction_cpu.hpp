#pragma once

#include <cstddef>

#include <troupe/lib/collective.hpp>

/// Elementwise reductions on the host, with NCCL's meaning: integers wrap around, avg of integers
/// is the sum divided by the number of ranks, truncated. A NaN is the smallest and the largest of
/// numbers, which NCCL does not promise. The narrow floats are not reduced as such but widened to
/// f32.
namespace troupe::host::cpu {

/// out[i] = a[i] op b[i], i < count; out may be a or b.
using Combine = void (*)(void* out, const void* a, const void* b, std::size_t count);

/// For any reducible dtype but the narrow ones; avg combines as sum does.
Combine combine_function(DType dtype, ReduceOp op);

/// out[i] = scalar * in[i], for any reducible dtype; `scalar`: an element. A narrow float is
/// rounded as its arithmetic would.
void scale_all(DType dtype, const void* scalar, const void* in, void* out, std::size_t count);

/// True if an avg is divided in two steps, as that of floats is: its sum may leave the range of the
/// type though the mean does not. Before the sum it is divided by the power of two that is not
/// below the number of ranks, which rounds only numbers near the smallest one, and behind it by the
/// rest.
[[nodiscard]] bool divides_before(DType dtype) noexcept;
/// The first step, for f32 and f64: out[i] = in[i] / that power of two; out may be in.
void divide_before(DType dtype, const void* in, void* out, std::size_t count, int ranks);
/// The second step, or the whole division of integers.
void divide_behind(DType dtype, void* data, std::size_t count, int ranks);

/// f16, bf16, f8e4m3, f8e5m2
[[nodiscard]] bool is_narrow(DType dtype) noexcept;
void widen_all(DType dtype, const void* narrow, float* wide, std::size_t count);
void narrow_all(DType dtype, const float* wide, void* narrow, std::size_t count);

}  // namespace troupe::host::cpu
