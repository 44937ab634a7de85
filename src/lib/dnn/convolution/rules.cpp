#include <troupe/lib/dnn.hpp>

#include <string>

#include "common/wire/checker.hpp"
#include "lib/dnn/common/tensor_checks.hpp"

namespace troupe::dnn {

using wire::checker;

namespace {

std::int64_t product(const Convolution::PerDimension& extents, std::uint32_t rank) {
  auto all = extents;
  std::fill(all.begin() + rank, all.end(), 1);
  return volume({all[0], all[1], all[2]});
}

}  // namespace

Convolution::PerDimension Convolution::output_extents() const noexcept {
  PerDimension output{1, 1, 1};
  for (std::uint32_t i = 0; i < rank; ++i) {
    output[i] =
        (extents[i] + padding_before[i] + padding_after[i] - dilations[i] * (filter[i] - 1) - 1) /
            strides[i] +
        1;
  }
  return output;
}

Result<void> Convolution::check() const {
  auto checks = checker(*this);
  checks.require(rank >= 1 && rank <= kMaxSpatial, "a convolution has 1 to 3 spatial dimensions")
      .require(batch >= 0 && batch < kLimit, "the batch is negative or too large")
      .require(input_channels >= 1 && input_channels < kLimit && output_channels >= 1 &&
                   output_channels < kLimit,
               "a number of channels is not positive, or too large")
      .require(groups >= 1 && input_channels % std::max<std::int64_t>(groups, 1) == 0 &&
                   output_channels % std::max<std::int64_t>(groups, 1) == 0,
               "the groups do not divide both numbers of channels");
  const auto within = [](std::int64_t value, std::int64_t least) {
    return value >= least && value < kLimit;
  };
  for (std::uint32_t i = 0; i < kMaxSpatial && checks.ok(); ++i) {
    if (i >= rank) {
      checks.require(extents[i] == 0 && filter[i] == 0 && padding_before[i] == 0 &&
                         padding_after[i] == 0 && strides[i] == 0 && dilations[i] == 0,
                     "a number beyond the rank is not 0");
      continue;
    }
    checks
        .require(within(extents[i], 1) && within(filter[i], 1),
                 "an extent is not positive, or too large")
        .require(within(padding_before[i], 0) && within(padding_after[i], 0),
                 "a padding is negative or too large")
        .require(within(strides[i], 1) && within(dilations[i], 1),
                 "a stride or a dilation is not positive, or too large");
    if (!checks.ok()) break;
    checks.require(
        dilations[i] * (filter[i] - 1) < extents[i] + padding_before[i] + padding_after[i],
        "the filter is larger than the padded input");
  }
  if (!checks.ok()) return checks.result();
  add_tensor(checks, "x", x, volume({batch, product(extents, rank), input_channels}), dtype);
  add_tensor(checks, "w", w,
             volume({output_channels, product(filter, rank), input_channels / groups}), dtype);
  if (bias.present()) add_tensor(checks, "bias", bias, output_channels, dtype);
  add_tensor(checks, "y", y, volume({batch, product(output_extents(), rank), output_channels}),
             dtype);
  return checks.result();
}

std::uint64_t Convolution::written(const Operand& operand) const noexcept {
  if (&operand != &y) return 0;
  return static_cast<std::uint64_t>(
             volume({batch, product(output_extents(), rank), output_channels})) *
         size_of(dtype);
}

}  // namespace troupe::dnn
