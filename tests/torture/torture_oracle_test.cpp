#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "torture_hand.hpp"

// What troupe-torture's oracle says, of programs whose results are known.

namespace troupe::torture {
namespace {

TEST(TortureOracle, TheOracleFollowsProgramOrderAndRanks) {
  ByHand hand;
  hand.add_fills_and_a_sum();
  const auto random = random_numbers();
  Oracle oracle(hand.program, random);
  const auto before = ByHand::element(oracle, 1, 1, 24);
  oracle.apply(hand.round, 0, undisturbed, kNobodyLooks);
  EXPECT_EQ(ByHand::element(oracle, 0, 0, 99), 1);
  EXPECT_EQ(ByHand::element(oracle, 1, 0, 0), 2);
  EXPECT_EQ(ByHand::element(oracle, 0, 1, 20), 3);
  EXPECT_EQ(ByHand::element(oracle, 1, 1, 23), 3);
  EXPECT_EQ(ByHand::element(oracle, 1, 1, 24), before);
}

/// Of two ranks, buffer 0 of which holds 1 and 2.
class TortureCollectives : public ::testing::Test {
 protected:
  TortureCollectives() {
    for (int rank = 0; rank < 2; ++rank) {
      auto& fill = hand_.add(rank, Kind::fill);
      fill.id = static_cast<std::uint32_t>(rank), fill.alpha = 1 + rank;
      fill.at[0] = {rank, 0, 0, 100};
    }
  }
  Operation& add(int rank, Kind kind) {
    auto& op = hand_.add(rank, kind);
    op.id = 5, op.place = rank, op.peer = 1;
    return op;
  }
  void apply() { oracle_.apply(hand_.round, 0, undisturbed, kNobodyLooks); }
  [[nodiscard]] double result(int rank, std::size_t i) const {
    return ByHand::element(oracle_, rank, 1, i);
  }

  ByHand hand_;
  const RandomTable random_ = random_numbers();
  Oracle oracle_{hand_.program, random_};
};

TEST_F(TortureCollectives, SumsOfWhatIsScaled) {
  for (int rank = 0; rank < 2; ++rank) {
    auto& op = add(rank, Kind::all_reduce);
    op.reduce = ReduceOp::premul_sum, op.alpha = 10 - rank;
    if (rank == 1) op.alpha_at = {1, 0, 7, 1};  // 2
    op.at[0] = {rank, 0, 10, 4}, op.at[1] = {rank, 1, 20, 4};
  }
  apply();
  EXPECT_EQ(result(0, 20), 14);
  EXPECT_EQ(result(1, 23), 14);
}

TEST_F(TortureCollectives, RootsGatherAndScatter) {
  for (int rank = 0; rank < 2; ++rank) {
    auto& gather = add(rank, Kind::gather_to);
    gather.at[0] = {rank, 0, 10, 3};
    if (rank == 1) gather.at[1] = {1, 1, 0, 6};
    auto& scatter = add(rank, Kind::scatter_from);
    scatter.id = 6, scatter.at[1] = {rank, 1, 50, 3};
    if (rank == 1) scatter.at[0] = {1, 1, 0, 6};
    auto& broadcast = add(rank, Kind::broadcast_to);
    broadcast.id = 7, broadcast.at[1] = {rank, 1, 60, 3};
    if (rank == 1) broadcast.at[0] = {1, 0, 0, 3};
  }
  const auto before = result(0, 0);
  apply();
  EXPECT_EQ(result(0, 0), before) << "only the root gathers";
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 5u}) EXPECT_EQ(result(1, i), i < 3 ? 1 : 2) << i;
  EXPECT_EQ(result(0, 50), 1);
  EXPECT_EQ(result(1, 52), 2);
  EXPECT_EQ(result(0, 60), 2);
  EXPECT_EQ(result(1, 62), 2);
}

TEST_F(TortureCollectives, PartsOfDifferentLengths) {
  Operation shape;
  shape.m = 1, shape.n = 2, shape.k = 4;
  ASSERT_EQ(sent(shape, 0, 0), 1);
  ASSERT_EQ(sent(shape, 0, 1), 3);
  ASSERT_EQ(sent(shape, 1, 0), 2);
  ASSERT_EQ(sent(shape, 1, 1), 4);
  for (int rank = 0; rank < 2; ++rank) {
    auto& op = add(rank, Kind::all_to_all_counts);
    op.m = 1, op.n = 2, op.k = 4;
    op.at[0] = {rank, 0, 0, rank == 0 ? 4 : 6}, op.at[1] = {rank, 1, 0, rank == 0 ? 3 : 7};
  }
  apply();
  for (const std::size_t i : {0u, 1u, 2u}) EXPECT_EQ(result(0, i), i < 1 ? 1 : 2) << i;
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 5u, 6u})
    EXPECT_EQ(result(1, i), i < 3 ? 1 : 2) << i;
}

