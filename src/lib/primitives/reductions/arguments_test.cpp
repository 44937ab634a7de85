#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

TEST_F(BadArguments, OfReductions) {
  using namespace primitives;
  using primitives::ReduceOp;
  const auto b = put(std::vector<double>(16)), c = put(std::vector<double>(16));
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  auto three_bytes = x;
  three_bytes.bytes = 3;

  const Reduce reduce{DType::f64, ReduceOp::sum, 0, 16, x, b.operand()};
  EXPECT_TRUE(reduce.check().ok());
  with(reduce, [](auto& op) { op.n = -1; });
  with(reduce, [](auto& op) { op.n = 17; });
  with(reduce, [](auto& op) { op.reduction = static_cast<ReduceOp>(7); });
  for (const auto of_bits : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor})
    with(reduce, [=](auto& op) { op.reduction = of_bits; });
  with(reduce, [&](auto& op) { op.x = absent; });
  with(reduce, [&](auto& op) { op.x = unaligned; });
  with(reduce, [&](auto& op) { op.result = absent; });
  with(reduce, [&](auto& op) { op.result = three_bytes; });
  with(reduce, [&](auto& op) { op.result = x; });
  with(
      reduce, [](auto& op) { op.dtype = DType::i16; }, Errc::unsupported);

  const ArgReduce arg{DType::f64, Extreme::min, 0, 16, x, b.operand(), c.operand()};
  EXPECT_TRUE(arg.check().ok());
  with(arg, [](auto& op) { op.n = -1; });
  with(arg, [](auto& op) { op.n = 17; });
  with(arg, [](auto& op) { op.extreme = static_cast<Extreme>(2); });
  with(arg, [&](auto& op) { op.x = absent; });
  with(arg, [&](auto& op) { op.value = absent; });
  with(arg, [&](auto& op) { op.index = absent; });
  with(arg, [&](auto& op) { op.x = unaligned; });
  with(arg, [](auto& op) { op.value.bytes = 4; });
  with(arg, [](auto& op) { op.index.bytes = 4; });
  with(arg, [](auto& op) { op.value = op.x; });
  with(arg, [](auto& op) { op.index = op.value; });
  with(
      arg, [](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);

  const SegmentedReduce segmented{DType::f64, ReduceOp::sum, 0, 16, 8, x, b.operand(), c.operand()};
  EXPECT_TRUE(segmented.check().ok());
  with(segmented, [](auto& op) { op.n = -1; });
  with(segmented, [](auto& op) { op.n = 17; });
  with(segmented, [](auto& op) { op.segments = -1; });
  with(segmented, [](auto& op) { op.segments = 16; });
  with(segmented, [](auto& op) { op.segments = std::numeric_limits<std::int64_t>::max(); });
  with(segmented, [](auto& op) { op.reduction = ReduceOp::prod; });
  with(segmented, [&](auto& op) { op.x = absent; });
  with(segmented, [&](auto& op) { op.offsets = absent; });
  with(segmented, [&](auto& op) { op.result = absent; });
  with(segmented, [&](auto& op) { op.offsets = unaligned; });
  with(segmented, [](auto& op) { op.result.bytes = 60; });
  with(segmented, [](auto& op) { op.result = op.x; });
  with(segmented, [](auto& op) { op.result = op.offsets; });
  with(
      segmented, [](auto& op) { op.dtype = DType::f16; }, Errc::unsupported);
}

TEST_F(BadArguments, OfReductionsOfDifferentLengths) {
  const auto other = put(std::vector<double>(16, 1.0));
  const auto places = put(std::vector<std::int64_t>(16));
  const auto four = ref.slice(0, 4), six = other.slice(0, 6), one_value = other.slice(0, 1);
  auto on_device = primitives::on(device());
  using primitives::Extreme;
  const std::pair<Future<void>, std::string> answers[] = {
      {on_device.reduce(four, six), "primitives.reduce: result has 6 elements, not 1"},
      {on_device.arg_reduce(four, six, places.slice(0, 1), Extreme::min),
       "primitives.arg_reduce: value has 6 elements, not 1"},
      {on_device.arg_reduce(four, one_value, places.slice(0, 2), Extreme::min),
       "primitives.arg_reduce: index has 2 elements, not 1"},
      {on_device.segmented_reduce(four, places.slice(0, 6), six),
       "primitives.segmented_reduce: offsets has 6 elements, not 7"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
}

}  // namespace
}  // namespace troupe::test
