#include "lib/sparse/formats/checks.hpp"

/// CSR matrices in blocked ELL form.
namespace troupe::sparse {

Result<void> Csr2BlockedEll::check() const {
  auto checks = csr_matrix(*this);
  checks.require(block >= 1 && block <= kMostInBlock, "a block without elements, or too large");
  if (!checks.ok()) return checks.result();
  checks.require(rows % block == 0 && columns % block == 0, "an extent is no multiple of the block")
      .require(is_count({capacity, rows, block}), "the blocks are too large")
      .require(bits_of_places(rows / block, columns / block) <= kPlaceBits,
               "the matrix has too many places");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  checks.holds("column", column, nonzeros, index_size)
      .holds("width", width, 1, sizeof(std::int64_t));
  if (capacity > 0) {
    checks.holds("ell_column", ell_column, rows / block * capacity, index_size)
        .holds("ell_value", ell_value, rows * block * capacity);
  }
  return checks.result();
}

Result<void> Csr2BlockedEll::verdict(const std::byte* cell) const {
  return judge_size(kName, cell, {index_dtype, capacity, on_failure}, "blocks in a row of them");
}

}  // namespace troupe::sparse