TEST(TortureOracle, WhatFailedHasNoEffectAndMayBeStale) {
  ByHand hand;
  auto& first = hand.add(0, Kind::fill);
  first.id = 0, first.alpha = 2, first.at[0] = {0, 0, 0, 100};
  auto& second = hand.add(0, Kind::scal);
  second.id = 1, second.alpha = 3, second.at[0] = {0, 0, 0, 100};
  const auto random = random_numbers();
  Oracle oracle(hand.program, random);
  oracle.apply(
      hand.round, 0,
      [](const Operation& op) { return op.id == 1 ? Outcome::refused : Outcome::done; },
      kNobodyLooks);
  EXPECT_EQ(ByHand::element(oracle, 0, 0, 50), 2);
  EXPECT_TRUE(oracle.may_be_stale(0, 0));
  EXPECT_FALSE(oracle.may_be_stale(0, 1));
  EXPECT_FALSE(oracle.unsure(0, 0));
}

TEST(TortureOracle, WhatFailedBecauseOfItsDataIsStale) {
  ByHand hand;
  auto& failing = hand.add(0, Kind::potrf);
  failing.at[0] = {0, 1, 0, 4}, failing.m = 2, failing.n = 1, failing.fails = Errc::numeric;
  const auto random = random_numbers();
  Oracle oracle(hand.program, random);
  const auto before = oracle.contents(0, 1);
  oracle.apply(hand.round, 0, undisturbed, kNobodyLooks);
  EXPECT_TRUE(oracle.must_be_stale(0, 1));
  EXPECT_TRUE(oracle.may_be_stale(0, 1));
  EXPECT_FALSE(oracle.must_be_stale(0, 0));
  EXPECT_EQ(oracle.contents(0, 1), before);
  oracle.reset(0, 1, 1);
  EXPECT_FALSE(oracle.must_be_stale(0, 1));
}

/// Numbers that were worked out by hand.
class TortureOracleOfLibraries : public ::testing::Test {
 protected:
  TortureOracleOfLibraries() {
    hand_.program.buffers = {{DType::f64, 20, Contents::integers, {}},
                             {DType::f64, 20, Contents::integers, {}},
                             {DType::i64, 20, Contents::integers, {}},
                             {DType::i64, 20, Contents::integers, {}},
                             {DType::c128, 20, Contents::rounded, {}}};
  }
  /// What buffer `buffer` of rank 0 holds after the operation, if it held `contents` before; f64 as
  /// parts of a complex one.
  std::vector<double> after(const Operation& op, std::map<int, std::vector<double>> contents,
                            const Slice& result) {
    hand_.round.scripts[0][0][0].clear();
    std::uint32_t id = 0;
    for (const auto& [buffer, values] : contents) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        auto& fill = hand_.add(0, Kind::fill);
        fill.id = id++, fill.alpha = values[i];
        fill.dtype = hand_.program.buffers[static_cast<std::size_t>(buffer)].dtype;
        fill.at[0] = {0, buffer, static_cast<std::int64_t>(i), 1};
      }
    }
    hand_.add(0, op.kind) = op;
    const auto random = random_numbers();
    Oracle oracle(hand_.program, random);
    value_ = -1;
    oracle.apply(hand_.round, 0, undisturbed,
                 [&](const Operation&, const std::vector<std::byte>& seen) {
                   value_ = static_cast<std::int64_t>(load(DType::i64, seen.data()));
                 });
    EXPECT_FALSE(oracle.inexact()) << *oracle.inexact();
    const auto dtype = hand_.program.buffers[static_cast<std::size_t>(result.buffer)].dtype;
    const auto part = part_of(dtype);
    const auto parts = static_cast<std::int64_t>(size_of(dtype) / size_of(part));
    std::vector<double> values;
    for (auto i = result.first * parts; i < (result.first + result.count) * parts; ++i)
      values.push_back(load(part, oracle.contents(0, result.buffer).data() + 8 * i));
    return values;
  }
  ByHand hand_;
  std::int64_t value_ = -1;  ///< that the operation shows
  using List = std::vector<double>;
};

