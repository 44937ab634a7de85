// Recorded sequences as a device host reads them: their order, their patches, how many are kept.
#include "device_host/sequences/sequences.hpp"

#include <gtest/gtest.h>

#include <random>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/overlap.hpp>
#include <troupe/lib/sequence.hpp>
#include <troupe/lib/vector.hpp>

#include "common/wire/sequence_list.hpp"

namespace troupe::host {
namespace {

Operand part(std::uint64_t i, std::uint64_t count = 1) {
  return {.region = 1, .buffer = 1, .offset = 64 * i, .bytes = 64 * count};
}
template <Operation Op>
wire::SequenceRecord record_of(const Op& op) {
  const detail::CommandView command(info_of<Op>, std::as_bytes(std::span(&op, 1)));
  wire::SequenceRecord record(wire::record_bytes(command));
  wire::encode(command, 0, record);
  return record;
}
auto make(const std::vector<wire::SequenceRecord>& records,
          const std::vector<sequence::Patch>& patches = {}) {
  const auto list = wire::pack_records(records);
  return RecordedSequence::make(
      {.number = 1, .commands = records.size(), .patches = std::as_bytes(std::span(patches))},
      list);
}
blas::Scal scal(std::uint64_t x) {
  return {DType::f64, 8, 1, Scalar::of(2.0), part(x)};
}

/// Whatever conflicts is ordered, by a queue or by a wait.
void expect_ordered(const RecordedSequence& sequence) {
  const auto& steps = sequence.steps();
  // before[j]: those that have surely ended when step j begins.
  std::vector<std::vector<bool>> before(steps.size(), std::vector<bool>(steps.size()));
  const auto take = [&](std::size_t j, std::size_t i) {
    before[j][i] = true;
    for (std::size_t k = 0; k < i; ++k) before[j][k] = before[j][k] || before[i][k];
  };
  for (std::size_t j = 0; j < steps.size(); ++j) {
    for (std::size_t i = j; i-- > 0;) {
      if (steps[i].queue() != steps[j].queue()) continue;
      take(j, i);
      break;
    }
    for (const auto i : steps[j].behind) {
      EXPECT_LT(i, j);
      EXPECT_NE(steps[i].queue(), steps[j].queue());
      EXPECT_TRUE(steps[i].awaited);
      take(j, i);
    }
    for (std::size_t i = 0; i < j; ++i) {
      bool conflict = false;
      for (const auto& a : steps[i].command->operands()) {
        for (const auto& b : steps[j].command->operands())
          conflict |= (a.access != Access::read || b.access != Access::read) &&
                      troupe::detail::overlap(*a.range, *b.range);
      }
      EXPECT_TRUE(!conflict || before[j][i]) << j << " does not wait for " << i;
    }
  }
}

/// Commands of several lanes on few ranges: whatever conflicts is ordered, by lane or by a wait.
TEST(RecordedSequence, OrdersWhatConflicts) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<wire::SequenceRecord> records;
    const auto some = [&] { return part(random() % 6); };
    for (int i = 0; i < 40; ++i) {
      const auto x = some();
      auto y = some();
      while (y.offset == x.offset) y = some();
      switch (random() % 4) {
        case 0: records.push_back(record_of(memory::Fill{DType::f64, 8, {}, x})); break;
        case 1: records.push_back(record_of(memory::Copy{DType::f64, x, y})); break;
        case 2:
          records.push_back(record_of(blas::Axpy{DType::f64, 8, 1, 1, Scalar::of(1.0), x, y}));
          break;
        default: records.push_back(record_of(vectors::Multiply{DType::f64, 8, x, x, y}));
      }
    }
    const auto made = make(records);
    ASSERT_TRUE(made.ok());
    expect_ordered(**made);
    expect_ordered(*(*made)->spread(library_lane("vector")));
    expect_ordered(*(*made)->spread(Lane::memory));
  }
}

TEST(RecordedSequence, SpreadsWhatIsIndependentOverSideQueues) {
  const auto multiply = [](std::uint64_t x, std::uint64_t y) {
    return record_of(vectors::Multiply{DType::f64, 8, part(x), part(x), part(y)});
  };
  // Four chains, step by step: each keeps to a queue of its own, and waits for no other.
  std::vector<wire::SequenceRecord> records;
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (std::uint64_t chain = 0; chain < 4; ++chain)
      records.push_back(multiply(10 * chain + step, 10 * chain + step + 1));
  }
  const auto made = make(records);
  ASSERT_TRUE(made.ok());
  const auto lane = library_lane("vector");
  const auto spread = (*made)->spread(lane);
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(spread->steps()[i].queue(), Queue::aside(lane, static_cast<std::uint8_t>(i % 4)));
    EXPECT_TRUE(spread->steps()[i].behind.empty()) << i;
    EXPECT_EQ((*made)->steps()[i].queue(), Queue(lane)) << "the list stays as it is";
  }
  // What needs all of them stands behind one and waits for the others.
  records.push_back(record_of(memory::Fill{DType::f64, 8, {}, part(50)}));
  records.push_back(record_of(vectors::Multiply{DType::f64, 8, part(3), part(13), part(23)}));
  const auto joined = make(records);
  ASSERT_TRUE(joined.ok());
  const auto last = (*joined)->spread(lane)->steps().back();
  EXPECT_EQ(last.side, 0);
  EXPECT_EQ(last.behind.size(), 2u);
}

