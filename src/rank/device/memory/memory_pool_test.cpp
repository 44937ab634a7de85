// The pool of slabs: when it grows, when it gives back, and what it answers at its limit.
#include "rank/device/memory/memory_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace troupe::rank_process {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

/// Segments that exist as numbers only.
class MemoryPoolTest : public ::testing::Test {
 protected:
  MemoryPool pool(std::uint64_t limit, std::uint32_t region_bit = 0, std::uint64_t largest = 0,
                  std::uint64_t segment = 8 * kMiB) {
    return MemoryPool(
        {.segment_bytes = segment,
         .largest_segment_bytes = largest,
         .limit = limit,
         .region_bit = region_bit,
         .make = [this](std::uint32_t region, std::uint64_t bytes) -> Result<void> {
           if (fails_) return *fails_;
           if (bytes > there_is_) return Error{Errc::out_of_memory, 2, "not so much in one piece"};
           EXPECT_TRUE(segments_.emplace(region, bytes).second) << "region " << region << " exists";
           return {};
         },
         .drop = [this](std::uint32_t region) { EXPECT_EQ(segments_.erase(region), 1u); }});
  }
  std::map<std::uint32_t, std::uint64_t> segments_;
  std::optional<Error> fails_;
  std::uint64_t there_is_ = UINT64_MAX;  ///< for one segment
};

TEST_F(MemoryPoolTest, GrowsWhenItMust) {
  auto memory = pool(0);
  EXPECT_EQ(memory.held(), 0u);
  const auto a = memory.allocate(5 * kMiB);
  ASSERT_TRUE(a.ok());
  EXPECT_NE(a->region, 0u) << "region 0 means no operand";
  const auto b = memory.allocate(3 * kMiB);
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->region, a->region);
  EXPECT_NE(b->offset, a->offset);
  EXPECT_EQ(segments_.size(), 1u);
  const auto c = memory.allocate(1);
  ASSERT_TRUE(c.ok());
  EXPECT_NE(c->region, a->region);
  EXPECT_EQ(memory.held(), 16 * kMiB);
}

TEST_F(MemoryPoolTest, NamesASizeThatNoMemoryHas) {
  auto memory = pool(0);
  EXPECT_EQ(memory.allocate(UINT64_MAX).error().message, "17592186044416 MiB in one buffer");
  EXPECT_EQ(memory.allocate((std::uint64_t{1} << 52) + 1).error().message,
            "4294967297 MiB in one buffer");
}

TEST_F(MemoryPoolTest, LargeBuffersGetASegmentThatGoesWithThem) {
  auto memory = pool(0);
  const auto large = memory.allocate(20 * kMiB + 1);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(segments_.at(large->region), 22 * kMiB) << "rounded up to the granularity";
  const auto beside = memory.allocate(100);  // in the rest of it
  ASSERT_TRUE(beside.ok());
  EXPECT_EQ(beside->region, large->region);
  memory.release(*large);
  EXPECT_EQ(memory.held(), 22 * kMiB) << "somebody is still in it";
  memory.release(*beside);
  EXPECT_EQ(memory.held(), 0u);
  EXPECT_TRUE(segments_.empty());
}

TEST_F(MemoryPoolTest, OrdinarySegmentsStayForReuse) {
  auto memory = pool(0);
  const auto first = memory.allocate(kMiB);
  memory.release(*first);
  EXPECT_EQ(segments_.size(), 1u);
  const auto second = memory.allocate(kMiB);
  EXPECT_EQ(second->region, first->region);
  EXPECT_EQ(segments_.size(), 1u);
}

