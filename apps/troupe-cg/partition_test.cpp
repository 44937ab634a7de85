#include "partition.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "matrix_market.hpp"

namespace troupe::cg {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

using Matrix = std::map<std::pair<std::int64_t, std::int64_t>, double>;

Matrix random_symmetric(std::int64_t rows, int per_row, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<std::int64_t> index(0, rows - 1);
  Matrix matrix;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row % 5 != 4) matrix[{row, row}] = 10 + value(random);  // some diagonals are missing
    for (int k = 0; k < per_row; ++k) {
      const auto column = index(random);
      if (column != row) matrix[{row, column}] = matrix[{column, row}] = value(random);
    }
  }
  return matrix;
}

LocalRows local_rows(const Matrix& matrix, const RowBlocks& blocks, std::int32_t rank) {
  LocalRows local;
  local.first_row = blocks.first(rank);
  local.rows = blocks.count(rank);
  local.global_rows = blocks.rows;
  local.global_nonzeros = static_cast<std::int64_t>(matrix.size());
  local.row_begin.assign(at(local.rows) + 1, 0);
  for (const auto& [place, value] : matrix) {
    if (place.first < local.first_row || place.first >= local.first_row + local.rows) continue;
    local.column.push_back(place.second);
    local.value.push_back(value);
    local.row_begin[at(place.first - local.first_row) + 1] =
        static_cast<std::int64_t>(local.column.size());
  }
  for (std::size_t i = 1; i < local.row_begin.size(); ++i) {
    local.row_begin[i] = std::max(local.row_begin[i], local.row_begin[i - 1]);
  }
  return local;
}

Matrix whole_matrix(const LocalRows& all) {
  Matrix matrix;
  for (std::int64_t row = 0; row < all.rows; ++row) {
    for (auto k = at(all.row_begin[at(row)]); k < at(all.row_begin[at(row) + 1]); ++k) {
      matrix[{row, all.column[k]}] = all.value[k];
    }
  }
  return matrix;
}

/// All ranks' parts in one process; messages are copies. With `colours` above 1 the rows are
/// numbered by as many, which say nothing about the matrix.
template <class Index>
void expect_equals_serial(const Matrix& matrix, const RowBlocks& blocks,
                          std::int32_t colour_count = 1) {
  const auto rows = blocks.rows;
  const auto ranks = blocks.ranks;
  SCOPED_TRACE("ranks " + std::to_string(ranks));
  constexpr std::uint64_t kSeed = 11;
  std::vector<double> expected(at(rows)), magnitude(at(rows));
  for (const auto& [place, value] : matrix) {
    const double term = value * known_solution(place.second, kSeed);
    expected[at(place.first)] += term;
    magnitude[at(place.first)] += std::abs(term);
  }
  std::vector<LocalProblem<Index>> problems;
  std::vector<std::vector<Request>> requests(at(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    auto problem = partition<Index>(local_rows(matrix, blocks, rank), blocks, rank);
    ASSERT_TRUE(problem.ok()) << problem.error().to_string();
    for (const Neighbour& neighbour : problem->halo) {
      EXPECT_NE(neighbour.rank, rank);
      const auto wanted = problem->wanted_from(neighbour);
      for (const auto row : wanted) EXPECT_EQ(blocks.owner(row), neighbour.rank);
      requests[at(neighbour.rank)].push_back({rank, {wanted.begin(), wanted.end()}});
    }
    if (colour_count > 1) {
      std::vector<std::int32_t> colours(at(problem->rows));
      for (std::size_t i = 0; i < colours.size(); ++i)
        colours[i] = static_cast<std::int32_t>(i * i) % colour_count;
      renumber(*problem, std::span<const std::int32_t>(colours), 2);
      for (std::int64_t row = 1; row < problem->rows; ++row) {
        if (row == problem->interior_rows) continue;
        EXPECT_LE(colours[at(problem->permutation[at(row - 1)])],
                  colours[at(problem->permutation[at(row)])]);
      }
      for (std::int64_t row = 0; row < problem->rows; ++row) {
        const auto begin = problem->own.column.begin() + problem->own.row_begin[at(row)];
        const auto end = problem->own.column.begin() + problem->own.row_begin[at(row + 1)];
        EXPECT_TRUE(std::is_sorted(begin, end));
      }
    }
    problems.push_back(std::move(*problem));
  }
  std::vector<Array<double>> x, halo;
  for (const auto& problem : problems) {
    x.push_back(known_solution(problem, kSeed, 2));
    halo.emplace_back(problem.halo_columns.size(), std::nan(""));
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto plan = send_plan<Index>(problems[at(rank)], requests[at(rank)]);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    // Symmetric structure: who sends to me is whom I send to.
    ASSERT_EQ(plan->neighbours.size(), problems[at(rank)].halo.size());
    for (std::size_t n = 0; n < plan->neighbours.size(); ++n) {
      const auto& to = plan->neighbours[n];
      EXPECT_EQ(to.rank, problems[at(rank)].halo[n].rank);
      for (const auto& from : problems[at(to.rank)].halo) {
        if (from.rank != rank) continue;
        ASSERT_EQ(from.receive_count, to.send_count);
        for (std::int64_t i = 0; i < to.send_count; ++i) {
          halo[at(to.rank)][at(from.receive_offset + i)] =
              x[at(rank)][at(plan->gather[at(to.send_offset + i)])];
        }
      }
    }
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto& problem = problems[at(rank)];
    const auto b = right_hand_side(problem, kSeed, 3);
    const auto d = diagonal(problem);
    ASSERT_EQ(problem.foreign.rows, problem.rows - problem.interior_rows);
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      double y = 0;
      for (auto k = at(problem.own.row_begin[at(row)]); k < at(problem.own.row_begin[at(row) + 1]);
           ++k) {
        y += problem.own.value[k] * x[at(rank)][at(problem.own.column[k])];
      }
      if (row >= problem.interior_rows) {
        const auto boundary = at(row - problem.interior_rows);
        const auto begin = problem.foreign.row_begin[boundary];
        const auto end = problem.foreign.row_begin[boundary + 1];
        EXPECT_GT(end, begin) << "a boundary row needs a foreign column";
        for (auto k = at(begin); k < at(end); ++k) {
          y += problem.foreign.value[k] * halo[at(rank)][at(problem.foreign.column[k])];
        }
      }
      const auto global = problem.first_row + problem.permutation[at(row)];
      const double tolerance = 1e-14 * (1 + magnitude[at(global)]);
      EXPECT_NEAR(y, expected[at(global)], tolerance);
      EXPECT_NEAR(b[at(row)], expected[at(global)], tolerance);
      const auto entry = matrix.find({global, global});
      EXPECT_EQ(d[at(row)], entry == matrix.end() ? 0.0 : entry->second);
    }
  }
}

