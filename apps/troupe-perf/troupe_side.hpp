#pragma once

#include <troupe/troupe.hpp>

#include "side.hpp"

namespace troupe::perf {

/// troupe's own calls, between the ranks of `ranks`, which is the world or a group of it. What a
/// fault has spoilt is valid again after prepare(), with undefined contents.
std::unique_ptr<Side> make_troupe_side(Runtime& runtime, Collectives& ranks,
                                       std::uint64_t capacity);

/// Messages told to actors, of host memory alone. At most kLongestMessage bytes.
std::unique_ptr<Side> make_tell_side(Runtime& runtime, Collectives& ranks);

}  // namespace troupe::perf