TEST_F(MemoryPoolTest, RegionsCarryTheirBit) {
  auto memory = pool(0, 0x8000'0000u);
  for (int i = 0; i < 3; ++i) {
    const auto range = memory.allocate(8 * kMiB);
    ASSERT_TRUE(range.ok());
    EXPECT_NE(range->region & 0x8000'0000u, 0u);
  }
  EXPECT_EQ(segments_.size(), 3u);
}

TEST_F(MemoryPoolTest, MuchMemoryTakesFewSegments) {
  auto memory = pool(0, 0, 2048 * kMiB);
  constexpr std::uint64_t kMuch = 100 * 1024 * kMiB;
  for (std::uint64_t taken = 0; taken < kMuch; taken += 4 * kMiB)
    ASSERT_TRUE(memory.allocate(4 * kMiB).ok());
  EXPECT_LE(segments_.size(), 100u) << "not the 12,800 that 8 MiB each would be";
  EXPECT_LE(memory.held(), kMuch + 2048 * kMiB);
  for (const auto& [region, bytes] : segments_) EXPECT_LE(bytes, 2048 * kMiB);
}

TEST_F(MemoryPoolTest, LittleMemoryIsTakenInSmallPieces) {
  auto memory = pool(0, 0, 2048 * kMiB);
  std::uint64_t taken = 0;
  while (taken < 1024 * kMiB) {
    ASSERT_TRUE(memory.allocate(kMiB).ok());
    taken += kMiB;
    ASSERT_LE(memory.held(), std::max(taken + taken / 3, taken + 8 * kMiB)) << taken;
  }
}

TEST_F(MemoryPoolTest, ASegmentSizeOfNothingIsTheSmallestThereIs) {
  auto memory = pool(0, 0, 64 * kMiB, 0);
  ASSERT_TRUE(memory.allocate(1).ok());
  ASSERT_TRUE(memory.allocate(3 * kMiB).ok());
  EXPECT_EQ(memory.held(), 6 * kMiB);
}

TEST_F(MemoryPoolTest, ADeviceThatIsNearlyFullGivesSmallerSegments) {
  auto memory = pool(0, 0, 2048 * kMiB);
  for (std::uint64_t taken = 0; taken < 800 * kMiB || taken < memory.held(); taken += 8 * kMiB)
    ASSERT_TRUE(memory.allocate(8 * kMiB).ok());  // until all segments are full
  there_is_ = 9 * kMiB;
  const auto last = memory.allocate(9 * kMiB);
  EXPECT_EQ(last.code(), Errc::out_of_memory) << "would be 10 MiB";
  const auto fits = memory.allocate(7 * kMiB);
  ASSERT_TRUE(fits.ok());
  EXPECT_LE(segments_.at(fits->region), 9 * kMiB);
}

TEST_F(MemoryPoolTest, OneOfTheLargerSegmentsStaysForReuse) {
  auto memory = pool(0, 0, 2048 * kMiB);
  std::vector<MemoryPool::Range> taken;
  while (memory.held() < 1024 * kMiB) taken.push_back(*memory.allocate(8 * kMiB));
  const auto small = [&] {
    return static_cast<std::uint64_t>(
        std::count_if(segments_.begin(), segments_.end(),
                      [](const auto& segment) { return segment.second == 8 * kMiB; }));
  };
  const auto before = small();
  ASSERT_LT(before, segments_.size() - 1);
  for (const auto& range : taken) memory.release(range);
  EXPECT_EQ(small(), before);
  EXPECT_EQ(segments_.size(), before + 1);
  const auto held = memory.held();
  const auto again = memory.allocate(8 * kMiB);
  ASSERT_TRUE(again.ok());
  memory.release(*again);
  EXPECT_EQ(memory.held(), held);
}

TEST_F(MemoryPoolTest, TheLimitIsAnAnswerWithTheSizes) {
  auto memory = pool(20 * kMiB);
  ASSERT_TRUE(memory.allocate(8 * kMiB).ok());
  ASSERT_TRUE(memory.allocate(8 * kMiB).ok());
  const auto refused = memory.allocate(8 * kMiB);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Errc::out_of_memory);
  EXPECT_NE(refused.error().message.find("8 MiB"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("20 MiB"), std::string::npos) << refused.error().message;
  EXPECT_EQ(memory.held(), 16 * kMiB);
  EXPECT_EQ(segments_.size(), 2u);
}

TEST_F(MemoryPoolTest, WhatIsLeftUnderTheLimitCanBeUsed) {
  auto memory = pool(20 * kMiB);
  ASSERT_TRUE(memory.allocate(8 * kMiB).ok());
  ASSERT_TRUE(memory.allocate(8 * kMiB).ok());
  EXPECT_TRUE(memory.allocate(3 * kMiB).ok()) << "4 MiB are left, if no whole segment";
  EXPECT_LE(memory.held(), 20 * kMiB);
}

TEST_F(MemoryPoolTest, EmptySegmentsMakeWayAtTheLimit) {
  auto memory = pool(20 * kMiB);
  const auto a = memory.allocate(8 * kMiB), b = memory.allocate(8 * kMiB);
  ASSERT_TRUE(a.ok() && b.ok());
  memory.release(*a);
  memory.release(*b);
  EXPECT_TRUE(memory.allocate(16 * kMiB).ok()) << "nothing is in use";
  EXPECT_LE(memory.held(), 20 * kMiB);
}

TEST_F(MemoryPoolTest, AbsurdSizesAreRefused) {
  auto memory = pool(0);
  for (const auto bytes : {std::uint64_t{1} << 53, ~std::uint64_t{0}, ~std::uint64_t{0} - 511}) {
    EXPECT_EQ(memory.allocate(bytes).code(), Errc::out_of_memory) << bytes;
  }
  EXPECT_TRUE(segments_.empty());
}

TEST_F(MemoryPoolTest, AFailingMakeLeavesNoTrace) {
  auto memory = pool(8 * kMiB);
  fails_ = Error{Errc::device_lost, 700, "gone"};
  const auto refused = memory.allocate(1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().native, 700);
  EXPECT_EQ(memory.held(), 0u);
  fails_.reset();
  EXPECT_TRUE(memory.allocate(8 * kMiB).ok()) << "the failed one does not count against the limit";
}

TEST_F(MemoryPoolTest, RandomUseKeepsItsPromises) {
  for (std::uint32_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    segments_.clear();
    auto memory = pool(100 * kMiB, 0, 32 * kMiB);
    std::vector<std::pair<MemoryPool::Range, std::uint64_t>> taken;
    for (int i = 0; i < 400 && !HasFailure(); ++i) {
      fails_ = random() % 20 == 0 ? std::optional(Error{Errc::out_of_memory, 2, "cuMemCreate"})
                                  : std::nullopt;
      if (taken.empty() || random() % 2 == 0) {
        const auto bytes = random() % 10 == 0 ? random() % (30 * kMiB) : random() % kMiB;
        const auto range = memory.allocate(bytes);
        if (!range.ok()) continue;
        ASSERT_TRUE(segments_.contains(range->region));
        ASSERT_LE(range->offset + bytes, segments_.at(range->region));
        for (const auto& [other, other_bytes] : taken) {
          ASSERT_TRUE(other.region != range->region ||
                      other.offset + other_bytes <= range->offset ||
                      range->offset + bytes <= other.offset);
        }
        taken.emplace_back(*range, bytes);
      } else {
        const auto which = random() % taken.size();
        memory.release(taken[which].first);
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
      }
      std::uint64_t held = 0;
      for (const auto& [region, bytes] : segments_) held += bytes;
      ASSERT_EQ(memory.held(), held);
      ASSERT_LE(held, 100 * kMiB);
    }
  }
}

TEST_F(MemoryPoolTest, ManyThreads) {
  auto memory = pool(0);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 2000; ++i) {
        const auto range = memory.allocate(random() % (12 * kMiB));
        EXPECT_TRUE(range.ok());
        if (range.ok()) memory.release(*range);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& [region, bytes] : segments_)
    EXPECT_EQ(bytes, 8 * kMiB) << "a large segment was left behind";
}

}  // namespace
}  // namespace troupe::rank_process
