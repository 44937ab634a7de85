// Whether all ranks have loaded the same versions: what rank 0 makes of what they tell.
#include "rank/protocol/library_comparison.hpp"

#include <gtest/gtest.h>

namespace troupe::rank_process {
namespace {

using Lines = std::vector<std::string>;

class LibraryComparisonTest : public ::testing::Test {
 protected:
  void opened(int rank, const std::string& version, const std::string& file = "/lib/libcublas.so") {
    comparison_.receive(rank, {"blas", {{"cuBLAS", version, file}}}, now_);
  }
  Lines later() {
    now_ += LibraryComparison::kPatience;
    return comparison_.tick(now_);
  }

  TimePoint now_{};
  LibraryComparison comparison_{5};
};

TEST_F(LibraryComparisonTest, SaysNothingOfRanksThatAreAlike) {
  for (const int rank : {3, 0, 4, 1, 2}) opened(rank, "13.1.0", "/on/rank/" + std::to_string(rank));
  EXPECT_EQ(later(), Lines{});
  EXPECT_EQ(comparison_.conclude(), Lines{});
}

TEST_F(LibraryComparisonTest, TellsADifferenceInOneLineWhenAllAreHeard) {
  for (const int rank : {4, 0, 1, 2}) opened(rank, "13.1.0");
  EXPECT_EQ(comparison_.tick(now_), Lines{});
  opened(3, "13.2.0", "/opt/libcublas.so");
  const Lines told{
      "cuBLAS is not the same version everywhere: 13.1.0 (/lib/libcublas.so) on ranks 0-2, 4; "
      "13.2.0 (/opt/libcublas.so) on rank 3. Ranks may compute different results from the same "
      "input"};
  EXPECT_EQ(comparison_.tick(now_), told);
  EXPECT_EQ(later(), Lines{}) << "said once";
  EXPECT_EQ(comparison_.conclude(), Lines{});
}

TEST_F(LibraryComparisonTest, WaitsAWhileForRanksThatOpenLater) {
  opened(0, "13.1.0");
  opened(3, "13.2.0");
  EXPECT_EQ(comparison_.tick(now_), Lines{}) << "others may be about to say the same";
  opened(2, "13.2.0");
  auto told = later();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("13.2.0 (/lib/libcublas.so) on ranks 2, 3."), std::string::npos)
      << told[0];
  opened(4, "13.1.0");
  EXPECT_EQ(later(), Lines{}) << "both versions have been told";
  opened(1, "12.9.1");
  told = later();
  ASSERT_EQ(told.size(), 1u) << "a third one has not";
  EXPECT_NE(told[0].find("12.9.1 (/lib/libcublas.so) on rank 1;"), std::string::npos) << told[0];
}

TEST_F(LibraryComparisonTest, TellsAtTheEndWhatIsLeft) {
  opened(0, "13.1.0");
  opened(3, "13.2.0");
  EXPECT_EQ(comparison_.conclude().size(), 1u);
  EXPECT_EQ(comparison_.conclude(), Lines{});
}

TEST_F(LibraryComparisonTest, ASuccessorOnTheSameRankMayDifferToo) {
  opened(1, "13.1.0");
  opened(1, "13.1.1");
  const auto told = later();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("13.1.0 (/lib/libcublas.so) on rank 1; 13.1.1"), std::string::npos)
      << told[0];
}

TEST_F(LibraryComparisonTest, TheSameLibraryIsComparedWhateverItIsUsedFor) {
  comparison_.receive(0, {"blas", {{"OpenBLAS", "0.3.21", ""}}}, now_);
  comparison_.receive(1, {"dnn", {{"oneDNN", "2.6", ""}, {"OpenBLAS", "0.3.26", ""}}}, now_);
  const auto told = later();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].find("OpenBLAS is not the same version everywhere: 0.3.21 on rank 0; "), 0u)
      << told[0];
}

TEST_F(LibraryComparisonTest, IsBounded) {
  for (int i = 0; i < 20; ++i) {
    opened(-1, "0"), opened(5, "0");
    opened(i % 5, "13.1." + std::to_string(i));
    EXPECT_EQ(later().size(), i >= 1 && i <= LibraryComparison::kMostLines ? 1u : 0u) << i;
  }
}

}  // namespace
}  // namespace troupe::rank_process
