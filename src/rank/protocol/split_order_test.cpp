// Splits that ranks agree on, and those that can never be.
#include "rank/protocol/split_order.hpp"

#include <gtest/gtest.h>

namespace troupe::rank_process {
namespace {

const HostCall kWorld{0, 1, {0, 1, 2, 3}, "split"}, kWorldAgain{0, 2, {0, 1, 2, 3}, "split again"},
    kLeft{1, 1, {0, 1}, "split of group 1"}, kRight{1, 1, {2, 3}, "split of group 1, the other"},
    kMiddle{2, 1, {1, 2}, "split of group 2"}, kOuter{3, 1, {3, 0}, "split of group 3"};

class SplitOrderTest : public ::testing::Test {
 protected:
  struct Sent {
    int rank;
    SupervisorMessage message;
  };
  std::optional<SplitOrder::Finding> splits(int rank, const HostCall& call) {
    return order_.receive(from_rank::Splitting{rank, call}, now_);
  }
  std::optional<SplitOrder::Finding> gives_up(int rank) {
    return order_.receive(from_rank::SplitGivenUp{rank}, now_);
  }
  std::optional<SplitOrder::Finding> is_at_work(int rank) {
    return order_.receive(from_rank::AtCall{.rank = rank}, now_);
  }
  std::optional<SplitOrder::Finding> is_in(int rank, const HostCall& call) {
    return order_.receive(
        from_rank::AtCall{.rank = rank, .awaits = Awaits::host_call, .call = call}, now_);
  }
  std::optional<SplitOrder::Finding> has_ended(int rank) {
    return order_.receive(
        from_rank::AtCall{
            .rank = rank, .awaits = Awaits::end_of_program, .place = "waiting in the end"},
        now_);
  }
  /// The ranks that were told of a call, and forgets them.
  std::vector<int> told(Errc code = Errc::ok) {
    std::vector<int> ranks;
    for (const auto& [rank, message] : sent_) {
      const auto* const agreed = std::get_if<from_supervisor::SplitAgreed>(&message);
      if (agreed != nullptr && agreed->code == code) ranks.push_back(rank);
    }
    sent_.clear();
    return ranks;
  }
  std::vector<int> asked() {
    std::vector<int> ranks;
    for (const auto& [rank, message] : sent_) {
      if (std::holds_alternative<from_supervisor::AskCall>(message)) ranks.push_back(rank);
    }
    sent_.clear();
    return ranks;
  }

