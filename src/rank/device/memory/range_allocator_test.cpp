// The sub-allocator of a slab, against a map of who owns which bytes.
#include "rank/device/memory/range_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace troupe::rank_process {
namespace {

constexpr auto kAlignment = RangeAllocator::kAlignment;

std::uint64_t rounded(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
}

/// The largest gap between the taken ranges.
std::uint64_t largest_gap(const std::map<std::uint64_t, std::uint64_t>& taken, std::uint64_t size) {
  std::uint64_t gap = 0, end = 0;
  for (const auto& [offset, bytes] : taken) {
    gap = std::max(gap, offset - end);
    end = offset + bytes;
  }
  return std::max(gap, size - end);
}

TEST(RangeAllocator, AgreesWithAMapOfIntervals) {
  std::uint64_t refused = 0;
  for (std::uint32_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::uint64_t size = kAlignment * (1 + random() % 200);
    const auto largest = 1 + random() % (size / 2);
    RangeAllocator allocator(size + random() % kAlignment);
    std::map<std::uint64_t, std::uint64_t> taken;
    std::uint64_t used = 0;
    for (int i = 0; i < 500 && !HasFailure(); ++i) {
      if (taken.empty() || random() % 5 < 3) {
        const auto bytes = random() % (largest + 1);
        const auto offset = allocator.allocate(bytes);
        ASSERT_EQ(offset.has_value(), largest_gap(taken, size) >= rounded(bytes))
            << bytes << " bytes";
        refused += offset ? 0 : 1;
        if (!offset) continue;
        ASSERT_EQ(*offset % kAlignment, 0u);
        ASSERT_LE(*offset + rounded(bytes), size);
        const auto next = taken.lower_bound(*offset);
        if (next != taken.end()) {
          ASSERT_LE(*offset + rounded(bytes), next->first) << "overlaps what follows";
        }
        if (next != taken.begin()) {
          const auto before = std::prev(next);
          ASSERT_LE(before->first + before->second, *offset) << "overlaps what precedes";
        }
        taken.emplace(*offset, rounded(bytes));
        used += rounded(bytes);
      } else {
        const auto it =
            std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
        allocator.release(it->first);
        used -= it->second;
        taken.erase(it);
      }
      ASSERT_EQ(allocator.used(), used);
      ASSERT_EQ(allocator.empty(), taken.empty());
    }
    std::vector<std::uint64_t> offsets;
    for (const auto& [offset, bytes] : taken) offsets.push_back(offset);
    std::shuffle(offsets.begin(), offsets.end(), random);
    for (const auto offset : offsets) allocator.release(offset);
    EXPECT_TRUE(allocator.empty());
    EXPECT_EQ(allocator.allocate(size), 0u) << "all the pieces are one again";
  }
  EXPECT_GT(refused, 1000u) << "the full allocator was hardly tried";
}

TEST(RangeAllocator, TakesTheSmallestGapThatFits) {
  RangeAllocator allocator(100 * kAlignment);
  const auto a = allocator.allocate(10 * kAlignment), wall = allocator.allocate(1);
  const auto b = allocator.allocate(4 * kAlignment), second_wall = allocator.allocate(1);
  ASSERT_TRUE(a && wall && b && second_wall);
  allocator.release(*a);
  allocator.release(*b);
  EXPECT_EQ(allocator.allocate(3 * kAlignment), b);
  EXPECT_EQ(allocator.allocate(9 * kAlignment), a);
}

TEST(RangeAllocator, NothingStillGetsAPlaceOfItsOwn) {
  RangeAllocator allocator(2 * kAlignment);
  const auto a = allocator.allocate(0), b = allocator.allocate(0);
  ASSERT_TRUE(a && b);
  EXPECT_NE(*a, *b);
  EXPECT_FALSE(allocator.allocate(0));
}

TEST(RangeAllocator, AbsurdSizesAreRefused) {
  RangeAllocator allocator(1024);
  for (const auto bytes :
       {std::uint64_t{1025}, std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max(),
        std::numeric_limits<std::uint64_t>::max() - kAlignment + 1}) {
    EXPECT_FALSE(allocator.allocate(bytes)) << bytes;
  }
  EXPECT_TRUE(allocator.empty());
  EXPECT_FALSE(RangeAllocator(kAlignment - 1).allocate(1));
}

TEST(RangeAllocatorDeathTest, ReleasingWhatWasNotAllocatedAborts) {
  RangeAllocator allocator(4 * kAlignment);
  const auto offset = allocator.allocate(2 * kAlignment);
  ASSERT_TRUE(offset);
  EXPECT_DEATH(allocator.release(*offset + kAlignment), "not allocated");
  allocator.release(*offset);
  EXPECT_DEATH(allocator.release(*offset), "not allocated");
}

}  // namespace
}  // namespace troupe::rank_process
