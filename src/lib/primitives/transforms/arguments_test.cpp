#include <troupe/lib/primitives.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

using primitives::Binary;
using primitives::ReduceOp;
using primitives::Unary;

TEST_F(BadArguments, OfPrimitiveTransforms) {
  using namespace primitives;
  using primitives::ReduceOp;
  const auto b = put(std::vector<double>(16)), c = put(std::vector<double>(16));
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const Transform unary{DType::f64, Unary::square_root, 0, 16, x, b.operand()};
  EXPECT_TRUE(unary.check().ok());
  with(unary, [](auto& op) { op.n = -1; });
  with(unary, [](auto& op) { op.n = 17; });
  with(unary, [](auto& op) { op.op = static_cast<Unary>(6); });
  with(unary, [](auto& op) { op.op = Unary::bit_not; });
  with(unary, [](auto& op) { op.dtype = DType::i64; });
  with(unary, [](auto& op) { op.dtype = DType::u64, op.op = Unary::reciprocal; });
  with(unary, [&](auto& op) { op.x = absent; });
  with(unary, [&](auto& op) { op.y = unaligned; });
  with(unary, [](auto& op) { op.n = 8, op.y = op.x, op.y.offset += 8, op.y.bytes -= 8; });
  with(
      unary, [](auto& op) { op.dtype = DType::c64; }, Errc::unsupported);

  const TransformPairs binary{DType::f64, Binary::divide, 0, 16, x, b.operand(), c.operand()};
  EXPECT_TRUE(binary.check().ok());
  with(binary, [](auto& op) { op.n = -1; });
  with(binary, [](auto& op) { op.n = 17; });
  with(binary, [](auto& op) { op.op = static_cast<Binary>(9); });
  with(binary, [](auto& op) { op.op = Binary::bit_xor; });
  with(binary, [&](auto& op) { op.y = absent; });
  with(binary, [&](auto& op) { op.z = absent; });
  with(
      binary, [](auto& op) { op.dtype = DType::c64; }, Errc::unsupported);

  const Convert convert{DType::f64, DType::i32, 16, x, b.operand()};
  EXPECT_TRUE(convert.check().ok());
  with(convert, [](auto& op) { op.n = -1; });
  with(convert, [](auto& op) { op.n = 17; });
  with(convert, [](auto& op) { op.y.bytes = 60; });
  with(convert, [](auto& op) { op.y = op.x; });
  with(
      convert, [](auto& op) { op.y_dtype = DType::i8; }, Errc::unsupported);
  with(
      convert, [](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);

  const TransformReduce reduce{DType::f64, Unary::square, ReduceOp::sum, 16, x, b.operand()};
  EXPECT_TRUE(reduce.check().ok());
  with(reduce, [](auto& op) { op.n = -1; });
  with(reduce, [](auto& op) { op.n = 17; });
  with(reduce, [](auto& op) { op.op = Unary::bit_not; });
  with(reduce, [](auto& op) { op.reduction = static_cast<ReduceOp>(7); });
  with(reduce, [](auto& op) { op.reduction = ReduceOp::bit_or; });
  with(reduce, [](auto& op) { op.result = op.x; });
  with(reduce, [&](auto& op) { op.result = absent; });
}

TEST_F(BadArguments, OfPrimitiveTransformsOfDifferentLengths) {
  const auto other = put(std::vector<double>(16, 1.0)), third = put(std::vector<double>(16, 1.0));
  const auto four = ref.slice(0, 4), six = other.slice(0, 6);
  auto on_device = primitives::on(device());
  const std::pair<Future<void>, std::string> answers[] = {
      {on_device.transform(four, six, Unary::negate),
       "primitives.transform: y has 6 elements, not 4"},
      {on_device.transform(four, six, third.slice(0, 4), Binary::add),
       "primitives.transform_pairs: y has 6 elements, not 4"},
      {on_device.transform(four, other.slice(0, 4), third, Binary::add),
       "primitives.transform_pairs: z has 16 elements, not 4"},
      {on_device.convert(four, index), "primitives.convert: y has 16 elements, not 4"},
      {on_device.transform_reduce(four, six, Unary::square),
       "primitives.transform_reduce: result has 6 elements, not 1"},
      {on_device.copy_batched<double>({four, four}, {third}),
       "primitives.copy_batched: 3 ranges, not 2"},
      {on_device.copy_batched<double>({four}, {six}),
       "primitives.copy_batched: source 0 has 32 bytes, its destination 48"},
      {on_device.copy_batched<double>({four, ref.slice(4, 4)}, {six.slice(0, 4), six.slice(2, 4)}),
       "primitives.copy_batched:"},
      {on_device.copy_batched<double>({four}, {ref.slice(2, 4)}), "primitives.copy_batched:"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
  expect_refused(primitives::CopyBatched{DType::f32, -1});
  expect_refused(primitives::CopyBatched{DType::f32, 2049});
}

}  // namespace
}  // namespace troupe::test
