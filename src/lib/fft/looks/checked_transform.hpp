#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>

#include <troupe/lib/fft.hpp>

#include "device_host/engine/product_checks.hpp"
#include "lib/fft/looks/sums.hpp"

/// The Fourier transforms that can be looked at, and what is to be known of them, on both engines.
namespace troupe::host {

/// One side of a batch of transforms, and its weights.
struct CheckedSide {
  fft::Layout layout;
  bool complex = false, half = false;  ///< its elements are complex; of a half spectrum
  std::array<sums::FftWeights, fft::kMaxRank> weights;
};
struct CheckedTransform {
  CheckedSide input, output;
  std::int64_t batch = 0, volume = 1;  ///< elements of one transform in full
  bool lopsided = false;
  bool destroys_input = false;
  sums::Rounding rounding;
  std::uint64_t input_bytes = 0;  ///< from its first element to behind the last one
};

/// Nothing: the transform cannot be looked at, or is empty.
inline std::optional<CheckedTransform> checked_transform(const fft::Transform& op, bool in_place) {
  using fft::Kind;
  if (op.batch == 0) return std::nullopt;
  CheckedTransform of;
  of.input.layout = op.input_layout(), of.output.layout = op.output_layout();
  of.input.complex = op.kind != Kind::real_to_complex;
  of.output.complex = op.kind != Kind::complex_to_real;
  of.input.half = !of.output.complex, of.output.half = !of.input.complex;
  of.lopsided = of.output.half;
  of.batch = op.batch;
  const bool inverse = op.kind == Kind::inverse || op.kind == Kind::complex_to_real;
  for (std::size_t i = 0; i < op.rank; ++i) {
    const auto n = op.extents[i];
    if (n >= sums::kLargestExtent) return std::nullopt;
    of.volume *= n;
    const bool last = i + 1 == op.rank;
    of.input.weights[i] = {n, true, inverse, of.lopsided && last};
    of.output.weights[i] = {n, false, inverse, of.lopsided && last};
  }
  of.destroys_input = in_place || op.kind == Kind::complex_to_real;
  const auto& input = of.input.layout;
  of.input_bytes = static_cast<std::uint64_t>(input.span(op.batch)) * input.bytes;
  switch (op.dtype.value) {
    case DType::c64: of.rounding.sum = 0x1p-24, of.rounding.tiny_sum = 0x1p-126; break;
    case DType::c128: of.rounding.sum = 0x1p-53, of.rounding.tiny_sum = 0x1p-1022; break;
    default:  // a GPU computes in these
      of.rounding.sum = of.rounding.output = op.dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
      of.rounding.tiny_output = op.dtype == DType::f16 ? 0x1p-24 : 0x1p-126;
  }
  return of;
}

/// Rough rates of an engine, in a nanosecond.
struct FftRates {
  double flops = 1;     ///< of 32 bits
  double bytes = 1;     ///< of transforms, and of copies
  double elements = 1;  ///< that are added up
  double weights = 1;   ///< that are made, for each index of each dimension
  double start = 1000;  ///< of a transform, in nanoseconds
  double check = 1000;  ///< of a look
};
inline CheckCost cost_of(const CheckedTransform& of, const FftRates& rates) noexcept {
  const auto elements = [&](const CheckedSide& side) {
    return static_cast<double>(of.batch) * static_cast<double>(side.layout.volume());
  };
  const double input = elements(of.input), output = elements(of.output);
  const double bytes = input * of.input.layout.bytes + output * of.output.layout.bytes;
  const double volume = static_cast<double>(of.volume);
  const double flops = 5 * static_cast<double>(of.batch) * volume * std::log2(volume + 1) *
                       (of.input.complex && of.output.complex ? 1 : 0.5) *
                       (of.rounding.sum < 0x1p-24 ? 2 : 1);
  double weights = 0;
  for (const auto& dimension : of.input.weights) weights += 2 * static_cast<double>(dimension.n);
  const double copied = of.destroys_input ? 2 * static_cast<double>(of.input_bytes) : 0;
  return {std::max(flops / rates.flops, bytes / rates.bytes) + rates.start,
          (input + output) / rates.elements + weights / rates.weights + copied / rates.bytes +
              rates.check};
}

/// The finding of transform `number` of the batch.
inline std::string describe(const CheckedTransform& of, std::int64_t number,
                            const sums::FftJudgement& judged) {
  std::string extents;
  for (const auto& weights : of.input.weights) {
    if (weights.n != 1 || extents.empty())
      extents += (extents.empty() ? "" : " x ") + std::to_string(weights.n);
  }
  return fmt::format(
      "transform {} of {}, of {}: its weighed sum is {} {:+}i instead of {} {:+}i, "
      "where rounding allows {:.3g}",
      number, of.batch, extents, judged.actual.re, judged.actual.im, judged.expected.re,
      judged.expected.im, judged.bound);
}

}  // namespace troupe::host
