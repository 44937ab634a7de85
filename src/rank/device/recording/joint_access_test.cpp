// What a sequence of commands does to each byte, against a model that goes byte by byte.
#include "rank/device/recording/joint_access.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/memory.hpp>

namespace troupe::rank_process {
namespace {

constexpr std::uint32_t kOverwritten = 7;
constexpr std::size_t kBytes = 64;

Operand range(std::uint64_t first, std::uint64_t bytes, std::uint32_t buffer = 1) {
  return {.region = 1, .buffer = buffer, .generation = 3, .offset = first, .bytes = bytes};
}
template <Operation Op>
void add(JointAccess& joint, const Op& op) {
  joint.add(detail::CommandView(info_of<Op>, std::as_bytes(std::span(&op, 1))));
}

/// A byte as JointAccess defines it.
struct Byte {
  bool read = false, written = false, overwritten = false;
};
using Memory = std::array<Byte, kBytes>;

void read(Memory& memory, const Operand& what) {
  for (auto i = what.offset; i < what.offset + what.bytes; ++i)
    memory[i].read |= !memory[i].overwritten;
}
void write(Memory& memory, const Operand& what, std::uint64_t sure) {
  for (auto i = what.offset; i < what.offset + what.bytes; ++i) {
    memory[i].written = true;
    memory[i].overwritten |= i < what.offset + sure && !memory[i].read;
  }
}

TEST(JointAccess, IsWhatTheCommandsDoToEachByte) {
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto some = [&] {
      const auto bytes = 8 * (1 + random() % 4);
      return range(8 * (random() % ((kBytes - bytes) / 8 + 1)), bytes);
    };
    JointAccess joint;
    Memory memory{};
    for (auto count = 1 + random() % 8; count > 0; --count) {
      const auto x = some(), y = some();
      switch (random() % 3) {
        case 0: {  // it need not fill all of the range
          const auto elements = random() % (x.bytes / 8 + 1);
          add(joint, memory::Fill{DType::f64, elements, {}, x});
          write(memory, x, 8 * elements);
          break;
        }
        case 1: {
          auto to = y;
          to.bytes = x.bytes;
          if (to.offset + to.bytes > kBytes) to.offset = kBytes - to.bytes;
          add(joint, memory::Copy{DType::f64, x, to});
          read(memory, x), write(memory, to, x.bytes);
          break;
        }
        default:
          add(joint, blas::Scal{DType::f64, static_cast<std::int64_t>(x.bytes / 8), 1,
                                Scalar::of(2.0), x});
          read(memory, x), write(memory, x, x.bytes);
      }
    }
    Memory told{};
    std::array<int, kBytes> times{};
    for (const auto& part : joint.operands(kOverwritten).take()) {
      EXPECT_EQ(part.range.buffer, 1u);
      EXPECT_EQ(part.range.generation, 3u);
      for (auto i = part.range.offset; i < part.range.offset + part.range.bytes; ++i) {
        ++times[i];
        told[i] = {part.access != Access::write, part.written(), part.tag == kOverwritten};
      }
    }
    for (std::size_t i = 0; i < kBytes; ++i) {
      const auto& byte = memory[i];
      ASSERT_EQ(times[i], byte.read || byte.written ? 1 : 0) << "byte " << i;
      EXPECT_EQ(told[i].read, byte.read) << "byte " << i;
      EXPECT_EQ(told[i].written, byte.written) << "byte " << i;
      EXPECT_EQ(told[i].overwritten, byte.overwritten && !byte.read) << "byte " << i;
    }
  }
}

TEST(JointAccess, OfManyRangesNamesNoOtherByte) {
  JointAccess joint;
  constexpr std::uint64_t kMany = JointAccess::kMostRanges;
  for (std::uint64_t i = 0; i < kMany; ++i)
    add(joint, memory::Fill{DType::f64, 1, {}, range(32 * i, 8)});
  const auto all = joint.operands(kOverwritten).take();
  ASSERT_EQ(all.size(), kMany);
  for (std::uint64_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(all[i].range.offset, 32 * i);
    EXPECT_EQ(all[i].range.bytes, 8u);
    EXPECT_EQ(all[i].tag, kOverwritten);
  }
  add(joint, memory::Fill{DType::f64, 1, {}, range(32 * kMany, 8)});
  const auto more = joint.operands(kOverwritten);
  EXPECT_EQ(more.code(), Errc::unsupported);
  EXPECT_NE(more.error().message.find("4097 ranges"), std::string::npos) << more.error().message;
}

TEST(JointAccess, OfTooManyRangesJoinsThoseThatTouch) {
  JointAccess joint;
  constexpr std::uint64_t kMany = JointAccess::kMostRanges;
  for (std::uint64_t i = 0; i < kMany; ++i) {  // written, read, nothing, …
    add(joint, memory::Copy{DType::f64, range(24 * i + 8, 8), range(8 * i, 8, 2)});
    add(joint, memory::Fill{DType::f64, 1, {}, range(24 * i, 8)});
  }
  const auto all = joint.operands(kOverwritten);
  EXPECT_EQ(all.code(), Errc::unsupported) << "one beyond the most, with the other buffer";
  JointAccess fewer;
  for (std::uint64_t i = 0; i < kMany - 1; ++i) {
    add(fewer, memory::Copy{DType::f64, range(24 * i + 8, 8), range(8 * i, 8, 2)});
    add(fewer, memory::Fill{DType::f64, 1, {}, range(24 * i, 8)});
  }
  const auto some = fewer.operands(kOverwritten).take();
  ASSERT_EQ(some.size(), kMany);
  for (std::uint64_t i = 0; i < kMany - 1; ++i) {
    EXPECT_EQ(some[i].range.offset, 24 * i);
    EXPECT_EQ(some[i].range.bytes, 16u);
    EXPECT_EQ(some[i].access, Access::update) << "the other half is kept";
  }
  EXPECT_EQ(some.back().access, Access::write);
  EXPECT_EQ(some.back().range.bytes, 8 * (kMany - 1));
  EXPECT_EQ(some.back().tag, kOverwritten);
}

TEST(JointAccess, ReadsBeforeItWritesWithinOneCommand) {
  JointAccess joint;
  add(joint, memory::Copy{DType::f64, range(0, 16), range(8, 16, 2)});
  add(joint, memory::Fill{DType::f64, 2, {}, range(0, 16)});
  const auto all = joint.operands(kOverwritten).take();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].access, Access::update);
  EXPECT_EQ(all[1].access, Access::write);
  EXPECT_EQ(all[1].tag, kOverwritten);
}

}  // namespace
}  // namespace troupe::rank_process
