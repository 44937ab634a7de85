#include "device_host/engine/product_checks.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::host {
namespace {

/// The products among these that are looked at.
std::vector<bool> looks_at(CheckBudget& budget, const std::vector<CheckCost>& products) {
  std::vector<bool> looked;
  for (const auto& cost : products) {
    looked.push_back(budget.allows(cost));
    budget.count(cost, looked.back());
  }
  return looked;
}

double time_of(const std::vector<CheckCost>& products, const std::vector<bool>& looked) {
  double all = 0, checks = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    all += products[i].product;
    if (looked[i]) checks += products[i].check;
  }
  return checks / all;
}

TEST(CheckBudget, ChecksTakeItsShareOfTheTimeOfProducts) {
  // Cheap to check, as expensive as themselves, and small.
  std::vector<CheckCost> products;
  for (int i = 0; i < 10'000; ++i) {
    products.push_back({1e6, 1e4});
    products.push_back({1e5, 1e5});
    products.push_back({2e3, 5e4});
  }
  CheckBudget budget;
  const auto looked = looks_at(budget, products);
  EXPECT_LE(time_of(products, looked), CheckBudget::kShare);
  EXPECT_GE(time_of(products, looked), 0.9 * CheckBudget::kShare);
  CheckBudget again;
  EXPECT_EQ(looks_at(again, products), looked);
}

TEST(CheckBudget, WhatIsCheapToCheckIsAlwaysChecked) {
  CheckBudget budget;
  for (const bool looked : looks_at(budget, std::vector<CheckCost>(100, {1e6, 4e4})))
    EXPECT_TRUE(looked);
}

TEST(CheckBudget, SavesUpForOthers) {
  CheckBudget budget;
  const auto looked = looks_at(budget, std::vector<CheckCost>(1000, {1e4, 5e4}));
  EXPECT_EQ(std::count(looked.begin(), looked.end(), true), 10);
  EXPECT_TRUE(looked[99]);
  EXPECT_FALSE(looked[0]);
}

/// Otherwise a day of large products would have all small ones checked for an hour.
TEST(CheckBudget, KeepsSomeCreditOnly) {
  CheckBudget budget;
  looks_at(budget, std::vector<CheckCost>(1'000'000, {1e7, 1e4}));
  const auto looked = looks_at(budget, std::vector<CheckCost>(100'000, {1e5, 1e5}));
  const auto number = std::count(looked.begin(), looked.end(), true);
  EXPECT_LE(number, 1.1 * (CheckBudget::kMost / 1e5 + 100'000 * CheckBudget::kShare));
  // One that costs more than that is checked nevertheless.
  CheckBudget other;
  const auto large = looks_at(other, std::vector<CheckCost>(30, {1e9, 1e9}));
  EXPECT_GE(std::count(large.begin(), large.end(), true), 1);
}

TEST(ProductChecks, AsManyAreWrongAsAreOrdered) {
  ProductChecks checks(true);
  EXPECT_FALSE(checks.looks_at_next());
  EXPECT_FALSE(checks.take_wrong());
  checks.order_wrong(2);
  EXPECT_TRUE(checks.looks_at_next());
  EXPECT_TRUE(checks.take_wrong());
  EXPECT_TRUE(checks.take_wrong());
  EXPECT_FALSE(checks.looks_at_next());
  EXPECT_FALSE(checks.take_wrong());
}

/// A product and the look at it, as ProductLooks has them.
struct Played {
  std::vector<std::string> steps{};
  int wrong = 0;             ///< so many results are
  Result<void> may_begin{};  ///< what before() answers
  Result<void> queued{};     ///< what the second product answers at first

  Result<void> before() {
    steps.emplace_back("before");
    return may_begin;
  }
  Result<void> product() {
    steps.emplace_back("product");
    // A queue that is full is full for a while.
    return steps.size() > 3 && steps[steps.size() - 2] != "product" ? std::exchange(queued, {})
                                                                    : Result<void>();
  }
  Result<WrongProduct> after(bool spoilt) {
    steps.emplace_back(spoilt ? "after, spoilt" : "after");
    return wrong-- > 0 ? WrongProduct("it is wrong") : WrongProduct();
  }
  Result<void> restore() {
    steps.emplace_back("restore");
    return {};
  }
  Result<void> run(ProductChecks& checks) {
    ProductLooks looks(checks);
    return looks.carry_out("a.product", {1, 1}, *this, [this] { return product(); });
  }
};
using Steps = std::vector<std::string>;

TEST(ProductLooks, ARightProductIsDoneOnce) {
  ProductChecks checks(true);
  Played played;
  EXPECT_TRUE(played.run(checks).ok());
  EXPECT_EQ(played.steps, (Steps{"before", "product", "after"}));
}

TEST(ProductLooks, AWrongOneIsDoneAgainOnce) {
  ProductChecks checks(true);
  checks.order_wrong(1);
  Played once{.wrong = 1, .queued = Error{Errc::would_block, 0, "full"}};
  EXPECT_TRUE(once.run(checks).ok());
  EXPECT_EQ(once.steps, (Steps{"before", "product", "after, spoilt", "restore", "product",
                               "product", "after"}));
  Played twice{.wrong = 2};
  const auto outcome = twice.run(checks);
  EXPECT_EQ(outcome.code(), Errc::corrupt);
  EXPECT_EQ(outcome.error().message, "a.product: wrong twice: it is wrong");
}

TEST(ProductLooks, WithoutMemoryForTheLookTheProductIsDone) {
  ProductChecks checks(true);
  Played played{.wrong = 1, .may_begin = Error{Errc::out_of_memory, 0, "full"}};
  EXPECT_TRUE(played.run(checks).ok());
  EXPECT_EQ(played.steps, (Steps{"before", "product"}));
}

TEST(ProductLooks, OnlyWhatCanBeLookedAtIsDue) {
  ProductChecks on(true), off(false);
  const AddressMap addresses;
  const Call call(Queue(Lane::memory), addresses, {});
  const CheckCost cheap{100, 1}, dear{1, 100};
  EXPECT_TRUE(ProductLooks(on).due(call, false, cheap));
  EXPECT_FALSE(ProductLooks(on).due(call, false, dear));
  EXPECT_FALSE(ProductLooks(on).due(call, false, std::nullopt));
  EXPECT_FALSE(ProductLooks(on).due(call, true, cheap)) << "a graph is recorded";
  EXPECT_FALSE(ProductLooks(on).due(call.for_preparation(), false, cheap));
  EXPECT_FALSE(ProductLooks(off).due(call, false, cheap));
  on.order_wrong(1);
  EXPECT_TRUE(ProductLooks(on).due(call, false, dear));
}

}  // namespace
}  // namespace troupe::host
