#pragma once

#include <troupe/lib/sparse/form.hpp>

/// CSR matrices in other forms, by cuSPARSE's names. Indices are i32 or i64 (`index_dtype`). The
/// cpu engine leaves out elements that are outside of the matrix; the cuda engine does not look:
/// there the device may be lost.
namespace troupe::sparse {

/// The rows and columns of a block are at most so many.
inline constexpr std::int64_t kMostInBlock = 1024;
/// How many parts of `size` rows or columns an extent takes, the last one filled up.
constexpr std::int64_t parts_of(std::int64_t extent, std::int64_t size) noexcept {
  return extent / size + (extent % size != 0 ? 1 : 0);
}

/// The CSR matrix of rows x columns in blocks of `block` x `block`: see BsrMatrix. There is a block
/// wherever the matrix has an element; the rest of it is 0, also beyond the last row and column,
/// where an extent is no multiple of the block. The columns within a row of the matrix may stand in
/// any order, and a place that occurs more than once has the sum of its elements. The block columns
/// within a block row ascend.
///
/// `blocks` tells how many there are. block_row_begin is written in any case; block_column and
/// block_value if they have room for that many, `capacity`. Otherwise they stay as they are, and
/// the command fails unless on_failure is `report`. With a capacity of 0 these two and `value` may
/// be absent: the operation only counts then.
///
/// Errors, beside those of check(): invalid (there are more blocks than the capacity).
///
/// cuda engine: a sort of the elements by blocks, because cusparseXcsr2bsrNnz waits for the device
/// and has no 64-bit indices.
struct Csr2Bsr {
  static constexpr std::string_view kName = "sparse.csr2bsr";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;
  OpDType index_dtype;
  OnFailure on_failure{};
  BlockOrder order{};
  std::uint8_t reserved[3] = {};
  std::int64_t rows = 0, columns = 0, nonzeros = 0, block = 1;
  std::int64_t capacity = 0;  ///< in blocks
  Operand row_begin, column, value, block_row_begin, block_column, block_value;
  Operand blocks;  ///< std::int64_t

  static constexpr std::array kOperands{read("row_begin", &Csr2Bsr::row_begin),
                                        read("column", &Csr2Bsr::column),
                                        read("value", &Csr2Bsr::value),
                                        write("block_row_begin", &Csr2Bsr::block_row_begin),
                                        write("block_column", &Csr2Bsr::block_column),
                                        write("block_value", &Csr2Bsr::block_value),
                                        write("blocks", &Csr2Bsr::blocks)};
  static constexpr auto kCell = &Csr2Bsr::blocks;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::int64_t block_rows() const noexcept { return parts_of(rows, block); }
  [[nodiscard]] std::int64_t block_columns() const noexcept { return parts_of(columns, block); }
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &blocks) return sizeof(std::int64_t);
    if (&operand != &block_row_begin) return 0;
    return (static_cast<std::uint64_t>(block_rows()) + 1) * size_of(index_dtype);
  }
};

/// The other way: the CSR matrix of block_rows * block rows with all elements of the blocks, zeros
/// included. Within a row columns stand in the order of the blocks.
struct Bsr2Csr {
  static constexpr std::string_view kName = "sparse.bsr2csr";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  BlockOrder order{};
  std::uint8_t reserved[7] = {};
  std::int64_t block_rows = 0, block_columns = 0, blocks = 0, block = 1;
  Operand block_row_begin, block_column, block_value, row_begin, column, value;

  static constexpr std::array kOperands{read("block_row_begin", &Bsr2Csr::block_row_begin),
                                        read("block_column", &Bsr2Csr::block_column),
                                        read("block_value", &Bsr2Csr::block_value),
                                        write("row_begin", &Bsr2Csr::row_begin),
                                        write("column", &Bsr2Csr::column),
                                        write("value", &Bsr2Csr::value)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::int64_t nonzeros() const noexcept { return blocks * block * block; }
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &row_begin)
      return (static_cast<std::uint64_t>(block_rows * block) + 1) * size_of(index_dtype);
    return static_cast<std::uint64_t>(nonzeros()) *
           size_of(&operand == &value ? dtype : index_dtype);
  }
};

/// The CSR matrix of rows x columns in sliced ELL form, in slices of `slice_rows` rows: see
/// SellMatrix. The elements of a row stay in their order.
///
/// `stored` tells how many entries that takes, padding included. slice_begin is written in any
/// case; sell_column and sell_value if they have room for that many, `capacity`. Otherwise they
/// stay as they are, and the command fails unless on_failure is `report`. With a capacity of 0
/// these two, `column` and `value` may be absent: the operation only counts then.
///
/// Errors, beside those of check(): invalid (there are more entries than the capacity, or more than
/// i32 indices can count).
struct Csr2Sell {
  static constexpr std::string_view kName = "sparse.csr2sell";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;
  OpDType index_dtype;
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t rows = 0, columns = 0, nonzeros = 0, slice_rows = 0, capacity = 0;
  Operand row_begin, column, value, slice_begin, sell_column, sell_value;
  Operand stored;  ///< std::int64_t