TEST_F(TortureOracleOfLibraries, SumsAndSelections) {
  Operation op;
  op.kind = Kind::scan, op.dtype = DType::i64, op.at[0] = op.at[1] = {0, 2, 1, 3};
  EXPECT_EQ(after(op, {{2, {7, 1, 2, 3}}}, {0, 2, 0, 4}), (List{7, 1, 3, 6}));
  op.transpose_a = true;
  EXPECT_EQ(after(op, {{2, {7, 1, 2, 3}}}, {0, 2, 0, 4}), (List{7, 0, 1, 3}));
  op.kind = Kind::reduce_local, op.reduce = ReduceOp::min, op.at[1] = {0, 3, 0, 1};
  EXPECT_EQ(after(op, {{2, {7, 4, 2, 3}}}, op.at[1]), (List{2}));
  op.reduce = ReduceOp::sum;
  EXPECT_EQ(after(op, {{2, {7, 4, 2, 3}}}, op.at[1]), (List{9}));
  op.kind = Kind::select, op.at[0] = {0, 2, 0, 5}, op.at[1] = {0, 3, 0, 4};
  EXPECT_EQ(after(op, {{2, {7, 0, 2, 0, 3}}}, op.at[1]), (List{0, 2, 4, -1}));
  EXPECT_EQ(value_, 3);
  op.at[1].count = 2;
  EXPECT_EQ(after(op, {{2, {7, 0, 2, 0, 3}}}, op.at[1]), (List{0, 2}));
  EXPECT_EQ(value_, 3);
}

TEST_F(TortureOracleOfLibraries, Transforms) {
  Operation op;
  op.kind = Kind::transform, op.dtype = DType::f64, op.m = 4, op.n = op.k = 1, op.peer = 1;
  op.at[0] = {0, 0, 0, 4}, op.at[1] = {0, 4, 0, 3};
  EXPECT_EQ(after(op, {{0, {1, 2, 3, 4}}}, op.at[1]), (List{10, 0, -2, 2, -2, 0}));
  op.kind = Kind::transform_back, op.at[1] = {0, 1, 0, 4};
  EXPECT_EQ(after(op, {{0, {1, 2, 3, 4}}}, op.at[1]), (List{4, 8, 12, 16}));
  op.kind = Kind::transform, op.transpose_a = op.transpose_b = true;  // complex, inverse
  op.at[0] = op.at[1] = {0, 4, 0, 4};
  EXPECT_EQ(after(op, {{4, {1, 2, 3, 4}}}, op.at[1]), (List{10, 0, -2, -2, -2, 0, -2, 2}));
  op.m = op.n = 2, op.peer = 2;
  EXPECT_EQ(after(op, {{4, {1, 2, 3, 4}}}, op.at[1]), (List{10, 0, -2, 0, -4, 0, 0, 0}));
}

TEST_F(TortureOracleOfLibraries, SparseProducts) {
  // (1 2; 0 3) (4 0; 5 6) = (14 12; 15 18)
  Operation op;
  op.kind = Kind::spgemm, op.dtype = DType::f64, op.m = op.n = op.k = 2, op.reports = true;
  op.at[0] = {0, 0, 0, 3}, op.at[3] = {0, 2, 0, 3}, op.at[4] = {0, 2, 3, 3};
  op.at[1] = {0, 0, 3, 3}, op.at[5] = {0, 2, 6, 3}, op.at[6] = {0, 2, 9, 3};
  op.at[2] = {0, 1, 0, 4}, op.at[7] = {0, 3, 0, 3}, op.at[8] = {0, 3, 3, 4};
  const std::map<int, List> factors{
      {0, {1, 2, 3, 4, 5, 6}}, {2, {0, 2, 3, 0, 1, 1, 0, 1, 3, 0, 0, 1}}, {1, {7, 7, 7, 7}}};
  EXPECT_EQ(after(op, factors, op.at[2]), (List{14, 12, 15, 18}));
  EXPECT_EQ(value_, 4);
  EXPECT_EQ(after(op, factors, {0, 3, 0, 7}), (List{0, 2, 4, 0, 1, 0, 1}));
  op.at[2].count = op.at[8].count = 3;
  EXPECT_EQ(after(op, factors, op.at[2]), (List{7, 7, 7})) << "there is no room";
  EXPECT_EQ(value_, 4);
  EXPECT_EQ(after(op, factors, op.at[7]), (List{0, 2, 4}));
}

