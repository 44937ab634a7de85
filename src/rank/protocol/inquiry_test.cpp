// Who waits for whom: what rank 0 makes of the ranks' answers.
#include "rank/protocol/inquiry.hpp"

#include <gtest/gtest.h>

namespace troupe::rank_process {
namespace {

class InquiryTest : public ::testing::Test {
 protected:
  void stalled(int rank) { inquiry_.receive(from_rank::Stalled{rank}, now_); }
  void standing(int rank, const std::string& text, std::int64_t step = -1, bool ended = false) {
    inquiry_.receive(from_rank::Standing{.rank = rank,
                                         .inquiry = sent_.empty() ? 0 : sent_.back(),
                                         .text = text,
                                         .step = step,
                                         .waited_us = 61'500'000,
                                         .awaits = ended ? Awaits::end_of_run : Awaits::other},
                     now_);
  }

  TimePoint now_{};
  std::vector<std::uint32_t> sent_;  ///< the numbers of the inquiries
  Inquiry inquiry_{4, [this](const SupervisorMessage& message) {
                     sent_.push_back(std::get<from_supervisor::Inquire>(message).inquiry);
                   }};
};

TEST_F(InquiryTest, SaysWhoIsWhere) {
  EXPECT_FALSE(inquiry_.tick(now_));
  stalled(2);
  stalled(3);
  ASSERT_EQ(sent_.size(), 1u) << "one inquiry at a time";
  for (const int rank : {0, 2, 3}) standing(rank, "waiting in barrier");
  EXPECT_FALSE(inquiry_.tick(now_)) << "not all have answered";
  standing(1, "at work in step 7 of a run", 7);
  const auto finding = inquiry_.tick(now_);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->text,
            "no progress for 61 s: rank 1: at work in step 7 of a run; ranks 0, 2, 3: waiting in "
            "barrier");
  EXPECT_FALSE(finding->error);
  EXPECT_FALSE(inquiry_.tick(now_)) << "said once";
  stalled(0);
  EXPECT_EQ(sent_.size(), 2u) << "and asked again if it lasts";
}

TEST_F(InquiryTest, NamesWhoDoesNotAnswer) {
  stalled(0);
  for (const int rank : {0, 1, 3}) standing(rank, "waiting in barrier");
  now_ += Inquiry::kPatience;
  const auto finding = inquiry_.tick(now_);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->text.ends_with("; rank 2: no answer")) << finding->text;
}

TEST_F(InquiryTest, AnswersToAnOlderInquiryDoNotCount) {
  stalled(0);
  now_ += Inquiry::kPatience;
  ASSERT_TRUE(inquiry_.tick(now_));
  stalled(0);
  inquiry_.receive(from_rank::Standing{.rank = 1, .inquiry = 1, .text = "late"}, now_);
  now_ += Inquiry::kPatience;
  const auto finding = inquiry_.tick(now_);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->text.find("late"), std::string::npos);
}

TEST_F(InquiryTest, RanksThatDisagreeOnTheEndOfARunCanNeverGoOn) {
  stalled(0);
  standing(0, "waiting for the end", 9, true);
  standing(1, "at work", 9);
  standing(2, "at work", 4);
  standing(3, "waiting", 12);
  const auto finding = inquiry_.tick(now_);
  ASSERT_TRUE(finding && finding->error);
  EXPECT_EQ(finding->error->code, Errc::invalid);
  EXPECT_NE(finding->error->message.find("rank 0 has ended it with step 9, rank 3 is at step 12"),
            std::string::npos)
      << finding->error->message;
  stalled(0);
  for (const int rank : {0, 1, 2, 3}) standing(rank, "waiting", 9, rank < 2);
  EXPECT_FALSE(inquiry_.tick(now_)->error) << "ranks that come later are no disagreement";
}

TEST_F(InquiryTest, RanksThatWaitInDifferentHostCollectivesCanNeverGoOn) {
  const auto finding = [&](const std::vector<std::pair<std::string, std::int64_t>>& waits,
                           Awaits last = Awaits::host_call) {
    stalled(0);
    for (int rank = 0; rank < 4; ++rank) {
      const auto& [text, seconds] = waits[static_cast<std::size_t>(rank)];
      inquiry_.receive(from_rank::Standing{.rank = rank,
                                           .inquiry = sent_.back(),
                                           .text = text,
                                           .waited_us = seconds * 1'000'000,
                                           .awaits = rank == 3 ? last : Awaits::host_call},
                       now_);
    }
    return inquiry_.tick(now_)->deadlock.has_value();
  };
  EXPECT_TRUE(finding({{"split", 60}, {"split", 60}, {"split of group 1", 60}, {"split", 40}}));
  EXPECT_FALSE(finding({{"split", 60}, {"split", 60}, {"split", 60}, {"split", 60}}))
      << "MPI is slow";
  EXPECT_FALSE(finding({{"split", 60}, {"split", 60}, {"barrier", 1}, {"split", 60}}))
      << "that barrier may be about to end";
  EXPECT_FALSE(
      finding({{"split", 60}, {"split", 60}, {"split", 60}, {"at work", 60}}, Awaits::other));
  EXPECT_TRUE(finding({{"barrier", 60}, {"barrier", 60}, {"barrier", 60}, {"the end", 50}},
                      Awaits::end_of_program))
      << "a rank whose program has ended comes to no barrier";
  EXPECT_FALSE(finding({{"barrier", 60}, {"barrier", 60}, {"barrier", 60}, {"the end", 1}},
                       Awaits::end_of_program))
      << "it may have ended with an error, which ends the job";
}

}  // namespace
}  // namespace troupe::rank_process
