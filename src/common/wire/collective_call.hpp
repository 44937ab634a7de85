#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/operations.hpp>

namespace troupe::wire {

/// What all ranks must say alike in a collective: everything but where their own data is.
struct CollectiveCall {
  static constexpr std::uint32_t kNone = ~0u;  ///< the operation has no such argument

  std::uint32_t opcode = 0;
  std::uint32_t dtype = kNone;
  std::uint32_t op = kNone;    ///< ReduceOp
  std::uint32_t root = kNone;  ///< rank
  std::uint32_t refused = 0;   ///< 1: the rank finds its own arguments wrong, and takes no part
  std::uint64_t count = 0;     ///< elements

  bool operator==(const CollectiveCall&) const = default;
};

template <class Op>
CollectiveCall call_of(const Op& op) {
  CollectiveCall call{.opcode = opcode_of<Op>};
  if constexpr (requires { op.count; }) {
    call.dtype = static_cast<std::uint32_t>(DType(op.dtype));
    call.count = op.count;
  }
  if constexpr (requires { op.op; }) call.op = static_cast<std::uint32_t>(op.op);
  if constexpr (requires { op.root; }) call.root = op.root;
  return call;
}

/// `collective.all_reduce of 64 f32, sum`
std::string to_string(const CollectiveCall& call);

/// What ranks that call different collectives are told: which rank calls what. `calls`: by rank, in
/// any order.
std::string describe_difference(std::vector<std::pair<int, std::string>> calls);

}  // namespace troupe::wire