TEST_F(TortureOracleOfLibraries, LayersAndEigenvalues) {
  // Of a 2 x 2 image of one channel with a filter that adds up its neighbourhood.
  Operation op;
  op.kind = Kind::convolution, op.dtype = DType::f64, op.m = 2, op.n = 3, op.k = 1, op.peer = 1;
  op.at[0] = {0, 0, 0, 4}, op.at[1] = {0, 1, 0, 9}, op.at[2] = {0, 1, 9, 1};
  op.at[3] = {0, 1, 10, 4};
  EXPECT_EQ(after(op, {{0, {1, 2, 3, 4}}, {1, {1, 0, 0, 0, 2, 0, 0, 0, 0, 5}}}, op.at[3]),
            (List{7, 9, 11, 14}));
  op.peer = 2, op.at[2] = {}, op.at[3].count = 1;
  EXPECT_EQ(after(op, {{0, {1, 2, 3, 4}}, {1, {1, 0, 0, 0, 2, 0, 0, 0, 7}}}, op.at[3]), (List{30}));
  op.kind = Kind::attention, op.m = 1, op.n = 2, op.k = 2;
  op.at[2] = {0, 0, 0, 4}, op.at[3] = {0, 1, 0, 2};
  EXPECT_EQ(after(op, {{0, {2, 4, 6, 10}}}, op.at[3]), (List{4, 7}));
  op.kind = Kind::syevd, op.m = 3, op.n = 0, op.data = 0x204, op.at[0] = {0, 0, 0, 3};
  EXPECT_EQ(after(op, {}, op.at[0]), (List{1, 3, 5}));
  op.kind = Kind::gesvd;
  EXPECT_EQ(after(op, {}, op.at[0]), (List{5, 3, 1}));
  op.kind = Kind::gesv;
  EXPECT_EQ(after(op, {}, op.at[0]), (List{5, 1, 3}));
}

TEST_F(TortureOracleOfLibraries, KernelsAndFunctionsOfThePrograms) {
  Operation op;
  op.kind = Kind::combine, op.dtype = DType::f64, op.alpha = 2;
  op.at[0] = {0, 0, 0, 3}, op.at[1] = {0, 0, 3, 3}, op.at[2] = {0, 1, 0, 3};
  EXPECT_EQ(after(op, {{0, {1, 2, 3, 10, 20, 30}}}, op.at[2]), (List{32, 24, 16}));
  op.kind = Kind::smooth, op.at[0] = {0, 0, 0, 4}, op.at[1] = {0, 1, 0, 4};
  EXPECT_EQ(after(op, {{0, {1, 2, 3, 5, 9}}}, op.at[1]), (List{3, 6, 10, 8}));
  op.kind = Kind::accumulate;
  EXPECT_EQ(after(op, {{0, {1, 2, 3, 4}}, {1, {5, 6, 7, 8}}}, op.at[1]), (List{7, 10, 13, 16}));
  op.kind = Kind::tally, op.dtype = DType::i64;
  op.at[0] = {0, 2, 0, 5}, op.at[1] = {0, 3, 1, 3};
  EXPECT_EQ(after(op, {{2, {0, 3, -1, 5, 1}}, {3, {9, 1, 0, 0}}}, op.at[1]), (List{3, 1, 2}));
}

// What failed on one rank may have been done all the same: the others' results of it are unknown.
TEST(TortureOracle, ResultsOfWhatFailedElsewhereAreNotKnown) {
  ByHand hand;
  hand.add_fills_and_a_sum();
  auto& copy = hand.add(0, Kind::copy);
  copy.id = 6, copy.at[0] = {0, 1, 20, 4}, copy.at[1] = {0, 0, 0, 4};
  const auto random = random_numbers();
  Oracle oracle(hand.program, random);
  oracle.apply(
      hand.round, 0,
      [](const Operation& op) { return op.id == 1 ? Outcome::refused : Outcome::done; },
      kNobodyLooks);
  EXPECT_TRUE(oracle.unsure(0, 1)) << "rank 1 may have brought either";
  EXPECT_TRUE(oracle.unsure(0, 0)) << "copied from it";
  EXPECT_FALSE(oracle.unsure(1, 0));
}

}  // namespace
}  // namespace troupe::torture
