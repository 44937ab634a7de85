// Who comes to collectives last.
#include <gtest/gtest.h>

#include <random>

#include "rank/device/flight/arrivals.hpp"

namespace troupe::rank_process {
namespace {

std::vector<Arrival> arrivals(int count, std::int64_t delay_ns, int from = 0) {
  std::vector<Arrival> all;
  for (int i = from; i < count; ++i)
    all.push_back({static_cast<std::uint64_t>(i + 1), 1'000'000 * std::int64_t{i} + delay_ns});
  return all;
}

TEST(Arrivals, NamesTheRankThatIsLast) {
  const auto slowest =
      find_slowest({arrivals(101, 0), arrivals(101, 300'000), arrivals(101, 100'000)}, 1, 100);
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->rank, 1u);
  EXPECT_EQ(slowest->last, 101u);
  EXPECT_EQ(slowest->collectives, 101u);
  // 0.2 ms more than the next, 100 times in 100 ms behind the first.
  EXPECT_NEAR(slowest->waiting, 0.2, 1e-9);
}

TEST(Arrivals, ComparesWhatAllRanksHave) {
  auto late = arrivals(120, 300'000);
  late.erase(late.begin() + 10, late.begin() + 30);
  const auto slowest = find_slowest({arrivals(120, 0, 5), {}, late}, 1, 90);
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->rank, 2u);
  EXPECT_EQ(slowest->collectives, 95u);
}

TEST(Arrivals, SaysNothingOfFew) {
  EXPECT_FALSE(find_slowest({arrivals(99, 0), arrivals(99, 5)}, 1, 100));
  EXPECT_FALSE(find_slowest({arrivals(200, 0), {}}, 1, 100));
  EXPECT_FALSE(find_slowest({}, 1, 0));
}

TEST(Arrivals, CountsAllOfWhichAFewWereKept) {
  std::vector<Arrival> one, other;
  for (std::int64_t i = 1; i <= 101; ++i) {
    one.push_back({static_cast<std::uint64_t>(4 * i), 4'000'000 * i});
    other.push_back({static_cast<std::uint64_t>(4 * i), 4'000'000 * i + 100'000});
  }
  const auto slowest = find_slowest({one, other}, 4, 100);
  ASSERT_TRUE(slowest);
  EXPECT_NEAR(slowest->waiting, 0.1, 1e-9);  // 0.1 ms, 400 times in 400 ms
}

/// All submit everything at once, one of them after the others, and the device takes its time.
TEST(Arrivals, NobodyWaitsForAProgramThatRunsAhead) {
  const auto ahead = [](std::int64_t delay_ns) {
    auto all = arrivals(1000, delay_ns);
    for (std::size_t i = 1; i < all.size(); ++i) all[i].ahead = 1;
    return all;
  };
  EXPECT_FALSE(find_slowest({ahead(0), ahead(6'000'000'000)}, 1, 100));
  // One whose program comes to each when the one before has ended is waited for, though.
  const auto slowest = find_slowest({ahead(0), arrivals(1000, 6'000'000'000)}, 1, 100);
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->rank, 1u);
}

TEST(Arrivals, NoSecondIsWaitedForTwice) {
  // Each collective comes 6 s later on one rank: they overlap by far.
  for (const std::uint32_t stride : {1u, 8u}) {
    const auto slowest =
        find_slowest({arrivals(1000, 0), arrivals(1000, 6'000'000'000)}, stride, 100);
    ASSERT_TRUE(slowest);
    EXPECT_GT(slowest->waiting, 0.99);
    EXPECT_LE(slowest->waiting, 1);
  }
}

TEST(Arrivals, NobodyIsCalledSlowestWhereRanksAreBalanced) {
  const auto noisy = [](unsigned seed) {
    std::mt19937 random(seed);
    auto all = arrivals(1000, 0);
    for (auto& one : all) one.time_ns += static_cast<std::int64_t>(random() % 300'000);
    return all;
  };
  EXPECT_FALSE(find_slowest({noisy(1), noisy(2)}, 1, 100)) << "each is last in about a half";
  EXPECT_FALSE(find_slowest({noisy(1), noisy(2), noisy(3), noisy(4)}, 1, 100));
  EXPECT_FALSE(find_slowest({arrivals(1000, 0), arrivals(1000, 5'000)}, 1, 100))
      << "always the same, by 5 us in each ms";
}

TEST(Arrivals, KeepsTheSameOnesOnRanksThatHaveSeenAboutAsMany) {
  const auto kept = [](std::uint32_t count) {
    Arrivals arrivals;
    for (std::uint32_t number = 1; number <= count; ++number) arrivals.add(3, number, number);
    return arrivals.taken(TickScale().read());
  };
  const auto few = kept(100'000), more = kept(100'500);
  EXPECT_LE(few.size(), Arrivals::kMost);
  EXPECT_GT(few.size(), Arrivals::kMost / 4);
  for (std::size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].collective, more[i].collective);
}

TEST(Arrivals, KeepsAllWhileTheyAreFew) {
  Arrivals arrivals;
  for (std::uint32_t number = 1; number <= Arrivals::kMost; ++number)
    arrivals.add(1, number, number);
  EXPECT_EQ(arrivals.stride(), 1u);
  EXPECT_EQ(arrivals.taken(TickScale().read()).size(), Arrivals::kMost);
}

}  // namespace
}  // namespace troupe::rank_process