TEST(RowBlocksTest, AreContiguousEvenAndComplete) {
  for (const std::int64_t rows : {1, 7, 100}) {
    for (const std::int32_t ranks : {1, 2, 3, 7, 11}) {
      const RowBlocks blocks{rows, ranks};
      std::int64_t next = 0;
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(blocks.first(rank), next);
        for (std::int64_t i = 0; i < blocks.count(rank); ++i) EXPECT_EQ(blocks.owner(next++), rank);
        EXPECT_LE(blocks.count(0) - blocks.count(rank), 1);
      }
      EXPECT_EQ(next, rows);
    }
  }
}

TEST(ForRangesTest, CoversEveryIndexOnce) {
  for (const std::int32_t threads : {1, 2, 5, 16}) {
    for (const std::int64_t count : {0, 1, 3, 100}) {
      std::vector<int> seen(at(count));
      for_ranges(threads, count, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) ++seen[at(i)];
      });
      EXPECT_EQ(seen, std::vector<int>(at(count), 1));
    }
  }
}

TEST(PartitionTest, DistributedProductEqualsSerialOnRandomMatrices) {
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    const auto matrix = random_symmetric(60 + seed, static_cast<int>(seed), seed);
    for (const std::int32_t ranks : {1, 2, 3, 4, 7}) {
      expect_equals_serial<std::int32_t>(matrix, {60 + seed, ranks});
      expect_equals_serial<std::int64_t>(matrix, {60 + seed, ranks});
      expect_equals_serial<std::int32_t>(matrix, {60 + seed, ranks}, 3);
    }
  }
}

TEST(PartitionTest, BlocksOfAnySizeWillDo) {
  const auto matrix = random_symmetric(60, 2, 5);
  for (const auto& begins : std::vector<std::vector<std::int64_t>>{{0}, {0, 1, 50}, {0, 30, 59}}) {
    const RowBlocks blocks{60, static_cast<std::int32_t>(begins.size()), begins};
    expect_equals_serial<std::int32_t>(matrix, blocks);
    expect_equals_serial<std::int32_t>(matrix, blocks, 2);
  }
}

class RealPartitionTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RealPartitionTest, DistributedProductEqualsSerial) {
  const char* shared = std::getenv("TROUPE_SHARED");
  const auto folder = shared ? std::filesystem::path(shared)
                             : std::filesystem::path(TROUPE_SOURCE_DIR) / ".." / "shared";
  const auto path = folder / "matrices" / GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there (set TROUPE_SHARED)";
  const auto all = read_matrix_market(path.string(), 0, 1);
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  const Matrix matrix = whole_matrix(*all);
  for (const std::int32_t ranks : {1, 2, 3, 4, 7}) {
    expect_equals_serial<std::int32_t>(matrix, {all->rows, ranks});
  }
}

INSTANTIATE_TEST_SUITE_P(SuiteSparse, RealPartitionTest,
                         ::testing::Values("494_bus.mtx", "bcsstk13.mtx"));

TEST(PartitionTest, InteriorRowsComeFirstBothPartsAscending) {
  // A chain of 6 rows on 2 ranks: only rows 2 and 3 touch the other rank.
  Matrix chain;
  for (std::int64_t i = 0; i < 6; ++i) {
    chain[{i, i}] = 2;
    if (i > 0) chain[{i, i - 1}] = chain[{i - 1, i}] = -1;
  }
  const RowBlocks blocks{6, 2};
  const auto low = partition<std::int32_t>(local_rows(chain, blocks, 0), blocks, 0).take();
  const auto high = partition<std::int32_t>(local_rows(chain, blocks, 1), blocks, 1).take();
  EXPECT_EQ(low.interior_rows, 2);
  EXPECT_EQ(low.permutation, (Array<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(high.permutation, (Array<std::int64_t>{1, 2, 0}));
  EXPECT_EQ(high.halo, (std::vector<Neighbour>{{0, 0, 1}}));
  EXPECT_EQ(high.halo_columns, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(high.own.row_begin, (Array<std::int64_t>{0, 3, 5, 7}));
  EXPECT_EQ(high.own.column, (Array<std::int32_t>{0, 1, 2, 0, 1, 0, 2}));
  EXPECT_EQ(high.own.value, (Array<double>{2, -1, -1, -1, 2, -1, 2}));
  EXPECT_EQ(high.foreign.row_begin, (Array<std::int64_t>{0, 1}));
  EXPECT_EQ(high.foreign.column, (Array<std::int32_t>{0}));
}

TEST(PartitionTest, WishesForOtherRanksRowsAreRefused) {
  const Matrix matrix = random_symmetric(20, 2, 4);
  const RowBlocks blocks{20, 2};
  const auto problem = partition<std::int32_t>(local_rows(matrix, blocks, 1), blocks, 1).take();
  for (const std::int64_t row : {-1, 9, 20}) {
    const std::vector<Request> requests{{0, {10, row}}};
    EXPECT_EQ(send_plan<std::int32_t>(problem, requests).code(), Errc::invalid) << row;
  }
  const std::vector<Request> all{{0, {10, 11, 12, 13, 14, 15, 16, 17, 18, 19}}};
  const auto plan = send_plan<std::int32_t>(problem, all).take();
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(problem.permutation[at(plan.gather[i])], static_cast<std::int64_t>(i));
  }
}

TEST(PartitionTest, WidthFollowsTheLargestCount) {
  constexpr std::int64_t kLast = 2147483647;
  EXPECT_FALSE(needs_64_bit(kLast, kLast, kLast));
  EXPECT_TRUE(needs_64_bit(kLast + 1, 0, 0));
  EXPECT_TRUE(needs_64_bit(1, kLast + 1, 0));
  EXPECT_TRUE(needs_64_bit(1, 1, kLast + 1));
}

TEST(KnownSolutionTest, IsOfOrderOneAndDependsOnRowAndSeed) {
  double sum = 0;
  for (std::int64_t row = 0; row < 10000; ++row) {
    const double x = known_solution(row, 1);
    EXPECT_GE(x, 0.25);
    EXPECT_LT(x, 1.75);
    EXPECT_EQ(x, known_solution(row, 1));
    EXPECT_NE(x, known_solution(row, 2));
    EXPECT_NE(x, known_solution(row + 1, 1));
    sum += x;
  }
  EXPECT_NEAR(sum / 10000, 1, 0.1);
}

}  // namespace
}  // namespace troupe::cg
