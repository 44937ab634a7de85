#include "rank/store/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace troupe::rank_process {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// IEEE 754 binary16.
double widen_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(mantissa + 0x400, exponent - 25);
}

/// The floating-point numbers of an element; none: it is compared bit for bit.
std::vector<double> numbers(std::optional<DType> dtype, const std::byte* at) {
  if (!dtype) return {};
  switch (*dtype) {
    case DType::f16: return {widen_half(load<std::uint16_t>(at))};
    case DType::bf16:
      return {std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16)};
    case DType::f32: return {load<float>(at)};
    case DType::f64: return {load<double>(at)};
    case DType::c64: return {load<float>(at), load<float>(at + 4)};
    case DType::c128: return {load<double>(at), load<double>(at + 8)};
    default: return {};
  }
}

std::string text_of(const SavedEntry& entry, const std::byte* at) {
  const auto values = numbers(entry.dtype, at);
  const bool wide = entry.dtype == DType::f64 || entry.dtype == DType::c128;
  std::string text;
  for (const double value : values)
    text += (text.empty() ? "" : " + i ") + fmt::format("{:.{}g}", value, wide ? 17 : 9);
  if (!values.empty()) return text;
  if (entry.dtype) {
    switch (*entry.dtype) {
      case DType::i8: return std::to_string(load<std::int8_t>(at));
      case DType::u8: return std::to_string(load<std::uint8_t>(at));
      case DType::i16: return std::to_string(load<std::int16_t>(at));
      case DType::u16: return std::to_string(load<std::uint16_t>(at));
      case DType::i32: return std::to_string(load<std::int32_t>(at));
      case DType::u32: return std::to_string(load<std::uint32_t>(at));
      case DType::i64: return std::to_string(load<std::int64_t>(at));
      case DType::u64: return std::to_string(load<std::uint64_t>(at));
      default: break;
    }
  }
  constexpr std::size_t kMostBytes = 16;
  std::string hex = "0x";
  for (std::size_t i = 0; i < std::min<std::size_t>(entry.element_bytes, kMostBytes); ++i)
    hex += fmt::format("{:02x}", std::to_integer<unsigned>(at[i]));
  return entry.element_bytes > kMostBytes ? hex + "..." : hex;
}

double largest_magnitude(const SavedEntry& entry, std::span<const std::byte> values) {
  double largest = 0;
  for (std::uint64_t at = 0; at < values.size(); at += entry.element_bytes) {
    for (const double value : numbers(entry.dtype, values.data() + at)) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
  }
  return largest;
}

}  // namespace

std::optional<Difference> compare(const SavedEntry& entry, std::span<const std::byte> before,
                                  std::span<const std::byte> after, double tolerance) {
  const auto bytes = entry.element_bytes;
  check(before.size() == after.size() && before.size() == entry.count * bytes,
        "two versions of an entry have its size");
  if (before.empty() || std::memcmp(before.data(), after.data(), before.size()) == 0) return {};
  const double slack = tolerance > 0 ? tolerance * std::max(largest_magnitude(entry, before),
                                                            largest_magnitude(entry, after))
                                     : 0;
  const auto equal = [&](const std::byte* a, const std::byte* b) {
    if (std::memcmp(a, b, bytes) == 0) return true;
    const auto x = numbers(entry.dtype, a), y = numbers(entry.dtype, b);
    return slack > 0 && !x.empty() &&
           std::equal(x.begin(), x.end(), y.begin(),
                      [&](double p, double q) { return std::abs(p - q) <= slack; });
  };
  Difference difference;
  for (std::uint64_t i = 0; i < entry.count; ++i) {
    const auto *const a = before.data() + i * bytes, *const b = after.data() + i * bytes;
    if (equal(a, b)) continue;
    if (difference.count++ > 0) continue;
    difference.first = i;
    difference.before = text_of(entry, a);
    difference.after = text_of(entry, b);
  }
  return difference.count > 0 ? std::optional(difference) : std::nullopt;
}

}  // namespace troupe::rank_process
