#include <algorithm>
#include <cstring>
#include <string>

#include <troupe/lib/operation_table.hpp>

#include "lib/sparse/checks.hpp"

namespace troupe::sparse {

Result<void> Spgemm::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64")
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(rows >= 0 && inner >= 0 && columns >= 0 && nonzeros_a >= 0 && nonzeros_b >= 0 &&
                   capacity >= 0,
               "a negative extent")
      .require(std::max({rows, inner, columns}) < Checker::kMaxCount, "a matrix is too large");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  if (index_size == 4) {
    checks.require(std::max({rows, inner, columns, nonzeros_a, nonzeros_b}) <= INT32_MAX,
                   "a matrix is too large for 32-bit indices");
  }
  checks.holds("a_row_begin", a_row_begin, rows + 1, index_size)
      .holds("a_column", a_column, nonzeros_a, index_size)
      .holds("b_row_begin", b_row_begin, inner + 1, index_size)
      .holds("b_column", b_column, nonzeros_b, index_size)
      .holds("c_row_begin", c_row_begin, rows + 1, index_size)
      .holds("nonzeros", nonzeros, 1, sizeof(std::int64_t));
  if (capacity > 0) checks.holds("c_column", c_column, capacity, index_size);
  return checks.result();
}

Result<void> Spgemm::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  std::array<int, 3> given{};
  for (const auto& [range, matrix, access, unused] : parts.tail) {
    checks.require(matrix <= c, "values of an unknown matrix");
    if (!checks.ok()) return checks.result();
    ++given[matrix];
    checks
        .require(access == (matrix == c ? Access::write : Access::read),
                 "the values of A and B are read, those of C written")
        .holds("value", range,
               matrix == a   ? nonzeros_a
               : matrix == b ? nonzeros_b
                             : capacity);
  }
  return checks
      .require(parts.tail.empty() || (given[a] == 1 && given[b] == 1 && given[c] == 1),
               "it takes the values of A, B and C, once each, or none")
      .result();
}

Result<void> Transposition::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64")
      .require(rows >= 0 && columns >= 0 && nonzeros >= 0, "a negative extent")
      .require(std::max(rows, columns) < Checker::kMaxCount, "the matrix is too large");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  return within_indices(checks, index_dtype, {rows, columns, nonzeros})
      .holds("row_begin", row_begin, rows + 1, index_size)
      .holds("column", column, nonzeros, index_size)
      .holds("value", value, nonzeros)
      .holds("t_row_begin", t_row_begin, columns + 1, index_size)
      .holds("t_column", t_column, nonzeros, index_size)
      .holds("t_value", t_value, nonzeros)
      .result();
}

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

Result<void> Spgemm::verdict(const std::byte* cell) const {
  return judge_size(kName, cell, {index_dtype, capacity, on_failure}, "nonzeros",
                    "an index of A or B is out of range");
}

Operand find_values(std::span<const TailOperand> tail, Spgemm::Matrix matrix) noexcept {
  const auto found = std::find_if(tail.begin(), tail.end(),
                                  [&](const TailOperand& part) { return part.tag == matrix; });
  return found != tail.end() ? found->range : Operand{};
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

Result<void> Gather::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64");
  if (!checks.ok()) return checks.result();
  return checks.holds("index", index, count, size_of(index_dtype))
      .holds("source", source, source_length)
      .holds("destination", destination, count)
      .result();
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::sparse
