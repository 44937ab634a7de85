#include "values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

namespace troupe::perf {
namespace {

constexpr int kTerms = 3;    ///< of a sum that are not zero
constexpr int kFactors = 2;  ///< of a product that are not one

std::uint64_t mixed(std::uint64_t x) noexcept {  // the finaliser of SplitMix64
  x += 0x9e37'79b9'7f4a'7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebull;
  return x ^ (x >> 31);
}

std::uint64_t hash(const Case& one, int rank, std::int64_t place) noexcept {
  return mixed(mixed(one.repetition * 65'537 + static_cast<std::uint64_t>(rank)) +
               static_cast<std::uint64_t>(place));
}

/// What a rank has for a reduction at a place.
double term(const Case& one, int rank, std::int64_t place) noexcept {
  const auto bits = hash(one, rank, place);
  const auto turn = static_cast<int>((place + rank) % one.size);
  switch (one.call.reduction) {
    case Reduction::prod: return turn < kFactors ? static_cast<double>(1 + bits % 2) : 1;
    case Reduction::min:
    case Reduction::max: return static_cast<double>(bits % 8);
    case Reduction::mulsum: return turn < kTerms ? static_cast<double>(bits % 2) : 0;
    default: return turn < kTerms ? static_cast<double>(1 + bits % 2) : 0;
  }
}

double reduced(const Case& one, std::int64_t place) noexcept {
  const auto op = one.call.reduction;
  double result = term(one, 0, place) * (op == Reduction::mulsum ? scalar_of(0) : 1);
  for (int rank = 1; rank < one.size; ++rank) {
    const double next = term(one, rank, place);
    switch (op) {
      case Reduction::prod: result *= next; break;
      case Reduction::min: result = std::min(result, next); break;
      case Reduction::max: result = std::max(result, next); break;
      case Reduction::mulsum: result += next * scalar_of(rank); break;
      default: result += next;
    }
  }
  return op == Reduction::avg ? result / one.size : result;
}

/// How a floating-point format is laid out; a format without mantissa is none.
struct Format {
  int exponent = 0, mantissa = 0;
  bool infinite = true;  ///< the largest exponent is for infinities and NaN alone
};
Format format_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16: return {5, 10};
    case DType::bf16: return {8, 7};
    case DType::f32: return {8, 23};
    case DType::f64: return {11, 52};
    case DType::f8e4m3: return {4, 3, false};
    case DType::f8e5m2: return {5, 2};
    default: return {};
  }
}

double decoded_float(std::uint64_t bits, const Format& format) noexcept {
  const int bias = (1 << (format.exponent - 1)) - 1;
  const auto sign = bits >> (format.exponent + format.mantissa) & 1;
  const auto exponent = static_cast<int>(bits >> format.mantissa & ((1u << format.exponent) - 1));
  const auto fraction = bits & ((std::uint64_t{1} << format.mantissa) - 1);
  const bool last = exponent == (1 << format.exponent) - 1;
  const bool all_ones = fraction == (std::uint64_t{1} << format.mantissa) - 1;
  if (last && (format.infinite || all_ones))
    return format.infinite && fraction == 0 ? (sign != 0 ? -HUGE_VAL : HUGE_VAL) : std::nan("");
  const double value =
      exponent == 0
          ? std::ldexp(static_cast<double>(fraction), 1 - bias - format.mantissa)
          : std::ldexp(static_cast<double>(fraction + (std::uint64_t{1} << format.mantissa)),
                       exponent - bias - format.mantissa);
  return sign != 0 ? -value : value;
}

/// The bits of a value that is not negative, and which the format has, or else of the one below.
std::uint64_t encoded_float(double value, const Format& format) noexcept {
  if (value == 0) return 0;
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const auto scaled =
      static_cast<std::uint64_t>(std::ldexp(value, format.mantissa - exponent));  // with its 1
  const auto normal = std::uint64_t{1} << format.mantissa;
  if (scaled < normal) return scaled;
  return (static_cast<std::uint64_t>(exponent + bias) << format.mantissa) + (scaled - normal);
}

std::uint64_t encoded(double value, DType dtype) noexcept {
  const auto format = format_of(dtype);
  return format.mantissa != 0 ? encoded_float(value, format)
                              : static_cast<std::uint64_t>(std::floor(value));
}

std::uint64_t load(const std::byte* at, std::size_t bytes) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);  // little-endian, as GPUs are
  return bits;
}

/// The elements of one period from the place `first` on, of a rank's source or of the result.
std::vector<std::byte> period(const Case& one, int rank, std::int64_t first, bool result) {
  const auto size = size_of(one.call.dtype);
  std::vector<std::byte> table(static_cast<std::size_t>(kPeriod) * size);
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    const auto place = (first + i) % kPeriod;
    const auto bits = !traits(one.call.operation).reduces ? hash(one, rank, place)
                      : result ? encoded(reduced(one, place), one.call.dtype)
                               : encoded(term(one, rank, place), one.call.dtype);
    std::memcpy(table.data() + static_cast<std::size_t>(i) * size, &bits, size);
  }
  return table;
}

