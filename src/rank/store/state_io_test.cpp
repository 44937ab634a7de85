#include "rank/store/state_io.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::rank_process {
namespace {

using Outcome = DirectTrial::Outcome;

const std::vector<DirectTrial> kAllDirect{{Outcome::direct, {}}, {Outcome::direct, {}}};
const std::vector<DirectTrial> kOneNot{{Outcome::direct, {}},
                                       {Outcome::not_direct, "cuFile: not installed"}};
const std::vector<DirectTrial> kOneUnknown{{Outcome::unknown, "lost"}, {Outcome::direct, {}}};

TEST(StateIo, IsDirectWhereAllRanksAre) {
  for (const auto wanted : {StateIo::automatic, StateIo::direct}) {
    const auto choice = choose_io(wanted, false, kAllDirect);
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice->io, StateIo::direct);
    EXPECT_EQ(choice->reason, "");
  }
}

TEST(StateIo, AutomaticIsPinnedWhereOneIsNot) {
  const auto choice = choose_io(StateIo::automatic, false, kOneNot);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->io, StateIo::pinned);
  EXPECT_EQ(choice->reason, "cuFile: not installed");
}

TEST(StateIo, DirectIsRefusedWhereOneIsNot) {
  const auto choice = choose_io(StateIo::direct, false, kOneNot);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, Errc::invalid);
  EXPECT_EQ(choice.error().message,
            "checkpoint-io = direct: rank 1 cannot write to checkpoint-dir directly: cuFile: not "
            "installed (auto or pinned can)");
}

TEST(StateIo, AFaultInATrialProvesNothing) {
  EXPECT_EQ(choose_io(StateIo::automatic, false, kOneUnknown)->io, StateIo::pinned);
  EXPECT_EQ(choose_io(StateIo::direct, false, kOneUnknown)->io, StateIo::direct);
}

TEST(StateIo, AutomaticIsPinnedWhereAPartnerNeedsThatAnyway) {
  EXPECT_EQ(choose_io(StateIo::automatic, true, {})->io, StateIo::pinned);
  EXPECT_EQ(choose_io(StateIo::direct, true, kAllDirect)->io, StateIo::direct);
}

TEST(StateIo, PinnedIsPinned) {
  const auto choice = choose_io(StateIo::pinned, false, {});
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->io, StateIo::pinned);
  EXPECT_EQ(choice->reason, "");
}

}  // namespace
}  // namespace troupe::rank_process
