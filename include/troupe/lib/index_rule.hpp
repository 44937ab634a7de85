#pragma once

#include <cstdint>
#include <string_view>

#include <troupe/dtype.hpp>
#include <troupe/lib/operation.hpp>

/// What an operation demands of indices that stand in device memory, as data: sparse::Examine finds
/// out whether it holds.
namespace troupe {

/// An array of indices, i32 or i64.
struct IndexArray {
  std::string_view name;  ///< the operand's; at most 15 letters, which live for ever
  Operand range;
  std::int64_t length = 0;  ///< 0: there is nothing to look at
  std::int64_t bound = 0;   ///< the last offset; of places: all are below
};

/// Two arrays of which one, or the other, may have no elements. Those of `inner` are places: each
/// is in [0, bound).
struct IndexRule {
  enum Demand : std::uint32_t {
    offsets =
        1,  ///< `outer` says where rows begin in `inner`, and end; without it: has places, too
    ordered = 2,  ///< places of `outer` ascend; the same may stand there more than once
    padding = 4,  ///< an element of `inner` that is -1 is no place
    sorted = 8    ///< `inner` ascends within each row, and no place occurs twice there
  };
  DType dtype{};
  std::uint32_t demands = 0;
  std::int64_t step = 1;  ///< offsets are multiples of it
  IndexArray outer, inner;
};

}  // namespace troupe
