#include "catalogue/values.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "catalogue/random.hpp"

namespace troupe::catalogue {
namespace {

struct Narrow {
  int exponent_bits, mantissa_bits;
};

Narrow narrow_format(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16: return {5, 10};
    case DType::bf16: return {8, 7};
    case DType::f8e4m3: return {4, 3};
    default: return {5, 2};
  }
}

/// Integers that the format has exactly are normal numbers of it, so there is no rounding and no
/// subnormal to think of.
std::uint32_t encode(Narrow format, double value) noexcept {
  const std::uint32_t sign =
      std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0u;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const auto mantissa =
      static_cast<std::uint32_t>(std::ldexp(fraction * 2 - 1, format.mantissa_bits));
  return sign | static_cast<std::uint32_t>(exponent - 1 + bias) << format.mantissa_bits | mantissa;
}

double decode(Narrow format, std::uint32_t bits) noexcept {
  const int m = format.mantissa_bits, e = format.exponent_bits;
  const bool negative = (bits >> (e + m) & 1u) != 0;
  const auto exponent = static_cast<int>(bits >> m & ((1u << e) - 1u));
  const auto mantissa = static_cast<double>(bits & ((1u << m) - 1u));
  const int bias = (1 << (e - 1)) - 1;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - bias - m)
                               : std::ldexp(1 + std::ldexp(mantissa, -m), exponent - bias);
  return negative ? -magnitude : magnitude;
}

template <class T>
double get(const std::byte* element) noexcept {
  T value;
  std::memcpy(&value, element, sizeof value);
  return static_cast<double>(value);
}

template <class T>
void set(std::byte* element, double number) noexcept {
  const auto value = static_cast<T>(number);
  std::memcpy(element, &value, sizeof value);
}

}  // namespace

double exact_limit(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16: return 2048;
    case DType::bf16: return 256;
    case DType::f8e4m3: return 16;
    case DType::f8e5m2: return 8;
    case DType::f32:
    case DType::c64: return 16'777'216;
    case DType::i8: return 127;
    case DType::u8: return 255;
    case DType::i32: return 2'147'483'647;
    case DType::u32: return 4'294'967'295;
    case DType::f64:
    case DType::c128:
    case DType::i64:
    case DType::u64: return 9'007'199'254'740'992;
    default: return 0;  // only moved
  }
}

bool is_complex(DType dtype) noexcept {
  return dtype == DType::c64 || dtype == DType::c128;
}

DType part_of(DType dtype) noexcept {
  return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
}

bool has_sign(DType dtype) noexcept {
  return dtype != DType::u8 && dtype != DType::u32 && dtype != DType::u64;
}

double load(DType dtype, const std::byte* element) noexcept {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return decode(narrow_format(dtype), static_cast<std::uint32_t>(get<std::uint16_t>(element)));
    case DType::f8e4m3:
    case DType::f8e5m2:
      return decode(narrow_format(dtype), static_cast<std::uint32_t>(get<std::uint8_t>(element)));
    case DType::f32:
    case DType::c64: return get<float>(element);
    case DType::f64:
    case DType::c128: return get<double>(element);
    case DType::i8: return get<std::int8_t>(element);
    case DType::u8: return get<std::uint8_t>(element);
    case DType::i32: return get<std::int32_t>(element);
    case DType::u32: return get<std::uint32_t>(element);
    case DType::i64: return get<std::int64_t>(element);
    case DType::u64: return get<std::uint64_t>(element);
    default: return 0;
  }
  return 0;
}

void store(DType dtype, std::byte* element, double value) noexcept {
  switch (dtype) {
    case DType::f16:
    case DType::bf16: return set<std::uint16_t>(element, encode(narrow_format(dtype), value));
    case DType::f8e4m3:
    case DType::f8e5m2: return set<std::uint8_t>(element, encode(narrow_format(dtype), value));
    case DType::f32: return set<float>(element, value);
    case DType::f64: return set<double>(element, value);
    case DType::c64:
    case DType::c128:
      std::memset(element, 0, size_of(dtype));
      return store(part_of(dtype), element, value);
    case DType::i8: return set<std::int8_t>(element, value);
    case DType::u8: return set<std::uint8_t>(element, value);
    case DType::i32: return set<std::int32_t>(element, value);
    case DType::u32: return set<std::uint32_t>(element, value);
    case DType::i64: return set<std::int64_t>(element, value);
    case DType::u64: return set<std::uint64_t>(element, value);
    default: return;
  }
}

std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  Random random(seed);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const auto word = random.next();
    std::memcpy(out.data() + at, &word, std::min<std::size_t>(8, bytes - at));
  }
  return out;
}

std::vector<std::byte> random_integers(DType dtype, std::uint64_t seed, std::size_t count) {
  if (is_complex(dtype)) return random_integers(part_of(dtype), seed, 2 * count);
  const auto size = size_of(dtype);
  if (exact_limit(dtype) == 0) return random_bytes(seed, count * size);
  std::vector<std::byte> out(count * size);
  Random random(seed);
  const auto largest = static_cast<std::int64_t>(kSmall);
  for (std::size_t i = 0; i < count; ++i) {
    store(dtype, out.data() + i * size,
          static_cast<double>(random.between(has_sign(dtype) ? -largest : 0, largest)));
  }
  return out;
}

}  // namespace troupe::catalogue
