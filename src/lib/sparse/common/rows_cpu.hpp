#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <troupe/lib/sparse.hpp>

#include "device_host/engine/cpu/library.hpp"

/// What conversions of sparse matrices on the cpu engine have in common.
namespace troupe::host::cpu {

/// The elements of a row, of those that there are, whatever row_begin says.
struct RowRange {
  std::int64_t begin, end;
};
template <class I>
RowRange row_range(const I* row_begin, std::int64_t row, std::int64_t count) {
  const auto begin = std::clamp<std::int64_t>(row_begin[row], 0, count);
  return {begin, std::clamp<std::int64_t>(row_begin[row + 1], begin, count)};
}

/// nullptr if the operand is absent.
template <class T>
T* if_present(const Operand& operand, const Call& call) {
  return operand.present() ? call.at<T>(operand) : nullptr;
}

/// A count, as an offset of type I: where I cannot count so far it stands as its maximum, and the
/// verdict refuses the result.
template <class I>
I as_offset(std::int64_t count) {
  return static_cast<I>(std::min<std::int64_t>(count, std::numeric_limits<I>::max()));
}

}  // namespace troupe::host::cpu