  static constexpr std::array kOperands{read("row_begin", &Csr2Sell::row_begin),
                                        read("column", &Csr2Sell::column),
                                        read("value", &Csr2Sell::value),
                                        write("slice_begin", &Csr2Sell::slice_begin),
                                        write("sell_column", &Csr2Sell::sell_column),
                                        write("sell_value", &Csr2Sell::sell_value),
                                        write("stored", &Csr2Sell::stored)};
  static constexpr auto kCell = &Csr2Sell::stored;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::int64_t slices() const noexcept { return parts_of(rows, slice_rows); }
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &stored) return sizeof(std::int64_t);
    if (&operand != &slice_begin) return 0;
    return (static_cast<std::uint64_t>(slices()) + 1) * size_of(index_dtype);
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// CSR matrices in other forms: see <troupe/lib/sparse/formats.hpp>. What is written overlaps no
/// argument. Errors: invalid, those of any command.
template <class Refs>
class SparseFormats : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  using Calls::Calls;

  /// b = a in blocks, in the buffers of `b`: see sparse::Csr2Bsr. b.block and b.order say how. The
  /// future's value is the number of blocks, which take the first so many elements of b.column and
  /// so many times block^2 of b.value. A caller who does not know it guesses, passes `report`, and
  /// comes again with more room where the value is above the length of b.column. b.column and
  /// b.value may be null references, to count first.
  ///
  /// Only on this rank's own device.
  template <FieldElement T, IndexElement I>
  Future<std::int64_t> csr2bsr(
      const BasicCsrMatrix<Ref<T>, Ref<I>>& a, const BasicBsrMatrix<Ref<T>, Ref<I>>& b,
      OnFailure on_failure = OnFailure::error) const requires std::same_as<Refs, LocalRefs> {
    sparse::Csr2Bsr op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>,
    op.on_failure = sparse::when_counting(!b.value, on_failure);
    op.order = b.order, op.block = b.block;
    op.rows = a.rows, op.columns = a.columns, op.nonzeros = a.column.length();
    op.capacity = b.column.length();
    op.row_begin = a.row_begin.operand(), op.column = a.column.operand();
    op.value = a.value.operand(), op.block_row_begin = b.row_begin.operand();
    op.block_column = b.column.operand(), op.block_value = b.value.operand();
    const bool sound = is_block(b.block);
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_, op,
        {{"b, in block rows,", b.block_rows, sound ? op.block_rows() : 0},
         {"b, in block columns,", b.block_columns, sound ? op.block_columns() : 0},
         {"a.row_begin", a.row_begin.length(), a.rows + 1},
         {"a.value", a.value.length(), a.column.length()},
         {"b.row_begin", b.row_begin.length(), b.block_rows + 1},
         {"b.value", b.value.length(), sound ? b.column.length() * b.block * b.block : 0}});
  }
  /// b = all elements of the blocks of a, zeros included: see sparse::Bsr2Csr.
  template <FieldElement T, IndexElement I>
  Future<void> bsr2csr(const BasicBsrMatrix<Ref<T>, Ref<I>>& a,
                       const BasicCsrMatrix<Ref<T>, Ref<I>>& b) const {
    sparse::Bsr2Csr op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>, op.order = a.order;
    op.block_rows = a.block_rows, op.block_columns = a.block_columns;
    op.blocks = a.column.length(), op.block = a.block;
    op.block_row_begin = a.row_begin.operand(), op.block_column = a.column.operand();
    op.block_value = a.value.operand(), op.row_begin = b.row_begin.operand();
    op.column = b.column.operand(), op.value = b.value.operand();
    const auto block = is_block(a.block) ? a.block : 0;
    const auto elements = op.blocks * block * block;
    return detail::submit_exact(*submitter_, op,
                                {{"b, in rows,", b.rows, a.block_rows * block},
                                 {"b, in columns,", b.columns, a.block_columns * block},
                                 {"a.row_begin", a.row_begin.length(), a.block_rows + 1},
                                 {"a.value", a.value.length(), elements},
                                 {"b.row_begin", b.row_begin.length(), b.rows + 1},
                                 {"b.column", b.column.length(), elements},
                                 {"b.value", b.value.length(), elements}});
  }
  /// b = a in slices of b.slice_rows rows, in the buffers of `b`: see sparse::Csr2Sell. b.nonzeros
  /// is the number of a's elements. The future's value is the number of entries, padding included,
  /// which take the first so many elements of b.column and b.value: spmv() wants these as long as
  /// that. For the rest as csr2bsr().
  ///
  /// Only on this rank's own device.
  template <FieldElement T, IndexElement I>
  Future<std::int64_t> csr2sell(
      const BasicCsrMatrix<Ref<T>, Ref<I>>& a, const BasicSellMatrix<Ref<T>, Ref<I>>& b,
      OnFailure on_failure = OnFailure::error) const requires std::same_as<Refs, LocalRefs> {
    sparse::Csr2Sell op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>,
    op.on_failure = sparse::when_counting(!b.value, on_failure);
    op.rows = a.rows, op.columns = a.columns, op.nonzeros = a.column.length();
    op.slice_rows = b.slice_rows, op.capacity = b.column.length();
    op.row_begin = a.row_begin.operand(), op.column = a.column.operand();
    op.value = a.value.operand(), op.slice_begin = b.slice_begin.operand();
    op.sell_column = b.column.operand(), op.sell_value = b.value.operand();
    const bool slices = b.slice_rows >= 1;  // else it is refused
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_, op,
        {{"b, in rows,", b.rows, a.rows},
         {"b, in columns,", b.columns, a.columns},
         {"b, in nonzeros,", b.nonzeros, a.column.length()},
         {"a.row_begin", a.row_begin.length(), a.rows + 1},
         {"a.value", a.value.length(), a.column.length()},
         {"b.slice_begin", b.slice_begin.length(), slices ? op.slices() + 1 : 0},
         {"b.value", b.value.length(), b.column.length()}});
  }

 private:
  /// Others are refused by the operation's check.
  static bool is_block(std::int64_t block) { return block >= 1 && block <= sparse::kMostInBlock; }
};

}  // namespace troupe