TEST(RecordedSequence, PutsPatchesInTheirPlaces) {
  constexpr auto kFactor = static_cast<std::uint32_t>(
      sizeof(wire::CommandHeader) + offsetof(blas::Scal, alpha) + offsetof(Scalar, value));
  const std::vector<wire::SequenceRecord> records{record_of(scal(0)), record_of(scal(1))};
  sequence::Patch patch{1, kFactor, sizeof(double), 0, {}};
  const double three = 3;
  std::memcpy(patch.value.data(), &three, sizeof three);
  const auto made = make(records, {patch});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->steps()[0].command->as<blas::Scal>()->alpha.as<double>(), 2.0);
  EXPECT_EQ((*made)->steps()[1].command->as<blas::Scal>()->alpha.as<double>(), 3.0);
}

TEST(RecordedSequence, RefusesWhatItCannotBe) {
  const std::vector<wire::SequenceRecord> records{record_of(scal(0))};
  const auto size = static_cast<std::uint32_t>(records[0].size());
  for (const auto& patch : {sequence::Patch{1, 40, 8, 0, {}}, sequence::Patch{0, 8, 8, 0, {}},
                            sequence::Patch{0, size - 4, 8, 0, {}}})
    EXPECT_EQ(make(records, {patch}).code(), Errc::invalid);
  EXPECT_EQ(make({record_of(memory::Nop{})}).code(), Errc::invalid) << "it cannot be recorded";
  EXPECT_EQ(make({record_of(scal(0)), {}}).code(), Errc::invalid) << "an empty record";
  auto list = wire::pack_records(records);
  EXPECT_EQ(RecordedSequence::make({.number = 1, .commands = 2, .patches = {}}, list).code(),
            Errc::invalid);
  list.pop_back();
  EXPECT_EQ(RecordedSequence::make({.number = 1, .commands = 1, .patches = {}}, list).code(),
            Errc::invalid);
}

TEST(RecordedSequence, DoesNotBranchOutOfItself) {
  sequence::Branch branch;
  branch.flag = {.region = kPinnedRegion | 1, .bytes = 4};
  const auto with = [&](std::int64_t by) {
    branch.by = by;
    return make({record_of(scal(0)), record_of(branch), record_of(scal(1))});
  };
  for (const std::int64_t by : {-1, 1, 2}) {
    const auto made = with(by);
    ASSERT_TRUE(made.ok()) << by;
    EXPECT_TRUE((*made)->branches());
    EXPECT_EQ((*made)->steps()[1].by, by);
  }
  for (const std::int64_t by : {-2, 0, 3}) EXPECT_EQ(with(by).code(), Errc::invalid) << by;
  branch.flag.region = 1;
  EXPECT_EQ(with(1).code(), Errc::invalid) << "a flag in device memory";
}

TEST(SequenceTable, KeepsThoseThatWereUsedLast) {
  SequenceTable table;
  const auto list = wire::pack_records(std::vector<wire::SequenceRecord>{record_of(scal(0))});
  const auto find = [&](std::uint64_t number) {
    return table.find({.number = number, .commands = 1, .patches = {}}, list);
  };
  for (std::uint64_t i = 1; i <= SequenceTable::kMost; ++i) ASSERT_TRUE(find(i).ok());
  ASSERT_TRUE(find(1).ok());
  ASSERT_TRUE(find(SequenceTable::kMost + 1).ok());
  EXPECT_NE(table.find(1), nullptr);
  EXPECT_EQ(table.find(2), nullptr);
  EXPECT_NE(table.find(3), nullptr);
}

/// CUDA keeps whoever destroys a running graph waiting: the table destroys none itself.
TEST(SequenceTable, HandsOutGraphsThatAreVoid) {
  class SomeGraph final : public Graph {};
  SequenceTable table;
  const auto list = wire::pack_records(std::vector<wire::SequenceRecord>{record_of(scal(0))});
  const auto with_graph = [&](std::uint64_t number) {
    auto* const known = table.find({.number = number, .commands = 1, .patches = {}}, list).take();
    known->graph = std::make_shared<SomeGraph>();
    return std::weak_ptr(known->graph);
  };
  const auto dropped = with_graph(1);
  table.drop_graph(*table.find(1));
  EXPECT_EQ(table.find(1)->graph, nullptr);
  auto handed_out = table.take_void_graphs();
  ASSERT_EQ(handed_out.size(), 1u);
  EXPECT_EQ(handed_out.front(), dropped.lock());
  EXPECT_TRUE(table.take_void_graphs().empty());

  const auto forgotten = with_graph(2);
  for (std::uint64_t i = 3; i <= SequenceTable::kMost + 2; ++i)
    ASSERT_TRUE(table.find({.number = i, .commands = 1, .patches = {}}, list).ok());
  ASSERT_EQ(table.find(2), nullptr);
  handed_out = table.take_void_graphs();
  ASSERT_EQ(handed_out.size(), 1u);
  EXPECT_EQ(handed_out.front(), forgotten.lock());
}

TEST(SequenceTable, ReadsASequenceAgainForOtherPatches) {
  SequenceTable table;
  const auto list = wire::pack_records(std::vector<wire::SequenceRecord>{record_of(scal(0))});
  const sequence::Patch patch{0, sizeof(wire::CommandHeader) + offsetof(blas::Scal, n), 8, 0, {}};
  const SequenceCall plain{.number = 1, .commands = 1, .patches = {}},
      patched{.number = 1, .commands = 1, .patches = std::as_bytes(std::span(&patch, 1))};
  const auto first = table.find(plain, list);
  ASSERT_TRUE(first.ok());
  const auto sequence = (*first)->sequence;
  EXPECT_EQ((*table.find(plain, list))->sequence, sequence);
  const auto other = table.find(patched, list);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*other)->sequence->steps()[0].command->as<blas::Scal>()->n, 0);
  EXPECT_EQ(sequence->steps()[0].command->as<blas::Scal>()->n, 8) << "who plays it goes on";
}

}  // namespace
}  // namespace troupe::host