  TimePoint now_{};
  std::vector<Sent> sent_;
  SplitOrder order_{[this](int rank, const SupervisorMessage& message) {
    sent_.push_back({rank, message});
  }};
};

TEST_F(SplitOrderTest, GoesOnWhenAllHaveCome) {
  for (const int rank : {2, 0, 3}) EXPECT_FALSE(splits(rank, kWorld));
  EXPECT_TRUE(told().empty());
  EXPECT_FALSE(splits(1, kWorld));
  EXPECT_EQ(told(), (std::vector{0, 1, 2, 3}));
  for (const int rank : {0, 1, 2, 3}) EXPECT_FALSE(splits(rank, kWorldAgain));
  EXPECT_EQ(told(), (std::vector{0, 1, 2, 3}));
}

TEST_F(SplitOrderTest, GroupsOfTheSameNumberAreTold) {
  EXPECT_FALSE(splits(0, kLeft));
  EXPECT_FALSE(splits(2, kRight));
  EXPECT_FALSE(splits(1, kLeft));
  EXPECT_EQ(told(), (std::vector{0, 1}));
  EXPECT_FALSE(splits(3, kRight));
  EXPECT_EQ(told(), (std::vector{2, 3}));
}

TEST_F(SplitOrderTest, WhoIsAwaitedMaySplitAnotherFirst) {
  EXPECT_FALSE(splits(2, kWorld));
  EXPECT_FALSE(splits(3, kWorld));
  EXPECT_FALSE(splits(0, kLeft)) << "neither waits for ranks 2 and 3";
  EXPECT_FALSE(splits(1, kLeft));
  EXPECT_EQ(told(), (std::vector{0, 1}));
  EXPECT_FALSE(splits(0, kWorld));
  EXPECT_FALSE(splits(1, kWorld));
  EXPECT_EQ(told(), (std::vector{0, 1, 2, 3}));
}

TEST_F(SplitOrderTest, FindsTwoThatWaitForOneAnother) {
  EXPECT_FALSE(splits(0, kLeft));
  const auto found = splits(1, kWorld);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error.code, Errc::invalid);
  EXPECT_FALSE(found->in_mpi);
  EXPECT_EQ(found->error.message,
            "the ranks disagree on their host collectives, and wait for one another: rank 0: split "
            "of group 1; rank 1: split");
}

TEST_F(SplitOrderTest, FindsACircleOfSeveral) {
  EXPECT_FALSE(splits(0, kLeft));
  EXPECT_FALSE(splits(1, kMiddle));
  EXPECT_FALSE(splits(2, kRight));
  const auto found = splits(3, kOuter);
  ASSERT_TRUE(found);
  for (const int rank : {0, 1, 2, 3})
    EXPECT_NE(found->error.message.find("rank " + std::to_string(rank)), std::string::npos);
}

TEST_F(SplitOrderTest, FindsOneMoreSplitThanOthersMake) {
  EXPECT_FALSE(splits(0, kWorldAgain));
  EXPECT_TRUE(splits(1, kWorld));
}

TEST_F(SplitOrderTest, CallsOfOneTurnMustBeOfOneKind) {
  const HostCall barrier{0, 1, kWorld.ranks, "barrier (host collective 3)", "barrier"},
      other_name{0, 1, kWorld.ranks, "barrier (host collective 7)", "barrier"},
      gather{0, 1, kWorld.ranks, "gather_values (host collective 3)", "gather_values of 8 bytes"};
  for (const int rank : {0, 1, 2}) EXPECT_FALSE(splits(rank, rank == 1 ? other_name : barrier));
  const auto found = splits(3, gather);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->in_mpi);
  EXPECT_NE(found->error.message.find("rank 3: gather_values (host collective 3)"),
            std::string::npos)
      << found->error.message;
  EXPECT_TRUE(told().empty());
}

TEST_F(SplitOrderTest, AsksWhereTheMissingOnesAre) {
  EXPECT_FALSE(splits(0, kWorld));
  EXPECT_FALSE(splits(3, kWorld));
  order_.tick(now_);
  EXPECT_TRUE(asked().empty()) << "too early";
  now_ += SplitOrder::kFirstQuestion;
  order_.tick(now_);
  EXPECT_EQ(asked(), (std::vector{1, 2}));
  EXPECT_FALSE(is_at_work(1));
  const HostCall earlier{0, 0, kWorld.ranks, "barrier"}, of_group{1, 7, kLeft.ranks, "barrier"};
  EXPECT_FALSE(is_in(1, of_group)) << "it may come after this";
  EXPECT_FALSE(is_in(1, earlier));
  order_.tick(now_);
  EXPECT_TRUE(asked().empty());
  now_ += SplitOrder::kQuestionsApart;
  order_.tick(now_);
  EXPECT_EQ(asked(), (std::vector{1, 2})) << "again";
  const HostCall instead{0, 1, kWorld.ranks, "barrier"};
  const auto found = is_in(2, instead);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->in_mpi);
  EXPECT_TRUE(found->error.message.ends_with("rank 0: split; rank 2: barrier"))
      << found->error.message;
}

TEST_F(SplitOrderTest, OneThatHasEndedNeverComes) {
  EXPECT_FALSE(splits(0, kWorld));
  EXPECT_FALSE(has_ended(1)) << "it may have ended with an error, which ends the job";
  now_ += SplitOrder::kEndedPatience;
  const auto found = has_ended(1);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->in_mpi);
}

TEST_F(SplitOrderTest, AFaultMakesThemGiveUp) {
  EXPECT_FALSE(splits(0, kLeft));
  EXPECT_FALSE(gives_up(0));
  EXPECT_EQ(told(Errc::world_reformed), (std::vector{0}));
  EXPECT_FALSE(splits(1, kWorld)) << "nobody waits for it any more";
  for (const int rank : {0, 2, 3}) EXPECT_FALSE(splits(rank, kWorld));
  EXPECT_EQ(told(), (std::vector{0, 1, 2, 3}));
  EXPECT_FALSE(gives_up(0)) << "too late";
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace troupe::rank_process
