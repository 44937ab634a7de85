#include <troupe/lib/sparse.hpp>

#include <map>
#include <numeric>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

TEST_F(BadArguments, OfSparseOperations) {
  using namespace sparse;
  expect_refused(Gather{DType::f64, DType::i32, 17, 16, i, x, x});
  expect_refused(Gather{DType::f64, DType::i32, 4, 17, i, x, x});
  expect_refused(Gather{DType::f64, DType::u8, 4, 4, i, x, x});
  expect_refused(Gather{DType::i32, DType::i32, 4, 4, i, x, x}, Errc::unsupported);
}

TEST_F(BadArguments, OfAProductOfSparseMatrices) {
  using sparse::Spgemm, sparse::values_of;
  const auto cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  const auto row_begin = put(std::vector<std::int32_t>(16)), column = row_begin.slice(8, 8);
  const auto result = put(std::vector<double>(8));
  const Spgemm good{DType::f64,
                    DType::i32,
                    OnFailure::error,
                    0,
                    4,
                    4,
                    4,
                    8,
                    8,
                    8,
                    i,
                    i,
                    i,
                    i,
                    row_begin.slice(0, 8).operand(),
                    column.operand(),
                    cell.where};
  const std::vector<TailOperand> values{values_of(Spgemm::a, x), values_of(Spgemm::b, x),
                                        values_of(Spgemm::c, result.operand())};
  const auto refused = [](const Spgemm& op, const std::vector<TailOperand>& tail,
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
  with([](auto& op) { op.nonzeros_b = -1; });
  with([](auto& op) { op.capacity = -1; });
  with([](auto& op) { op.rows = 8; });    // 9 row offsets of C needed
  with([](auto& op) { op.inner = 16; });  // 17 row offsets of B needed
  with([](auto& op) { op.columns = std::int64_t{1} << 31; });
  with([](auto& op) { op.nonzeros_a = 17; });
  with([](auto& op) { op.nonzeros_b = 17; });
  with([](auto& op) { op.capacity = 9; });
  with([](auto& op) { op.index_dtype = DType::f64; });
  with([](auto& op) { op.index_dtype = DType::i64; });  // too short, then
  with([](auto& op) { op.on_failure = static_cast<OnFailure>(2); });
  with([&](auto& op) { op.a_row_begin = absent; });
  with([&](auto& op) { op.c_row_begin = absent; });
  with([&](auto& op) { op.c_column = absent; });
  with([&](auto& op) { op.nonzeros = absent; });
  with([&](auto& op) { op.nonzeros = i; });  // not pinned
  with([&](auto& op) { op.c_column = i; });  // which is read as well
  with([&](auto& op) { op.c_column = op.c_row_begin; });
  with([](auto& op) { op.dtype = DType::bf16; }, Errc::unsupported);

  const auto tail = [&](auto change) {
    auto changed = values;
    change(changed);
    refused(good, changed);
  };
  tail([](auto& parts) { parts.pop_back(); });
  tail([](auto& parts) { parts.erase(parts.begin()); });
  tail([](auto& parts) { parts.push_back(parts.front()); });
  tail([](auto& parts) { parts[0].tag = Spgemm::b; });
  tail([](auto& parts) { parts[0].tag = 3; });
  tail([](auto& parts) { parts[0].access = Access::update; });
  tail([](auto& parts) { parts[2].access = Access::read; });
  tail([](auto& parts) { parts[2].range = parts[0].range; });  // overlaps
  tail([&](auto& parts) { parts[1].range = unaligned; });
  tail([&](auto& parts) { parts[1].range = absent; });
}

}  // namespace
}  // namespace troupe::test
