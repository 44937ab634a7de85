// What waits beside the ring: whatever conflicts with it stays behind it, nothing else does.
#include "device_host/intake/set_aside.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <troupe/lib/outside.hpp>

namespace troupe::host {
namespace {

using Uses = std::vector<std::pair<Operand, Access>>;

Operand range(std::uint64_t begin, std::uint64_t bytes) {
  return {1, 0, 0, 0, begin, bytes};
}

class SetAsideTest : public testing::Test {
 protected:
  static std::vector<OperandUse> each(const Uses& uses) {
    std::vector<OperandUse> operands;
    for (const auto& [operand, access] : uses) operands.push_back({&operand, access, ""});
    return operands;
  }
  void add(int number, const Uses& uses, bool collective = false) {
    const auto byte = static_cast<std::byte>(number);
    set_aside_.add(static_cast<std::uint64_t>(number), {&byte, 1}, each(uses), collective);
  }
  [[nodiscard]] bool held(const Uses& uses, bool collective = false) const {
    return set_aside_.holds_up(each(uses), collective);
  }
  /// Offers all; those in `blocked` cannot be queued. The numbers that were.
  std::vector<int> offer(const std::vector<int>& blocked = {}) {
    std::vector<int> queued;
    set_aside_.offer([&](SetAside::Entry& entry) {
      const int number = static_cast<int>(entry.record[0]);
      if (std::find(blocked.begin(), blocked.end(), number) != blocked.end()) return false;
      queued.push_back(number);
      return true;
    });
    return queued;
  }

