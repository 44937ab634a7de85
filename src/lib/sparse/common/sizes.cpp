#include <cstring>
#include <string>

#include "lib/sparse/common/checks.hpp"

namespace troupe::sparse {

Result<void> judge_size(std::string_view operation, const std::byte* cell, const Room& room,
                        std::string_view counted, std::string_view no_matrix) {
  std::int64_t size = 0;
  std::memcpy(&size, cell, sizeof size);
  const auto failed = [&](const std::string& what) {
    return Error{Errc::invalid, 0, std::string(operation) + ": " + what};
  };
  if (size < 0) return failed(std::string(no_matrix));
  const auto overflow =
      "overflow: the result has " + std::to_string(size) + " " + std::string(counted) + ", ";
  if (size > INT32_MAX && room.index_dtype == DType::i32)
    return failed(overflow + "more than 32-bit indices can count");
  if (size <= room.capacity || room.on_failure == OnFailure::report) return {};
  return failed(overflow + "room for " + std::to_string(room.capacity));
}

Result<void> check_lengths(std::string_view operation,
                           std::initializer_list<troupe::detail::Length> lengths) {
  for (const auto& [name, is, needed] : lengths) {
    if (is == needed) continue;
    return Error{Errc::invalid, 0,
                 std::string(operation) + ": " + std::string(name) + " has " + std::to_string(is) +
                     " elements, not " + std::to_string(needed)};
  }
  return {};
}

}  // namespace troupe::sparse
