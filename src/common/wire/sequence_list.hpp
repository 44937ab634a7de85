#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/error.hpp>

/// The records of a recorded sequence, as a rank keeps them for its device hosts.
namespace troupe::wire {

using SequenceRecord = std::vector<std::byte>;

/// Each with its length before it.
std::vector<std::byte> pack_records(const std::vector<SequenceRecord>& records);
/// `count` of them. Errors: invalid if they are not that many.
Result<std::vector<SequenceRecord>> unpack_records(std::span<const std::byte> list,
                                                   std::size_t count);

}  // namespace troupe::wire
