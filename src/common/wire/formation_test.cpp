#include "common/wire/formation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::wire {
namespace {

std::vector<std::byte> text_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Formation, ContributionsComeBackAsTheyWere) {
  const Contribution contribution{{kWorld, GroupState::held, text_bytes("of the world")},
                                  {5, GroupState::dropped, {}}};
  EXPECT_EQ(decode_contribution(encode_contribution(contribution)).take(), contribution);
  EXPECT_EQ(share_of(contribution, 5), &contribution[1]);
  EXPECT_EQ(share_of(contribution, 6), nullptr);
}

TEST(Formation, WhatIsCutOrImpossibleIsRefused) {
  const auto share = encode_contribution(Contribution{{1, GroupState::held, text_bytes("some")}});
  for (std::size_t size = 0; size < share.size(); ++size)
    EXPECT_EQ(decode_contribution(std::span(share).first(size)).code(), Errc::internal) << size;
  EXPECT_FALSE((FormingGroup{kWorld, {}, {0}}.sound()));
  EXPECT_EQ(decode_contribution(encode_contribution(Contribution{{1, GroupState{4}, {}}})).code(),
            Errc::internal);
}

/// What ranks 0, 1 and 2 say of their groups.
std::vector<Contribution> said(std::initializer_list<std::vector<Share>> ranks) {
  return {ranks.begin(), ranks.end()};
}

TEST(Formation, AGroupIsFormedIfAllKnowItAndSomebodyWantsIt) {
  const std::vector<FormingGroup> mine{{4, GroupState::held, {1, 2}},
                                       {2, GroupState::dropped, {0, 1}},
                                       {9, GroupState::forming, {1}}};
  const auto numbers = [&](const std::vector<Contribution>& contributions) {
    std::vector<std::uint32_t> list;
    for (const auto& group : groups_to_form(mine, contributions)) list.push_back(group.number);
    return list;
  };
  const Share held2{2, GroupState::held, {}}, dropped2{2, GroupState::dropped, {}},
      held4{4, GroupState::held, {}}, forming4{4, GroupState::forming, {}},
      forming9{9, GroupState::forming, {}};
  using Numbers = std::vector<std::uint32_t>;
  EXPECT_EQ(numbers(said({{held2}, {dropped2, held4, forming9}, {forming4}})), (Numbers{2, 4, 9}));
  // Nobody wants 2 any more; rank 2 has yet to hear of 4.
  EXPECT_EQ(numbers(said({{dropped2}, {dropped2, held4, forming9}, {}})), Numbers{9});
  // Another group's number on a rank that is not in it says nothing.
  EXPECT_EQ(numbers(said({{dropped2}, {dropped2, held4}, {forming4, held2}})), Numbers{4});
  // Rank 0 comes back: 2 is gone if rank 1 has let it go, and there if both come back.
  const Share returning2{2, GroupState::returning, {}};
  EXPECT_EQ(numbers(said({{returning2}, {dropped2}, {}})), Numbers{});
  EXPECT_EQ(numbers(said({{returning2}, {held2}, {}})), Numbers{2});
  EXPECT_EQ(numbers(said({{returning2}, {returning2}, {}})), Numbers{2});
  // A contribution is missing.
  EXPECT_EQ(numbers(said({{held2}, {dropped2, held4}})), Numbers{2});
}

}  // namespace
}  // namespace troupe::wire