/// By how much an average may be off: it is a sum of at most kTerms numbers, each divided, or
/// the sum divided; each step rounds by half a unit of the largest number on the way at most.
double tolerance(const Case& one) noexcept {
  const auto format = format_of(one.call.dtype);
  const bool power_of_two = (one.size & (one.size - 1)) == 0;
  if (one.call.reduction != Reduction::avg || format.mantissa == 0 || power_of_two) return 0;
  const double largest = 2.0 * kTerms / one.size;
  const double smallest = std::ldexp(1.0, 2 - (1 << (format.exponent - 1)));
  return (kTerms + 2) * std::ldexp(std::max(largest, smallest), -format.mantissa - 1);
}

std::int64_t wrong_in_piece(const Case& one, const std::vector<std::byte>& expected,
                            std::span<const std::byte> got) {
  const auto size = size_of(one.call.dtype);
  const auto format = format_of(one.call.dtype);
  const double allowed = traits(one.call.operation).reduces ? tolerance(one) : 0;
  std::int64_t wrong = 0;
  for (std::size_t begin = 0; begin < got.size(); begin += expected.size()) {
    const auto block = got.subspan(begin, std::min(expected.size(), got.size() - begin));
    if (std::memcmp(block.data(), expected.data(), block.size()) == 0) continue;
    for (std::size_t at = 0; at < block.size(); at += size) {
      const auto bits = load(block.data() + at, size), want = load(expected.data() + at, size);
      if (bits == want) continue;
      const bool near = allowed > 0 && std::abs(decoded_float(bits, format) -
                                                decoded_float(want, format)) <= allowed;
      wrong += near ? 0 : 1;
    }
  }
  return wrong;
}

}  // namespace

std::vector<std::byte> source_of(const Case& one, int rank, std::int64_t first,
                                 std::int64_t elements) {
  const auto table = period(one, rank, first, false);
  std::vector<std::byte> contents(static_cast<std::size_t>(elements) * size_of(one.call.dtype));
  for (std::size_t begin = 0; begin < contents.size(); begin += table.size())
    std::memcpy(contents.data() + begin, table.data(),
                std::min(table.size(), contents.size() - begin));
  return contents;
}

std::uint64_t bits_of(int value, DType dtype) {
  return encoded(value, dtype);
}

std::int64_t count_wrong(const Case& one, int rank, const ReadPiece& read) {
  const auto& call = one.call;
  // `elements` from the place `first` of a rank's source on, in the destination from `at` on.
  const auto run = [&](int origin, std::int64_t first, std::int64_t at, std::int64_t elements) {
    std::int64_t wrong = 0;
    for (std::int64_t done = 0; done < elements; done += kPiece) {
      const auto piece = read(at + done, std::min(kPiece, elements - done));
      wrong += wrong_in_piece(one, period(one, origin, first + done, true), piece);
    }
    return wrong;
  };
  const auto whole = [&](int origin, std::int64_t first) {
    return run(origin, first, 0, call.count);
  };
  const auto runs_of_all = [&](std::int64_t first) {
    std::int64_t wrong = 0;
    for (int origin = 0; origin < one.size; ++origin)
      wrong += run(origin, first, call.count * origin, call.count);
    return wrong;
  };
  const auto runs_of_parts = [&] {
    const auto lengths = received_parts(call, rank, one.size);
    std::int64_t wrong = 0, at = 0;
    for (int origin = 0; origin < one.size; ++origin) {
      const auto sent = sent_parts(call, origin, one.size);
      const auto length = lengths[static_cast<std::size_t>(origin)];
      wrong += run(origin, std::accumulate(sent.begin(), sent.begin() + rank, std::int64_t{0}), at,
                   length);
      at += length;
    }
    return wrong;
  };
  const auto own = call.count * rank;
  const int before = (rank + one.size - 1) % one.size, next = (rank + 1) % one.size;
  switch (call.operation) {
    case Operation::all_reduce: return whole(rank, 0);
    case Operation::reduce: return rank == call.root ? whole(rank, 0) : 0;
    case Operation::broadcast: return whole(call.root, 0);
    case Operation::all_gather: return runs_of_all(0);
    case Operation::gather: return rank == call.root ? runs_of_all(0) : 0;
    case Operation::scatter: return whole(call.root, own);
    case Operation::reduce_scatter: return whole(rank, own);
    case Operation::all_to_all: return runs_of_all(own);
    case Operation::all_to_all_v: return runs_of_parts();
    case Operation::fetch: return whole(next, 0);
    case Operation::send_recv:
    case Operation::put:
    case Operation::tell: return whole(before, 0);
  }
  return 0;
}

}  // namespace troupe::perf
