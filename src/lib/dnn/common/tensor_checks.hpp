#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <troupe/lib/dnn/graph.hpp>

#include "common/wire/checker.hpp"

/// Checks of packed tensors.
namespace troupe::dnn {

/// What extents of operands are below; then no sum and no product of two of them overflows.
inline constexpr std::int64_t kLimit = std::int64_t{1} << 31;

/// The number of elements of a tensor; more than Checker::kMaxCount if it is larger than that.
inline std::int64_t volume(std::initializer_list<std::int64_t> extents) {
  std::int64_t elements = 1;
  for (const auto extent : extents) {
    if (__builtin_mul_overflow(elements, extent, &elements)) return wire::Checker::kMaxCount + 1;
  }
  return elements;
}

/// `operand` must hold a tensor of so many elements.
inline void add_tensor(wire::Checker& checks, const std::string& name, const Operand& operand,
                       std::int64_t elements, DType dtype) {
  checks.require(elements <= wire::Checker::kMaxCount, name + " is too large");
  if (!checks.ok()) return;
  checks.holds(name, operand, elements, size_of(dtype))
      .require(operand.offset % kAlignment == 0, name + " is not aligned to 16 bytes");
}

}  // namespace troupe::dnn
