#include "rank/device/commands/error_ledger.hpp"

#include <gtest/gtest.h>

#include <troupe/future.hpp>

namespace troupe::rank_process {
namespace {

const Error kWrongArgument{Errc::invalid, 0, "wrong"};
const Error kStale{Errc::stale, 0, "gone"};

/// What a port answers a wrong call with.
Future<void> refused(ErrorLedger& ledger, const Error& error = kWrongArgument,
                     ProgramPlace place = {}) {
  return Future<void>(Result<void>(ledger.enter(error, place)));
}

TEST(ErrorLedger, AnErrorWhoseFutureIsDroppedStaysUnread) {
  ErrorLedger ledger;
  EXPECT_EQ(ledger.unread().count, 0u);
  (void)refused(ledger);
  (void)refused(ledger, kStale);
  const auto kept = refused(ledger);
  EXPECT_TRUE(kept.ready());
  EXPECT_TRUE(kept.wait_for({}));
  kept.wait_ready();
  EXPECT_EQ(ledger.unread().count, 3u) << "to wait is not to read";
  EXPECT_EQ(ledger.unread().first.message, "wrong");
}

TEST(ErrorLedger, EveryWayToTheOutcomeReadsIt) {
  ErrorLedger ledger;
  (void)refused(ledger).wait();
  EXPECT_THROW(refused(ledger).get(), Exception);
  refused(ledger).on_ready([](const Result<void>&) {});
  const auto original = refused(ledger);
  const auto copy = original;
  (void)copy.wait();
  const auto body = [&]() -> Future<int> {
    try {
      co_await refused(ledger);
    } catch (const Exception&) {
      co_return 1;
    }
    co_return 2;
  };
  EXPECT_EQ(body().get(), 1);
  EXPECT_EQ(ledger.unread().count, 0u);
}

TEST(ErrorLedger, WhatIsPassedOnIsReadAtTheEndOfTheWay) {
  ErrorLedger ledger;
  const auto next = refused(ledger).then([] { return 1; }).then([](int) {});
  const auto all = when_all({next, refused(ledger), refused(ledger)});
  const auto body = [&]() -> Future<void> { co_await all; };
  const auto left = body();
  EXPECT_EQ(ledger.unread().count, 1u) << "the first speaks for the others";
  EXPECT_EQ(left.wait().code(), Errc::invalid);
  EXPECT_EQ(ledger.unread().count, 0u);
}

TEST(ErrorLedger, AnErrorThatComesLaterIsReadByWhoWaits) {
  ErrorLedger ledger;
  Promise<void> promise;
  Result<void> seen;
  promise.future().on_ready([&](const Result<void>& outcome) { seen = outcome; });
  promise.resolve(ledger.enter(kWrongArgument, {}));
  EXPECT_EQ(seen.code(), Errc::invalid);
  EXPECT_EQ(ledger.unread().count, 0u);
  Promise<void> dropped;
  dropped.resolve(ledger.enter(kWrongArgument, {}));
  EXPECT_EQ(ledger.unread().count, 1u);
}

TEST(ErrorLedger, AllCanBeMarkedAsRead) {
  ErrorLedger ledger;
  (void)refused(ledger, kStale);
  const auto kept = refused(ledger);
  ledger.mark_all_read();
  EXPECT_EQ(ledger.unread().count, 0u);
  (void)refused(ledger);
  EXPECT_EQ(ledger.unread().count, 1u);
}

TEST(ErrorLedger, WhatIsDoneAgainIsForgotten) {
  ErrorLedger ledger;
  (void)refused(ledger, kWrongArgument, {5, 0});
  (void)refused(ledger, kWrongArgument, {9, 0});
  (void)refused(ledger, kStale, {4, 0});
  const auto kept = refused(ledger, kWrongArgument, {7, 1});
  ledger.forget_since({7, 0});
  EXPECT_EQ(ledger.unread().count, 1u) << "the one before the place";
  for (int i = 0; i < 200; ++i) (void)refused(ledger, kWrongArgument, {10, 0});
  ledger.forget_since({7, 0});
  EXPECT_EQ(ledger.unread().count, 1u);
}

/// take_error() does not tell of an answer, so it does not count as told by it.
TEST(ErrorLedger, AnAnswerIsReadByItsAskerAlone) {
  using Kind = ErrorLedger::Kind;
  ErrorLedger ledger;
  const Future<void> kept(Result<void>(ledger.enter(kWrongArgument, {5, 0}, Kind::answer)));
  (void)Future<void>(Result<void>(ledger.enter(kWrongArgument, {6, 0}, Kind::answer)));
  ledger.mark_all_read();
  EXPECT_EQ(ledger.unread().count, 2u);
  (void)kept.wait();
  EXPECT_EQ(ledger.unread().count, 1u);
  for (int i = 0; i < 200; ++i) (void)ledger.enter(kWrongArgument, {9, 0}, Kind::answer);
  ledger.mark_all_read();
  EXPECT_EQ(ledger.unread().count, 201u);
  ledger.forget_since({7, 0});
  EXPECT_EQ(ledger.unread().count, 1u);
}

TEST(ErrorLedger, LossesAreForgivenAndNothingElse) {
  ErrorLedger ledger;
  for (int i = 0; i < 1000; ++i) {
    (void)refused(ledger, kStale);
    if (i % 10 == 0) (void)refused(ledger);
  }
  EXPECT_EQ(ledger.unread().count, 1100u);
  ledger.forgive_losses();
  EXPECT_EQ(ledger.unread().count, 100u);
  EXPECT_EQ(ledger.unread().first.code, Errc::invalid);
}

TEST(ErrorLedger, ManyErrorsAreCountedWhoeverKeepsThem) {
  ErrorLedger ledger;
  std::vector<Future<void>> kept;
  for (int i = 0; i < 5000; ++i) {
    (void)refused(ledger);
    kept.push_back(refused(ledger));
    (void)refused(ledger).wait();
  }
  EXPECT_EQ(ledger.unread().count, 10'000u);
  for (const auto& one : kept) (void)one.wait();
  EXPECT_EQ(ledger.unread().count, 5'000u);
}

}  // namespace
}  // namespace troupe::rank_process
