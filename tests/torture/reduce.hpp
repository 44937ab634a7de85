#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace troupe::torture {

/// Leaves out parts of 0 … size - 1 as long as `fails(left out)` holds of what is left; the parts
/// that can be left out together.
std::vector<bool> reduce(std::size_t size,
                         const std::function<bool(const std::vector<bool>&)>& fails);
/// "3,7-9"
std::string to_ranges(const std::vector<bool>& left_out);

}  // namespace troupe::torture
