// Kinds of commands: what of a command a plan and its kernels depend on.
#include "common/wire/kind.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <troupe/lib/outside.hpp>

#include "sound_operations.hpp"

namespace troupe::wire::test {
namespace {

std::uint64_t key_of(std::span<const std::byte> record) {
  Command command;
  EXPECT_TRUE(command.decode(record).ok());
  return kind_key(command);
}

/// The same operation on operands that lie elsewhere, as far apart from each other.
std::vector<std::byte> moved(std::span<const std::byte> record, std::uint64_t bytes) {
  std::vector<std::byte> copy(record.begin(), record.end());
  CommandHeader header;
  std::memcpy(&header, copy.data(), sizeof header);
  header.ticket += 5;
  std::memcpy(copy.data(), &header, sizeof header);
  const auto& info = *find_operation(header.opcode).info;
  auto* const op = copy.data() + sizeof header;
  const auto move = [bytes](Operand& range) {
    if (!range.present()) return;
    range.buffer += 3, range.generation += 2;
    range.offset += bytes;
  };
  for (const auto& operand : info.operands) move(info.operand(op, operand));
  auto* const tail = op + info.bytes;
  for (std::size_t i = 0; i < header.tail_count; ++i)
    move(*reinterpret_cast<Operand*>(tail + i * sizeof(TailOperand)));
  return copy;
}

TEST(Kind, OfEverySampleDependsNotOnWhereItsOperandsLie) {
  std::set<std::uint64_t> keys;
  for (const auto& sample : samples()) {
    const auto record = record_of(*sample.info, sample.op);
    SCOPED_TRACE(sample.info->name);
    EXPECT_EQ(key_of(record), key_of(moved(record, 4096)));
    keys.insert(key_of(record));
  }
  EXPECT_EQ(keys.size(), samples().size()) << "two operations are of one kind";
}

TEST(Kind, HasARecordWhoseOperandsLieOneBehindAnother) {
  for (const auto& sample : samples()) {
    SCOPED_TRACE(sample.info->name);
    Command command, kind;
    ASSERT_TRUE(command.decode(record_of(*sample.info, sample.op)).ok());
    const auto record = kind_record(command);
    ASSERT_TRUE(kind.decode(record).ok());
    EXPECT_EQ(kind.info().opcode, command.info().opcode);
    EXPECT_EQ(kind_key(kind), kind_key(command));
    EXPECT_EQ(kind_record(kind), record) << "of a kind's own record";
    ASSERT_EQ(kind.operands().size(), command.operands().size());
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < kind.operands().size(); ++i) {
      const auto& range = *kind.operands()[i].range;
      if (outside::is_outside(range)) continue;
      if (kind.info().cell != nullptr &&
          &range == &kind.info().operand(kind.op(), *kind.info().cell)) {
        EXPECT_EQ(range.region, kKindPinnedRegion);
        EXPECT_LT(range.offset, 256u);
        continue;
      }
      EXPECT_EQ(range.region, kKindRegion);
      const auto& before = *command.operands()[i].range;
      const bool named_before = std::any_of(
          command.operands().begin(), command.operands().begin() + static_cast<std::ptrdiff_t>(i),
          [&](const auto& use) {
            return use.range->region == before.region && use.range->offset == before.offset;
          });
      if (named_before) continue;  // it has its place
      EXPECT_GE(range.offset, end) << "operands overlap";
      EXPECT_EQ(range.bytes, command.operands()[i].range->bytes);
      EXPECT_EQ(range.offset % 256, command.operands()[i].range->offset % 256);
      end = range.offset + range.bytes;
    }
    EXPECT_EQ(kind_bytes(kind), end);
  }
}

TEST(Kind, TellsSizesApartAndFactorsNot) {
  const auto x = troupe::test::range_in(1), y = troupe::test::range_in(2);
  const auto axpy = [&](std::int64_t n, double alpha) {
    blas::Axpy op{};
    op.dtype = DType::f64;
    op.n = n;
    op.alpha = Scalar::of(alpha);
    op.x = x;
    op.y = y;
    return key_of(record_of(op));
  };
  EXPECT_EQ(axpy(5, 2.0), axpy(5, 3.0));
  EXPECT_NE(axpy(5, 2.0), axpy(6, 2.0));
  rng::Uniform random{DType::f32, 4, 1, 2, 3, x};
  const auto key = key_of(record_of(random));
  random.seed = 7, random.subsequence = 8, random.offset = 9;
  EXPECT_EQ(key_of(record_of(random)), key);
  random.n = 2;
  EXPECT_NE(key_of(record_of(random)), key);
}

TEST(Kind, KeepsWhichOperandsAreTheSame) {
  auto x = troupe::test::range_in(1), y = troupe::test::range_in(2);
  x.offset = y.offset = 4096;
  fft::Transform apart{DType::c64, fft::Kind::forward, 1, {4, 0, 0}, 1, {}, {}, x, y};
  auto in_place = apart;
  in_place.output = x;
  EXPECT_NE(key_of(record_of(apart)), key_of(record_of(in_place)));
  Command command, kind;
  ASSERT_TRUE(command.decode(record_of(in_place)).ok());
  const auto record = kind_record(command);
  ASSERT_TRUE(kind.decode(record).ok());
  EXPECT_EQ(kind.operands()[0].range->offset, kind.operands()[1].range->offset);
}

}  // namespace
}  // namespace troupe::wire::test
