#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

TEST_F(BadArguments, OfMatricesInOtherForms) {
  using namespace sparse;
  const auto cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  const auto indices = put(std::vector<std::int32_t>(24));
  const auto values = put(std::vector<double>(8));
  const auto begin = indices.slice(0, 8).operand(), column = indices.slice(8, 8).operand();
  Csr2Bsr bsr{DType::f64, DType::i32, OnFailure::error, BlockOrder::row, {}, 4, 4, 8, 2, 2, i, i, x,
              begin,      column,     values.operand(), cell.where};
  Csr2Sell sell{DType::f64, DType::i32, OnFailure::error, 0,         4, 4, 8, 2, 8, i, i, x,
                begin,      column,     values.operand(), cell.where};
  Bsr2Csr csr{DType::f64, DType::i32, BlockOrder::row, {}, 2, 2, 2, 2, i, i, x,
              begin,      column,     values.operand()};
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const auto wrong = [&](const auto& good) {
    with(good, [](auto& bad) { bad.index_dtype = DType::u32; });
    with(good, [&](auto& bad) { bad.row_begin = absent; });
    with(good, [&](auto& bad) { bad.value = absent; });
    with(good, [&](auto& bad) { bad.value = unaligned; });
    with(good, [&](auto& bad) { bad.column = absent; });
    with(
        good, [](auto& bad) { bad.dtype = DType::f16; }, Errc::unsupported);
  };
  wrong(bsr);
  wrong(sell);
  wrong(csr);
  const auto wrong_csr = [&](const auto& good) {
    with(good, [](auto& bad) { bad.rows = -1; });
    with(good, [](auto& bad) { bad.rows = 17; });
    with(good, [](auto& bad) { bad.columns = -1; });
    with(good, [](auto& bad) { bad.columns = std::int64_t{1} << 31; });
    with(good, [](auto& bad) { bad.nonzeros = -1; });
    with(good, [](auto& bad) { bad.nonzeros = 17; });
    with(good, [](auto& bad) { bad.capacity = -1; });
    with(good, [](auto& bad) { bad.capacity = 9; });
    with(good, [](auto& bad) { bad.on_failure = static_cast<OnFailure>(2); });
  };
  wrong_csr(bsr);
  wrong_csr(sell);
  with(bsr, [](auto& bad) { bad.block = 0; });
  with(bsr, [](auto& bad) { bad.block = 3; });  // 18 elements
  with(bsr, [](auto& bad) { bad.block = 1025; });
  with(bsr, [](auto& bad) { bad.capacity = std::int64_t{1} << 60; });
  with(bsr, [](auto& bad) { bad.order = static_cast<BlockOrder>(2); });
  with(bsr, [&](auto& bad) { bad.block_row_begin = absent; });
  with(bsr, [&](auto& bad) { bad.block_column = i; });
  with(bsr, [&](auto& bad) { bad.block_value = x; });
  with(bsr, [&](auto& bad) { bad.blocks = i; });  // not pinned
  with(sell, [](auto& bad) { bad.slice_rows = 0; });
  with(sell, [](auto& bad) { bad.rows = 15, bad.slice_rows = 1; });  // 16 offsets needed
  with(sell, [&](auto& bad) { bad.slice_begin = absent; });
  with(sell, [&](auto& bad) { bad.sell_column = i; });
  with(sell, [&](auto& bad) { bad.sell_value = x; });
  with(sell, [&](auto& bad) { bad.stored = absent; });
  with(csr, [](auto& bad) { bad.block_rows = -1; });
  with(csr, [](auto& bad) { bad.block_rows = 4; });  // 9 offsets of rows
  with(csr, [](auto& bad) { bad.block_columns = std::int64_t{1} << 30; });
  with(csr, [](auto& bad) { bad.block_columns = std::int64_t{1} << 60; });
  with(csr, [](auto& bad) { bad.blocks = 3; });
  with(csr, [](auto& bad) { bad.blocks = -1; });
  with(csr, [](auto& bad) { bad.block = 0; });
  with(csr, [](auto& bad) { bad.order = static_cast<BlockOrder>(2); });
  with(csr, [&](auto& bad) { bad.block_row_begin = absent; });
  with(csr, [&](auto& bad) { bad.block_value = absent; });
  with(csr, [&](auto& bad) { bad.column = i; });
  with(csr, [&](auto& bad) { bad.value = x; });
}

}  // namespace
}  // namespace troupe::test::reference
