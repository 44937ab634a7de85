#include <algorithm>

#include "lib/sparse/cpu.hpp"
#include "lib/sparse/formats/blocks_cpu.hpp"

/// CSR matrices in blocked ELL form, on the cpu engine.
namespace troupe::host::cpu {
namespace {

/// The width that is needed.
template <class T, class I>
std::int64_t put_in_ell(const sparse::Csr2BlockedEll& op, const GivenCsr<T, I>& from, I* to_column,
                        T* to_value) {
  const auto block = op.block, block_rows = op.rows / block;
  BlocksOfRow<T, I> blocks(from, block);
  std::int64_t width = 0;
  for (std::int64_t i = 0; i < block_rows; ++i) width = std::max(width, blocks.find(i));
  if (op.capacity == 0 || width > op.capacity) return width;
  std::fill_n(to_column, block_rows * op.capacity, I(-1));
  std::fill_n(to_value, op.rows * op.capacity * block, T{});
  for (std::int64_t i = 0; i < block_rows; ++i) {
    blocks.find(i);
    std::transform(blocks.columns().begin(), blocks.columns().end(), to_column + i * op.capacity,
                   [](std::int64_t column) { return static_cast<I>(column); });
    blocks.each_element([&](std::int64_t row, std::int64_t k) {
      to_value[(row * op.capacity + blocks.number_of(k)) * block +
               std::int64_t{from.column[k]} % block] += from.value[k];
    });
  }
  return width;
}

}  // namespace

Result<void> run(const sparse::Csr2BlockedEll& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call,
          [op, from = GivenCsr<T, I>(op, call), column = if_present<I>(op.ell_column, call),
           value = if_present<T>(op.ell_value, call), width = call.at<std::int64_t>(op.width)] {
            *width = put_in_ell(op, from, column, value);
          });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
