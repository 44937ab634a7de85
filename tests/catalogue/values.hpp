#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/dtype.hpp>

/// Elements of every dtype as the oracle sees them.
namespace troupe::catalogue {

/// The largest n such that every integer from -n to n is a value of the dtype (from 0, if it has no
/// sign) and a double; of a complex one, of its parts. 0: of others, which are only moved.
double exact_limit(DType dtype) noexcept;
bool has_sign(DType dtype) noexcept;
/// The dtype of the two parts of a complex number; of others, their own.
DType part_of(DType dtype) noexcept;
bool is_complex(DType dtype) noexcept;

/// An element as a number, the real part of a complex one. Exact for small integers.
double load(DType dtype, const std::byte* element) noexcept;
/// The converse; the imaginary part is 0. `value` is an integer within exact_limit().
void store(DType dtype, std::byte* element, double value) noexcept;

/// `bytes` bytes that depend on the seed and on their place alone.
std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t bytes);
/// `count` elements that are small integers and depend on the seed and on their place alone.
std::vector<std::byte> random_integers(DType dtype, std::uint64_t seed, std::size_t count);
/// Magnitude of what random_integers() gives, at most.
inline constexpr double kSmall = 3;

}  // namespace troupe::catalogue