  SetAside set_aside_;
};

TEST_F(SetAsideTest, HoldsWhatConflictsWithItAndNothingElse) {
  EXPECT_FALSE(held({{range(0, 64), Access::write}}));
  add(1, {{range(0, 64), Access::read}, {range(64, 64), Access::write}});
  EXPECT_FALSE(held({{range(0, 64), Access::read}}));
  EXPECT_TRUE(held({{range(32, 8), Access::write}}));
  EXPECT_TRUE(held({{range(100, 1), Access::read}}));
  EXPECT_FALSE(held({{range(128, 64), Access::update}}));
  EXPECT_EQ(offer(), (std::vector{1}));
  EXPECT_FALSE(held({{range(64, 64), Access::write}}));
  EXPECT_TRUE(set_aside_.empty());
}

TEST_F(SetAsideTest, HoldsWhatTouchesTheSameOutsideOfMemory) {
  const auto file = outside::thing(7), other = outside::thing(8);
  add(1, {{range(0, 8), Access::read}, {file, Access::write}});
  EXPECT_TRUE(held({{range(8, 8), Access::write}, {file, Access::read}})) << "write, then read";
  EXPECT_TRUE(held({{range(8, 8), Access::read}, {file, Access::write}})) << "two writes";
  EXPECT_FALSE(held({{range(8, 8), Access::read}, {other, Access::write}}));
  EXPECT_TRUE(held({{outside::everything(), Access::update}})) << "a function may touch the file";
  add(2, {{outside::everything(), Access::update}});
  EXPECT_TRUE(held({{other, Access::read}})) << "and any other one";
  EXPECT_FALSE(held({{range(8, 8), Access::write}}));
  EXPECT_EQ(offer({1}), std::vector<int>());
  EXPECT_EQ(offer(), (std::vector{1, 2}));
}

TEST_F(SetAsideTest, WhatDependsOnABlockedOneStays) {
  add(1, {{range(0, 8), Access::write}});
  add(2, {{range(0, 8), Access::read}, {range(8, 8), Access::write}});
  add(3, {{range(16, 8), Access::write}});
  EXPECT_EQ(offer({1}), (std::vector{3}));
  EXPECT_TRUE(held({{range(8, 8), Access::read}})) << "2 is forgotten";
  EXPECT_FALSE(held({{range(16, 8), Access::read}}));
  EXPECT_EQ(offer({2}), (std::vector{1}));
  EXPECT_TRUE(held({{range(0, 8), Access::write}})) << "2 still reads it";
  EXPECT_FALSE(held({{range(0, 8), Access::read}}));
  EXPECT_EQ(offer(), (std::vector{2}));
}

TEST_F(SetAsideTest, WaitsForNothingItDoesNotDependOn) {
  add(1, {{range(0, 8), Access::write}});
  add(2, {{range(8, 8), Access::write}});
  add(3, {{range(8, 8), Access::read}});
  EXPECT_EQ(offer({1}), (std::vector{2, 3}));
}

TEST_F(SetAsideTest, WhatIsHeldIsNotOffered) {
  add(1, {{range(0, 8), Access::write}});
  add(2, {{range(0, 8), Access::read}});
  SetAside::Number held_one = 0;
  set_aside_.offer([&](SetAside::Entry& entry) {
    entry.held = true;
    held_one = entry.number;
    return false;
  });
  EXPECT_EQ(offer(), (std::vector<int>{})) << "2 depends on it";
  set_aside_.release(held_one);
  EXPECT_EQ(offer({1}), (std::vector<int>{}));
  set_aside_.erase(held_one);
  EXPECT_EQ(offer(), (std::vector{2}));
}

TEST(SetAsideTickets, TheRankSeesWhatHasNotBegun) {
  const auto seen = std::make_unique<wire::SetAsideTickets>();
  SetAside set_aside(seen.get());
  const std::byte record{};
  set_aside.add(7, {&record, 1}, {}, false);
  set_aside.add(8, {&record, 1}, {}, false);
  EXPECT_TRUE(seen->contains(7) && seen->contains(8));
  set_aside.offer([&](SetAside::Entry& entry) {
    set_aside.begin(entry);
    EXPECT_FALSE(seen->contains(entry.number == 1 ? 7 : 8)) << "it may have begun";
    return entry.number == 2;
  });
  EXPECT_FALSE(seen->contains(7) || seen->contains(8));
  set_aside.add(9, {&record, 1}, {}, false);
  EXPECT_TRUE(seen->contains(9));
  set_aside.clear();
  EXPECT_FALSE(seen->contains(9));
}

TEST_F(SetAsideTest, CollectivesKeepTheirOrder) {
  add(1, {{range(0, 8), Access::update}}, true);
  EXPECT_TRUE(held({{range(64, 8), Access::update}}, true));
  EXPECT_FALSE(held({{range(64, 8), Access::update}}, false));
  add(2, {{range(64, 8), Access::update}}, true);
  EXPECT_EQ(offer({1}), (std::vector<int>{}));
  EXPECT_EQ(offer(), (std::vector{1, 2}));
}

/// As many as there is room for: to remember all of them would take minutes in the reactor.
TEST_F(SetAsideTest, AChainRemembersItsLastLinkAlone) {
  constexpr int kLinks = 1000;
  for (int i = 0; i < kLinks / 2; ++i) add(i, {{range(0, 8), Access::update}});
  for (int i = 0; i < kLinks / 2; ++i) {
    const auto at = static_cast<std::uint64_t>(8 * (i + 1));
    add(i, {{range(at, 8), Access::update}}, true);
  }
  EXPECT_EQ(set_aside_.remembered(), static_cast<std::size_t>(kLinks - 2));
  add(0, {{range(0, 4000), Access::read}}, true);
  EXPECT_EQ(set_aside_.remembered(), static_cast<std::size_t>(kLinks))
      << "it conflicts with all of them: the last of each chain";
}

// Whatever is blocked when: two that conflict are queued in program order.
TEST_F(SetAsideTest, ConflictsAreQueuedInProgramOrder) {
  std::mt19937 random(8);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint64_t>(random() % n); };
  std::vector<Uses> program;
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    Uses uses;
    for (int k = 0; k < 2; ++k) {
      const auto access = below(2) == 0 ? Access::read : Access::write;
      uses.emplace_back(range(below(60), 1 + below(6)), access);
    }
    program.push_back(uses);
    std::vector<int> blocked;
    for (int b = 0; b <= i; ++b) {
      if (below(3) != 0) blocked.push_back(b);
    }
    for (const int number : offer(blocked)) order.push_back(number);
    if (held(uses) || below(3) == 0) {
      add(i, uses);
    } else {
      order.push_back(i);
    }
  }
  for (const int number : offer()) order.push_back(number);
  ASSERT_EQ(order.size(), program.size());
  int overtakings = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t k = i + 1; k < order.size(); ++k) {
      if (order[k] > order[i]) continue;  // the later one of the program comes later
      for (const auto& [a, a_access] : program[static_cast<std::size_t>(order[i])]) {
        for (const auto& [b, b_access] : program[static_cast<std::size_t>(order[k])]) {
          if (a_access == Access::read && b_access == Access::read) continue;
          const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
          EXPECT_FALSE(overlap) << order[i] << " before " << order[k];
        }
      }
      ++overtakings;
    }
  }
  EXPECT_GT(overtakings, 100) << "nothing was queued out of order";
}

}  // namespace
}  // namespace troupe::host
