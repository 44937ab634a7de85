#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/operation_info.hpp>

namespace troupe::wire {

/// A collective as the ranks compare it.
struct CollectiveCall {
  std::uint32_t opcode = 0;
  std::uint32_t refused = 0;  ///< 1: the rank finds its own arguments wrong, and takes no part
  Agreement agreement;

  bool operator==(const CollectiveCall&) const = default;
};

/// What is called: an operation that has an agreement().
CollectiveCall call_of(const OperationInfo& info, const std::byte* op);

/// `collective.all_reduce of 64 f32, sum`
std::string to_string(const CollectiveCall& call);

/// What ranks that call different collectives are told: which rank calls what. `calls`: by rank, in
/// any order.
std::string describe_difference(std::vector<std::pair<int, std::string>> calls);

}  // namespace troupe::wire
