#include "lib/sparse/common/checks.hpp"

/// Sparse matrices as dense ones and the other way.
namespace troupe::sparse {
namespace {

/// How many offsets there are.
std::int64_t offsets_of(Format format, std::int64_t rows, std::int64_t columns,
                        std::int64_t elements) {
  switch (format) {
    case Format::csr: return rows + 1;
    case Format::csc: return columns + 1;
    default: return elements;
  }
}

/// What the conversions have in common; `elements` of the sparse matrix have room.
template <class Op>
Checker conversion(const Op& op, std::int64_t elements) {
  auto checks = checker(op);
  checks.require(is_index(op.index_dtype), "indices must be i32 or i64")
      .require(op.order <= blas::Order::row, "unknown order")
      .require(op.rows >= 0 && op.columns >= 0 && elements >= 0, "a negative extent")
      .require(std::max(op.rows, op.columns) < Checker::kMaxCount, "the matrix is too large");
  if (checks.ok()) within_indices(checks, op.index_dtype, {op.rows, op.columns, elements});
  return checks;
}

}  // namespace

Result<void> SparseToDense::check() const {
  auto checks = conversion(*this, nonzeros);
  checks.require(format <= Format::coo, "unknown format");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  checks.holds("offsets", offsets, offsets_of(format, rows, columns, nonzeros), index_size)
      .holds("index", index, nonzeros, index_size)
      .holds("value", value, nonzeros);
  return sparse::dense(checks, "dense", dense, order, rows, columns, leading).result();
}

Result<void> BlockedEllToDense::check() const {
  auto checks = conversion(*this, 0);
  checks.require(block >= 1 && width >= 0, "a negative extent, or no block");
  if (!checks.ok()) return checks.result();
  checks.require(rows % block == 0 && columns % block == 0,
                 "an extent is no multiple of the block");
  std::int64_t stored = 0;
  checks.require(!__builtin_mul_overflow(width, block, &stored) &&
                     !__builtin_mul_overflow(stored, rows, &stored) && stored < Checker::kMaxCount,
                 "the matrix is too large");
  if (!checks.ok()) return checks.result();
  checks.holds("column", column, rows / block * width, size_of(index_dtype))
      .holds("value", value, stored);
  return sparse::dense(checks, "dense", dense, order, rows, columns, leading).result();
}

Result<void> DenseToSparse::check() const {
  auto checks = conversion(*this, capacity);
  checks.require(format <= Format::coo, "unknown format")
      .require(on_failure <= OnFailure::report, "unknown on_failure");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  if (format != Format::coo || capacity > 0)
    checks.holds("offsets", offsets, offsets_of(format, rows, columns, capacity), index_size);
  if (capacity > 0)
    checks.holds("index", index, capacity, index_size).holds("value", value, capacity);
  checks.holds("nonzeros", nonzeros, 1, sizeof(std::int64_t));
  return sparse::dense(checks, "dense", dense, order, rows, columns, leading).result();
}

Result<void> DenseToSparse::verdict(const std::byte* cell) const {
  return judge_size(kName, cell, {index_dtype, capacity, on_failure}, "nonzeros");
}

}  // namespace troupe::sparse
