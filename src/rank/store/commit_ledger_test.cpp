#include "rank/store/commit_ledger.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/ipc/unique_fd.hpp"

namespace troupe::rank_process {
namespace {

const std::vector<SavedEntry> kEntries{{"x", DType::f64, 8, 100}, {"count", {}, 4, 1}};

std::vector<Checkpoint::Committed> places(std::uint64_t offset) {
  return {{.device = {.region = 3, .offset = offset, .bytes = 800}, .host = {}},
          {.device = {}, .host = std::vector<std::byte>(4, std::byte{7})}};
}

class Ledger : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    for (const auto& commit : CommitLedger::read(file_.get())) found.push_back(commit.step);
    return found;
  }
  void commit(std::size_t half, std::int64_t step) {
    if (!ledger_.has_constants()) ledger_.set_constants({}, {});
    ledger_.strike(half);
    ledger_.enter(half, step, 1, 4, kEntries, places(4096 * half));
  }

  UniqueFd file_{::memfd_create("ledger", MFD_CLOEXEC)};
  CommitLedger ledger_{file_.get(), 5};
};

TEST_F(Ledger, TellsWhatWasEntered) {
  commit(1, 40);
  ledger_.complete(1, 40);
  const auto commits = CommitLedger::read(file_.get());
  ASSERT_EQ(commits.size(), 1u);
  const auto& commit = commits[0];
  EXPECT_EQ(commit.incarnation, 5u);
  EXPECT_EQ(commit.step, 40);
  EXPECT_EQ(commit.part, 1);
  EXPECT_EQ(commit.parts, 4);
  ASSERT_EQ(commit.entries.size(), 2u);
  EXPECT_EQ(commit.entries[0].saved.name, "x");
  EXPECT_EQ(commit.entries[0].saved.dtype, DType::f64);
  EXPECT_EQ(commit.entries[0].saved.count, 100u);
  EXPECT_EQ(commit.entries[0].where.device.region, 3u);
  EXPECT_EQ(commit.entries[0].where.device.offset, 4096u);
  EXPECT_EQ(commit.entries[0].where.device.bytes, 800u);
  EXPECT_FALSE(commit.entries[1].saved.dtype);
  EXPECT_EQ(commit.entries[1].where.host, std::vector<std::byte>(4, std::byte{7}));
}

/// Each commit has them, and the file once.
TEST_F(Ledger, ConstantsAreWrittenOnce) {
  const std::size_t which[] = {1};
  auto its = places(0);
  ledger_.set_constants(which, its);
  its[1].host.clear();
  for (std::size_t half = 0; half < 2; ++half) {
    const auto step = static_cast<std::int64_t>(half);
    ledger_.enter(half, step, 1, 4, kEntries, its);
    ledger_.complete(half, step);
  }
  const auto commits = CommitLedger::read(file_.get());
  ASSERT_EQ(commits.size(), 2u);
  for (const auto& commit : commits)
    EXPECT_EQ(commit.entries[1].where.host, std::vector<std::byte>(4, std::byte{7}));
  const char byte = 99;
  ASSERT_EQ(::pwrite(file_.get(), &byte, 1, off_t{1} << 37), 1);
  EXPECT_TRUE(steps().empty()) << "they are damaged";
  ledger_.strike_all();
  EXPECT_FALSE(ledger_.has_constants()) << "the next run has others";
}

TEST_F(Ledger, OnlyWhatIsWholeCounts) {
  EXPECT_TRUE(steps().empty());
  commit(0, 20);
  EXPECT_TRUE(steps().empty()) << "its copies are under way";
  ledger_.complete(0, 20);
  commit(1, 40);
  EXPECT_EQ(steps(), std::vector<std::int64_t>{20});
  ledger_.complete(1, 40);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{20, 40}));
  ledger_.strike(0);
  EXPECT_EQ(steps(), std::vector<std::int64_t>{40});
  ledger_.enter(0, 60, 1, 4, kEntries, places(0));
  ledger_.complete(0, 20);  // it comes late
  EXPECT_EQ(steps(), std::vector<std::int64_t>{40});
  ledger_.strike_all();
  EXPECT_TRUE(steps().empty());
  ledger_.complete(1, 40);
  EXPECT_TRUE(steps().empty()) << "it has been struck out";
}

TEST_F(Ledger, WhatIsDamagedDoesNotCount) {
  commit(0, 20);
  ledger_.complete(0, 20);
  const char byte = 99;
  ASSERT_EQ(::pwrite(file_.get(), &byte, 1, 60), 1);
  EXPECT_TRUE(steps().empty());
  commit(0, 40);
  ledger_.complete(0, 40);
  ASSERT_EQ(::ftruncate(file_.get(), 80), 0);
  EXPECT_TRUE(steps().empty());
}

TEST_F(Ledger, WithoutAFileNothingIsWrittenDown) {
  CommitLedger none(-1, 0);
  none.enter(0, 20, 0, 1, kEntries, places(0));
  none.complete(0, 20);
  EXPECT_FALSE(none.is_kept());
  EXPECT_TRUE(CommitLedger::read(-1).empty());
}

}  // namespace
}  // namespace troupe::rank_process
