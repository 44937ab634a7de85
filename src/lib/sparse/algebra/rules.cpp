#include "lib/sparse/common/checks.hpp"

/// Sums of sparse matrices, and products whose structure is known.
namespace troupe::sparse {

Result<void> Geam::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64")
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(rows >= 0 && columns >= 0 && nonzeros_a >= 0 && nonzeros_b >= 0 && capacity >= 0,
               "a negative extent")
      .require(std::max(rows, columns) < Checker::kMaxCount, "a matrix is too large")
      .require(rows > 0 || (nonzeros_a == 0 && nonzeros_b == 0), "there are elements, but no rows");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  return within_indices(checks, index_dtype, {rows, columns, nonzeros_a, nonzeros_b})
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .holds("a_row_begin", a_row_begin, rows + 1, index_size)
      .holds("a_column", a_column, nonzeros_a, index_size)
      .holds("b_row_begin", b_row_begin, rows + 1, index_size)
      .holds("b_column", b_column, nonzeros_b, index_size)
      .holds("c_row_begin", c_row_begin, rows + 1, index_size)
      .holds("nonzeros", nonzeros, 1, sizeof(std::int64_t))
      .result();
}

Result<void> Geam::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  const std::array counts{nonzeros_a, nonzeros_b, capacity, capacity};
  check_tagged(checks, parts.tail, std::span(counts).first(3), c, c_column);
  for (const auto& part : parts.tail) {
    if (part.tag == c_column) checks.holds("c_column", part.range, capacity, size_of(index_dtype));
  }
  return checks
      .require(parts.tail.empty() || parts.tail.size() == counts.size(),
               "it takes the values of A, B and C and the columns of C, once each, or none")
      .result();
}

Result<void> Geam::verdict(const std::byte* cell) const {
  return judge_size(kName, cell, {index_dtype, capacity, on_failure}, "nonzeros",
                    "A or B is not a CSR matrix with ascending columns");
}

Result<void> SpgemmReuse::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64")
      .require(rows >= 0 && inner >= 0 && columns >= 0 && nonzeros_a >= 0 && nonzeros_b >= 0 &&
                   nonzeros_c >= 0,
               "a negative extent")
      .require(std::max({rows, inner, columns}) < Checker::kMaxCount, "a matrix is too large");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  return within_indices(checks, index_dtype,
                        {rows, inner, columns, nonzeros_a, nonzeros_b, nonzeros_c})
      .holds("a_row_begin", a_row_begin, rows + 1, index_size)
      .holds("a_column", a_column, nonzeros_a, index_size)
      .holds("b_row_begin", b_row_begin, inner + 1, index_size)
      .holds("b_column", b_column, nonzeros_b, index_size)
      .holds("c_row_begin", c_row_begin, rows + 1, index_size)
      .holds("c_column", c_column, nonzeros_c, index_size)
      .result();
}

Result<void> SpgemmReuse::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  const std::array counts{nonzeros_a, nonzeros_b, nonzeros_c};
  check_tagged(checks, parts.tail, counts, c, c);
  return checks
      .require(parts.tail.size() == counts.size(), "it takes the values of A, B and C, once each")
      .result();
}

Operand find_tagged(std::span<const TailOperand> tail, std::uint32_t tag) noexcept {
  const auto found = std::find_if(tail.begin(), tail.end(),
                                  [&](const TailOperand& part) { return part.tag == tag; });
  return found != tail.end() ? found->range : Operand{};
}

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

Result<void> Spgemm::verdict(const std::byte* cell) const {
  return judge_size(kName, cell, {index_dtype, capacity, on_failure}, "nonzeros",
                    "an index of A or B is out of range");
}

Operand find_values(std::span<const TailOperand> tail, Spgemm::Matrix matrix) noexcept {
  const auto found = std::find_if(tail.begin(), tail.end(),
                                  [&](const TailOperand& part) { return part.tag == matrix; });
  return found != tail.end() ? found->range : Operand{};
}

}  // namespace troupe::sparse
