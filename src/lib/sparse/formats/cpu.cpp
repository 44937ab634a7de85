#include <algorithm>

#include "lib/sparse/cpu.hpp"
#include "lib/sparse/formats/blocks_cpu.hpp"

/// CSR matrices in other forms, on the cpu engine. Elements outside of the matrix are left out.
namespace troupe::host::cpu {
namespace {

/// Where blocks go.
template <class T, class I>
struct BlockTarget {
  I *row_begin, *column;
  T* value;
};

/// The number of blocks.
template <class T, class I>
std::int64_t put_in_blocks(const sparse::Csr2Bsr& op, const GivenCsr<T, I>& from,
                           const BlockTarget<T, I>& to) {
  const auto block = op.block, size = block * block;
  BlocksOfRow<T, I> blocks(from, block);
  std::int64_t count = 0;
  to.row_begin[0] = 0;
  for (std::int64_t i = 0; i < op.block_rows(); ++i) {
    count += blocks.find(i);
    to.row_begin[i + 1] = as_offset<I>(count);
  }
  if (count == 0 || count > op.capacity) return count;
  std::fill_n(to.value, count * size, T{});
  for (std::int64_t i = 0; i < op.block_rows(); ++i) {
    blocks.find(i);
    const auto first = std::int64_t{to.row_begin[i]};
    std::transform(blocks.columns().begin(), blocks.columns().end(), to.column + first,
                   [](std::int64_t column) { return static_cast<I>(column); });
    blocks.each_element([&](std::int64_t row, std::int64_t k) {
      const auto i_inside = row % block, j_inside = std::int64_t{from.column[k]} % block;
      to.value[(first + blocks.number_of(k)) * size +
               (op.order == BlockOrder::row ? i_inside * block + j_inside
                                            : j_inside * block + i_inside)] += from.value[k];
    });
  }
  return count;
}

/// Where rows go.
template <class T, class I>
struct RowTarget {
  I *row_begin, *column;
  T* value;
};

template <class T, class I>
void expand_blocks(const sparse::Bsr2Csr& op, const I* block_row_begin, const I* block_column,
                   const T* block_value, const RowTarget<T, I>& to) {
  const auto block = op.block;
  std::int64_t at = 0;
  to.row_begin[0] = 0;
  for (std::int64_t row = 0; row < op.block_rows * block; ++row) {
    const auto [begin, end] = row_range(block_row_begin, row / block, op.blocks);
    const auto i = row % block;
    for (auto k = begin; k < end; ++k) {
      for (std::int64_t j = 0; j < block && at < op.nonzeros(); ++j, ++at) {
        to.column[at] = static_cast<I>(std::int64_t{block_column[k]} * block + j);
        to.value[at] = block_value[k * block * block +
                                   (op.order == BlockOrder::row ? i * block + j : j * block + i)];
      }
    }
    to.row_begin[row + 1] = static_cast<I>(at);
  }
}

/// Where slices go.
template <class T, class I>
struct SliceTarget {
  I *begin, *column;
  T* value;
};

/// The number of entries.
template <class T, class I>
std::int64_t slice(const sparse::Csr2Sell& op, const GivenCsr<T, I>& from,
                   const SliceTarget<T, I>& to) {
  const auto each_row = [&](std::int64_t slice, auto&& visit) {
    for (std::int64_t i = 0; i < op.slice_rows; ++i) {
      const auto row = slice * op.slice_rows + i;
      visit(i, row < op.rows ? from.row(row) : RowRange{0, 0});
    }
  };
  std::int64_t count = 0;
  to.begin[0] = 0;
  for (std::int64_t slice = 0; slice < op.slices(); ++slice) {
    std::int64_t longest = 0;
    each_row(slice, [&](std::int64_t, const RowRange& row) {
      longest = std::max(longest, row.end - row.begin);
    });
    count += longest * op.slice_rows;
    to.begin[slice + 1] = as_offset<I>(count);
  }
  if (count > op.capacity) return count;
  for (std::int64_t slice = 0; slice < op.slices(); ++slice) {
    const std::int64_t begin = to.begin[slice], end = to.begin[slice + 1];
    each_row(slice, [&](std::int64_t i, const RowRange& row) {
      auto k = row.begin;
      for (auto at = begin + i; at < end; at += op.slice_rows, ++k) {
        const bool padding = k >= row.end || !from.has(k);
        to.column[at] = padding ? I(-1) : from.column[k];
        to.value[at] = padding ? T{} : from.value[k];
      }
    });
  }
  return count;
}

}  // namespace

Result<void> run(const sparse::Csr2Bsr& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call,
          [op, from = GivenCsr<T, I>(op, call),
           to = BlockTarget<T, I>{call.at<I>(op.block_row_begin),
                                  if_present<I>(op.block_column, call),
                                  if_present<T>(op.block_value, call)},
           blocks = call.at<std::int64_t>(op.blocks)] { *blocks = put_in_blocks(op, from, to); });
    });
  });
}

Result<void> run(const sparse::Bsr2Csr& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call, [op, block_row_begin = call.at<const I>(op.block_row_begin),
                 block_column = call.at<const I>(op.block_column),
                 block_value = call.at<const T>(op.block_value),
                 to = RowTarget<T, I>{call.at<I>(op.row_begin), call.at<I>(op.column),
                                      call.at<T>(op.value)}] {
            expand_blocks(op, block_row_begin, block_column, block_value, to);
          });
    });
  });
}

Result<void> run(const sparse::Csr2Sell& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call,
          [op, from = GivenCsr<T, I>(op, call),
           to = SliceTarget<T, I>{call.at<I>(op.slice_begin), if_present<I>(op.sell_column, call),
                                  if_present<T>(op.sell_value, call)},
           stored = call.at<std::int64_t>(op.stored)] { *stored = slice(op, from, to); });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
