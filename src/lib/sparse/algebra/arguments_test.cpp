#include <map>

#include "random_csr.hpp"
#include "real_matrix.hpp"

namespace troupe::test::reference {
namespace {

using SparseElements = std::map<std::pair<std::int64_t, std::int64_t>, Wide>;

TEST_F(BadArguments, OfSumsOfSparseMatrices) {
  using sparse::Geam, sparse::part_of;
  const auto cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  const auto indices = put(std::vector<std::int32_t>(16));
  const auto result = put(std::vector<double>(8));
  Geam good;
  good.dtype = DType::f64, good.index_dtype = DType::i32;
  good.rows = 4, good.columns = 4, good.nonzeros_a = 8, good.nonzeros_b = 8, good.capacity = 8;
  good.alpha = one, good.beta = one;
  good.a_row_begin = i, good.a_column = i, good.b_row_begin = i, good.b_column = i;
  good.c_row_begin = indices.slice(0, 8).operand(), good.nonzeros = cell.where;
  const std::vector<TailOperand> parts{part_of(Geam::a, x), part_of(Geam::b, x),
                                       part_of(Geam::c, result.operand()),
                                       part_of(Geam::c_column, indices.slice(8, 8).operand())};
  const auto refused = [](const Geam& op, const std::vector<TailOperand>& tail,
                          Errc code = Errc::invalid) {
    const auto future = detail::submit(device().submitter(), op, tail);
    ASSERT_TRUE(future.ready()) << "it was launched";
    EXPECT_EQ(future.wait().code(), code);
  };
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    refused(op, parts, code);
  };
  with([](auto& op) { op.rows = -1; });
  with([](auto& op) { op.columns = -1; });
  with([](auto& op) { op.nonzeros_a = -1; });
  with([](auto& op) { op.nonzeros_b = -1; });
  with([](auto& op) { op.capacity = -1; });
  with([](auto& op) { op.rows = 0; });  // but elements
  with([](auto& op) { op.rows = 8; });  // 9 row offsets of C needed
  with([](auto& op) { op.columns = std::int64_t{1} << 31; });
  with([](auto& op) { op.nonzeros_a = 17; });
  with([](auto& op) { op.nonzeros_b = 17; });
  with([](auto& op) { op.capacity = 9; });
  with([](auto& op) { op.index_dtype = DType::f64; });
  with([](auto& op) { op.index_dtype = DType::i64; });  // too short, then
  with([](auto& op) { op.on_failure = static_cast<OnFailure>(2); });
  with([&](auto& op) { op.beta = short_scalar; });
  with([&](auto& op) { op.b_row_begin = absent; });
  with([&](auto& op) { op.c_row_begin = absent; });
  with([&](auto& op) { op.nonzeros = absent; });
  with([&](auto& op) { op.nonzeros = i; });     // not pinned
  with([&](auto& op) { op.c_row_begin = i; });  // which is read as well
  with([](auto& op) { op.dtype = DType::bf16; }, Errc::unsupported);

  const auto tail = [&](auto change) {
    auto changed = parts;
    change(changed);
    refused(good, changed);
  };
  tail([](auto& changed) { changed.pop_back(); });
  tail([](auto& changed) { changed.erase(changed.begin()); });
  tail([](auto& changed) { changed[0].tag = Geam::b; });
  tail([](auto& changed) { changed[0].tag = 4; });
  tail([](auto& changed) { changed[0].access = Access::write; });
  tail([](auto& changed) { changed[3].access = Access::read; });
  tail([](auto& changed) { changed[2].range = changed[0].range; });  // overlaps
  tail([](auto& changed) { changed[3].range.bytes -= 4; });
  tail([&](auto& changed) { changed[1].range = unaligned; });
  tail([&](auto& changed) { changed[3].range = absent; });
}

TEST_F(BadArguments, OfKnownProductsOfSparseMatrices) {
  using sparse::SpgemmReuse, sparse::values_of;
  const auto result = put(std::vector<double>(8));
  const SpgemmReuse good{DType::f64, DType::i32, 4, 4, 4, 8, 8, 8, i, i, i, i, i, i};
  const std::vector<TailOperand> values{values_of(SpgemmReuse::a, x), values_of(SpgemmReuse::b, x),
                                        values_of(SpgemmReuse::c, result.operand())};
  const auto refused = [](const SpgemmReuse& op, const std::vector<TailOperand>& tail,
                          Errc code = Errc::invalid) {
    const auto future = detail::submit(device().submitter(), op, tail);
    ASSERT_TRUE(future.ready()) << "it was launched";
    EXPECT_EQ(future.wait().code(), code);
  };
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    refused(op, values, code);
  };
  with([](auto& op) { op.rows = -1; });
  with([](auto& op) { op.inner = -1; });
  with([](auto& op) { op.columns = -1; });
  with([](auto& op) { op.nonzeros_a = -1; });
  with([](auto& op) { op.nonzeros_b = 17; });
  with([](auto& op) { op.nonzeros_c = 9; });
  with([](auto& op) { op.rows = 16; });   // 17 row offsets needed
  with([](auto& op) { op.inner = 16; });  // 17 of B
  with([](auto& op) { op.columns = std::int64_t{1} << 31; });
  with([](auto& op) { op.index_dtype = DType::i64, op.rows = 8; });  // 9 row offsets needed
  with([](auto& op) { op.index_dtype = DType::u32; });
  with([&](auto& op) { op.c_column = absent; });
  with([](auto& op) { op.dtype = DType::f16; }, Errc::unsupported);
  const auto tail = [&](auto change) {
    auto changed = values;
    change(changed);
    refused(good, changed);
  };
  tail([](auto& parts) { parts.clear(); });
  tail([](auto& parts) { parts.pop_back(); });
  tail([](auto& parts) { parts[0].tag = SpgemmReuse::b; });
  tail([](auto& parts) { parts[0].tag = 3; });
  tail([](auto& parts) { parts[2].access = Access::read; });
  tail([](auto& parts) { parts[2].range = parts[0].range; });  // overlaps
  tail([&](auto& parts) { parts[1].range = unaligned; });
}

}  // namespace
}  // namespace troupe::test::reference
