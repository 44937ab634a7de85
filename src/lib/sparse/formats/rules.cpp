#include "lib/sparse/formats/checks.hpp"

/// CSR matrices in other forms.
namespace troupe::sparse {

Result<void> Csr2Bsr::check() const {
  auto checks = csr_matrix(*this);
  checks.require(order <= BlockOrder::column, "unknown order")
      .require(block >= 1 && block <= kMostInBlock, "a block without elements, or too large");
  if (!checks.ok()) return checks.result();
  checks.require(is_count({capacity, block, block}), "the blocks are too large")
      .require(bits_of_places(block_rows(), block_columns()) <= kPlaceBits,
               "the matrix has too many places");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  checks.holds("column", column, nonzeros, index_size)
      .holds("block_row_begin", block_row_begin, block_rows() + 1, index_size)
      .holds("blocks", blocks, 1, sizeof(std::int64_t));
  if (capacity > 0) {
    checks.holds("block_column", block_column, capacity, index_size)
        .holds("block_value", block_value, capacity * block * block);
  }
  return checks.result();
}

Result<void> Csr2Bsr::verdict(const std::byte* cell) const {
  return judge_size(kName, cell, {index_dtype, capacity, on_failure}, "blocks");
}

Result<void> Bsr2Csr::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64")
      .require(order <= BlockOrder::column, "unknown order")
      .require(block_rows >= 0 && block_columns >= 0 && blocks >= 0, "a negative extent")
      .require(block >= 1 && block <= kMostInBlock, "a block without elements, or too large");
  if (!checks.ok()) return checks.result();
  checks.require(is_count({block_rows, block}) && is_count({block_columns, block}) &&
                     is_count({blocks, block, block}),
                 "the matrix is too large");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  return within_indices(checks, index_dtype,
                        {block_rows * block, block_columns * block, nonzeros()})
      .holds("block_row_begin", block_row_begin, block_rows + 1, index_size)
      .holds("block_column", block_column, blocks, index_size)
      .holds("block_value", block_value, nonzeros())
      .holds("row_begin", row_begin, block_rows * block + 1, index_size)
      .holds("column", column, nonzeros(), index_size)
      .holds("value", value, nonzeros())
      .result();
}

Result<void> Csr2Sell::check() const {
  auto checks = csr_matrix(*this);
  checks.require(slice_rows >= 1 && slice_rows < Checker::kMaxCount,
                 "a slice without rows, or too large");
  std::int64_t most = 0;
  checks.require(!checks.ok() || !__builtin_mul_overflow(slices() * slice_rows, nonzeros, &most),
                 "the matrix is too large");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  checks.holds("slice_begin", slice_begin, slices() + 1, index_size)
      .holds("stored", stored, 1, sizeof(std::int64_t));
  if (capacity > 0) {
    checks.holds("column", column, nonzeros, index_size)
        .holds("sell_column", sell_column, capacity, index_size)
        .holds("sell_value", sell_value, capacity);
  }
  return checks.result();
}

Result<void> Csr2Sell::verdict(const std::byte* cell) const {
  return judge_size(kName, cell, {index_dtype, capacity, on_failure}, "entries");
}

}  // namespace troupe::sparse
