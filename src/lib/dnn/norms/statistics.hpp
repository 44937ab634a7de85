#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <troupe/lib/dnn/norms.hpp>

namespace troupe::dnn {

/// The extents of a norm's statistics: those of x, but 1 along dimensions whose elements are
/// normalised together.
std::vector<std::int64_t> statistics_extents(Norm which, std::span<const std::int64_t> x,
                                             std::span<const std::int64_t> scale);

}  // namespace troupe::dnn
