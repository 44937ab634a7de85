#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <troupe/lib/operation.hpp>

namespace troupe::primitives {

/// The error of an operation that has found more than there is room for.
template <class Op>
Result<void> overflow(const Op& op, std::int64_t found, std::int64_t capacity) {
  if (found <= capacity || op.on_failure == OnFailure::report) return {};
  return Error{Errc::invalid, 0,
               std::string(Op::kName) + ": overflow: " + std::to_string(found) +
                   " elements, room for " + std::to_string(capacity)};
}
/// `cell`: how many it found.
template <class Op>
Result<void> overflow(const Op& op, const std::byte* cell) {
  std::int64_t found = 0;
  std::memcpy(&found, cell, sizeof found);
  return overflow(op, found, op.capacity);
}

}  // namespace troupe::primitives
