#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/lib/dnn/rnn.hpp>

namespace troupe::dnn {

/// The lengths of a network's sequences, from the inline bytes of a record that checks out.
std::vector<std::int32_t> rnn_lengths(const RnnShape& shape, std::span<const std::byte> data);

/// Errors: invalid, if the reserve of an operation has less bytes than the engine needs.
template <class Op>
Result<void> check_reserve(const Op& op, std::int64_t needed) {
  if (op.reserve.bytes >= static_cast<std::uint64_t>(needed)) return {};
  return Error{Errc::invalid, 0,
               std::string(Op::kName) + ": reserve needs " + std::to_string(needed) +
                   " bytes, has " + std::to_string(op.reserve.bytes)};
}

}  // namespace troupe::dnn
