#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <numeric>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

/// Refuses an operation of 16 elements, of f64, whose result cell is `count`.
class BadArgumentsOfSelections : public BadArguments {
 protected:
  detail::ResultCell cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  GpuRef<double> other = put(std::vector<double>(16)), third = put(std::vector<double>(16)),
                 fourth = put(std::vector<double>(16));

  template <class Op, class Change>
  void with(Op op, Change change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  }
  /// Changes that every one of these operations refuses.
  template <class Op>
  void check_common(const Op& op) {
    EXPECT_TRUE(op.check().ok());
    with(op, [](auto& changed) { changed.n = -1; });
    with(op, [](auto& changed) { changed.n = 17; });
    with(op, [&](auto& changed) { changed.count = absent; });
    with(op, [&](auto& changed) { changed.count = i; });  // not pinned
    with(op, [](auto& changed) { changed.count.bytes = 4; });
    with(
        op, [](auto& changed) { changed.dtype = DType::u16; }, Errc::unsupported);
  }
  template <class Op>
  void check_room(const Op& op) {
    with(op, [](auto& changed) { changed.capacity = -1; });
    with(op, [](auto& changed) { changed.capacity = 17; });
    with(op, [](auto& changed) { changed.on_failure = static_cast<OnFailure>(2); });
  }
};

TEST_F(BadArgumentsOfSelections, OfFlagged) {
  using namespace primitives;
  const SelectFlagged select{DType::f64,      OnFailure::error, 0,         16, 16, x,
                             other.operand(), third.operand(),  cell.where};
  check_common(select);
  check_room(select);
  with(select, [&](auto& op) { op.x = absent; });
  with(select, [&](auto& op) { op.x = unaligned; });
  with(select, [&](auto& op) { op.flags = absent; });
  with(select, [](auto& op) { op.flags.bytes = 15; });
  with(select, [&](auto& op) { op.selected = absent; });
  with(select, [&](auto& op) { op.selected = x; });
  with(select, [](auto& op) { op.selected = op.flags; });

  const PartitionFlagged partition{DType::f64, 16, x, other.operand(), third.operand(), cell.where};
  check_common(partition);
  with(partition, [&](auto& op) { op.x = absent; });
  with(partition, [&](auto& op) { op.flags = absent; });
  with(partition, [](auto& op) { op.flags.bytes = 15; });
  with(partition, [&](auto& op) { op.y = absent; });
  with(partition, [](auto& op) { op.y.bytes = 120; });
  with(partition, [&](auto& op) { op.y = x; });
  with(partition, [](auto& op) { op.y = op.flags; });
}

TEST_F(BadArgumentsOfSelections, OfRuns) {
  using namespace primitives;
  using primitives::ReduceOp;
  const Unique unique{DType::f64, OnFailure::error, 0, 16, 16, x, other.operand(), cell.where};
  check_common(unique);
  check_room(unique);
  with(unique, [&](auto& op) { op.x = absent; });
  with(unique, [&](auto& op) { op.selected = absent; });
  with(unique, [&](auto& op) { op.selected = x; });

  const RunLengthEncode encode{DType::f64,      OnFailure::error, 0,         16, 16, x,
                               other.operand(), third.operand(),  cell.where};
  check_common(encode);
  check_room(encode);
  with(encode, [&](auto& op) { op.x = absent; });
  with(encode, [&](auto& op) { op.values = absent; });
  with(encode, [&](auto& op) { op.lengths = absent; });
  with(encode, [&](auto& op) { op.lengths = unaligned; });
  with(encode, [&](auto& op) { op.values = x; });
  with(encode, [](auto& op) { op.lengths = op.values; });

  const ReduceByKey reduce{
      DType::f64, DType::i64,      OnFailure::error, ReduceOp::sum,    16,        16,
      x,          other.operand(), third.operand(),  fourth.operand(), cell.where};
  check_common(reduce);
  check_room(reduce);
  with(reduce, [](auto& op) { op.reduction = static_cast<ReduceOp>(7); });
  for (const auto dtype : {DType::f32, DType::f64, DType::u8})
    with(
        reduce, [&](auto& op) { op.value_dtype = dtype; }, Errc::unsupported);
  with(reduce, [&](auto& op) { op.keys = absent; });
  with(reduce, [&](auto& op) { op.values = absent; });
  with(reduce, [](auto& op) { op.values.bytes = 120; });
  with(reduce, [&](auto& op) { op.unique_keys = absent; });
  with(reduce, [&](auto& op) { op.results = absent; });
  with(reduce, [](auto& op) { op.results.bytes = 120; });
  with(reduce, [&](auto& op) { op.unique_keys = x; });
  with(reduce, [](auto& op) { op.results = op.values; });
  with(reduce, [](auto& op) { op.results = op.unique_keys; });
}

TEST_F(BadArgumentsOfSelections, OfDifferentLengths) {
  const auto flags = put(std::vector<std::uint8_t>(16));
  const auto integers = put(std::vector<std::int64_t>(16));
  const auto more_integers = put(std::vector<std::int64_t>(16));
  const auto four = ref.slice(0, 4), six = other.slice(0, 6), free = third.slice(0, 4);
  auto on_device = primitives::on(device());
  const std::pair<Future<std::int64_t>, std::string> answers[] = {
      {on_device.select_flagged(four, flags.slice(0, 6), free),
       "primitives.select_flagged: flags has 6 elements, not 4"},
      {on_device.partition_flagged(four, flags.slice(0, 6), free),
       "primitives.partition_flagged: flags has 6 elements, not 4"},
      {on_device.partition_flagged(four, flags.slice(0, 4), six),
       "primitives.partition_flagged: y has 6 elements, not 4"},
      {on_device.run_length_encode(four, six, integers.slice(0, 4)),
       "primitives.run_length_encode: values has 6 elements, not 4"},
      {on_device.reduce_by_key(four, integers.slice(0, 6), free, more_integers.slice(0, 4)),
       "primitives.reduce_by_key: values has 6 elements, not 4"},
      {on_device.reduce_by_key(four, integers.slice(0, 4), six, more_integers.slice(0, 4)),
       "primitives.reduce_by_key: unique_keys has 6 elements, not 4"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
}

}  // namespace
}  // namespace troupe::test
