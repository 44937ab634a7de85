#include "tridiagonal.hpp"

#include <climits>
#include <cstring>

#include <troupe/plugin/library.hpp>

// What the rank and the device host both have of the library: the tables of its operations, and
// their checks.

namespace tridiagonal {
namespace {

/// The checks that all operations share.
template <class Op>
troupe::plugin::Checker batch_of(const Op& op) {
  auto checks = troupe::plugin::checker(op);
  std::int64_t rows = 0;
  checks.require(op.n >= 1 && op.batch >= 1, "the systems have no rows, or there are none")
      .require(!__builtin_mul_overflow(op.n, op.batch, &rows) && rows < INT_MAX,
               "the batch has 2^31 rows or more");
  if (!checks.ok()) return checks;
  for (const auto& [name, operand] : {std::pair{"lower", &op.lower},
                                      {"diagonal", &op.diagonal},
                                      {"upper", &op.upper},
                                      {"b", &op.b},
                                      {"x", &op.x}})
    checks.holds(name, *operand, rows);
  return checks;
}

}  // namespace

troupe::Result<void> Solve::check() const {
  return batch_of(*this).holds("info", info, 1, sizeof(std::int32_t)).result();
}

troupe::Result<void> Solve::verdict(const std::byte* cell) const {
  std::int32_t row = 0;
  std::memcpy(&row, cell, sizeof row);
  if (row == 0) return {};
  return troupe::Error{troupe::Errc::numeric, row,
                       "tridiagonal.solve: row " + std::to_string((row - 1) % n) + " of system " +
                           std::to_string((row - 1) / n) + " has a zero pivot"};
}

troupe::Result<void> Residual::check() const {
  return batch_of(*this).holds("r", r, n * batch).result();
}

std::span<const troupe::OperationInfo* const> operations() noexcept {
  return troupe::tables_of(Operations{});
}

}  // namespace tridiagonal
