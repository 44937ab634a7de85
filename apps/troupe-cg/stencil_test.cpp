#include "stencil.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::cg {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// The operator as its definition says, through coordinates in the global grid.
LocalRows reference_rows(const StencilOptions& options) {
  const auto grid = ProcessGrid::of(options.ranks);
  const std::array<std::int64_t, 3> n{options.nx, options.ny, options.nz},
      p{grid.px, grid.py, grid.pz};
  const std::int64_t points = n[0] * n[1] * n[2];
  const std::array<std::int64_t, 3> size{n[0] * p[0], n[1] * p[1], n[2] * p[2]};
  auto row_of = [&](std::array<std::int64_t, 3> c) {
    const std::int64_t rank = c[0] / n[0] + p[0] * (c[1] / n[1] + p[1] * (c[2] / n[2]));
    return rank * points + c[0] % n[0] + n[0] * (c[1] % n[1] + n[1] * (c[2] % n[2]));
  };
  std::map<std::pair<std::int64_t, std::int64_t>, double> all;
  for (std::int64_t z = 0; z < size[2]; ++z) {
    for (std::int64_t y = 0; y < size[1]; ++y) {
      for (std::int64_t x = 0; x < size[0]; ++x) {
        for (int d = 0; d < 27; ++d) {
          const std::int64_t ox = x + d % 3 - 1, oy = y + d / 3 % 3 - 1, oz = z + d / 9 - 1;
          if (ox < 0 || oy < 0 || oz < 0 || ox >= size[0] || oy >= size[1] || oz >= size[2])
            continue;
          all[{row_of({x, y, z}), row_of({ox, oy, oz})}] = d == 13 ? 26 : -1;
        }
      }
    }
  }
  LocalRows local;
  local.first_row = options.rank * points;
  local.rows = points;
  local.global_rows = points * options.ranks;
  local.global_nonzeros = static_cast<std::int64_t>(all.size());
  local.row_begin.assign(at(points) + 1, 0);
  for (const auto& [place, value] : all) {
    if (place.first / points != options.rank) continue;
    local.column.push_back(place.second);
    local.value.push_back(value);
    local.row_begin[at(place.first % points) + 1] = static_cast<std::int64_t>(local.column.size());
  }
  return local;
}

template <class Index>
void expect_same_matrix(const CsrMatrix<Index>& a, const CsrMatrix<Index>& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.row_begin, b.row_begin);
  EXPECT_EQ(a.column, b.column);
  EXPECT_EQ(a.value, b.value);
}

template <class Index>
void expect_equals_partition(StencilOptions options) {
  for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
    SCOPED_TRACE(std::to_string(options.nx) + "x" + std::to_string(options.ny) + "x" +
                 std::to_string(options.nz) + ", rank " + std::to_string(options.rank) + " of " +
                 std::to_string(options.ranks));
    const LocalRows rows = reference_rows(options);
    const RowBlocks blocks{rows.global_rows, options.ranks};
    const auto expected = partition<Index>(rows, blocks, options.rank).take();
    const auto direct = make_stencil_problem<Index>(options).take();
    EXPECT_EQ(direct.first_row, expected.first_row);
    EXPECT_EQ(direct.rows, expected.rows);
    EXPECT_EQ(direct.interior_rows, expected.interior_rows);
    EXPECT_EQ(direct.global_rows, expected.global_rows);
    EXPECT_EQ(direct.global_nonzeros, expected.global_nonzeros);
    EXPECT_EQ(direct.permutation, expected.permutation);
    EXPECT_EQ(direct.halo, expected.halo);
    EXPECT_EQ(direct.halo_columns, expected.halo_columns);
    // Both sort by new column, so equal arrays are equal entries.
    expect_same_matrix(direct.own, expected.own);
    expect_same_matrix(direct.foreign, expected.foreign);
    const auto size = stencil_size(options).take();
    EXPECT_EQ(size.own_nonzeros, expected.own.nonzeros());
    EXPECT_EQ(size.foreign_nonzeros, expected.foreign.nonzeros());
    EXPECT_EQ(size.halo, static_cast<std::int64_t>(expected.halo_columns.size()));
  }
}

TEST(StencilTest, DirectGenerationEqualsThePartitionOfTheGlobalMatrix) {
  for (const std::int32_t ranks : {1, 2, 3, 4, 7, 12}) {
    for (const auto& [nx, ny, nz] :
         std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {2, 2, 2}, {3, 4, 5}, {4, 1, 2}}) {
      expect_equals_partition<std::int32_t>({nx, ny, nz, 0, ranks, 1 + ranks % 3, kPlenty});
    }
  }
  expect_equals_partition<std::int64_t>({3, 2, 4, 0, 8, 4, kPlenty});
  expect_equals_partition<std::int32_t>({5, 5, 5, 0, 8, 16, kPlenty});
  expect_equals_partition<std::int32_t>(
      {2, 2, 2, 0, 27, 1, kPlenty});  // one rank has neighbours all around
}

TEST(StencilTest, TheExchangeIsThatOfTheProblem) {
  for (const std::int32_t ranks : {1, 2, 6, 27}) {
    StencilOptions options{3, 4, 2, 0, ranks, 1, kPlenty};
    std::vector<LocalProblem<std::int32_t>> problems;
    for (options.rank = 0; options.rank < ranks; ++options.rank)
      problems.push_back(make_stencil_problem<std::int32_t>(options).take());
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      const auto exchange = stencil_exchange(options);
      EXPECT_EQ(exchange.halo, problems[at(options.rank)].halo);
      for (const auto& neighbour : exchange.halo) {
        const auto& other = problems[at(neighbour.rank)];
        const auto mine = std::find_if(other.halo.begin(), other.halo.end(),
                                       [&](const auto& one) { return one.rank == options.rank; });
        ASSERT_NE(mine, other.halo.end());
        const auto wanted = other.wanted_from(*mine);
        ASSERT_EQ(std::ssize(wanted), neighbour.receive_count);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_EQ(exchange.gather[at(neighbour.receive_offset) + i] + options.rank * 24,
                    wanted[i]);
        }
      }
    }
  }
}

/// Dealt out to other ranks it is the same matrix.
TEST(StencilTest, RowsForAnyNumberOfRanksAreThoseOfTheWhole) {
  for (const std::int32_t made_for : {1, 3, 4, 8}) {
    StencilOptions options{3, 2, 4, 0, made_for, 1, kPlenty};
    LocalRows whole;
    whole.row_begin.push_back(0);
    for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
      const auto part = reference_rows(options);
      const auto before = whole.row_begin.back();
      for (std::size_t i = 1; i < part.row_begin.size(); ++i)
        whole.row_begin.push_back(before + part.row_begin[i]);
      whole.column.insert(whole.column.end(), part.column.begin(), part.column.end());
      whole.value.insert(whole.value.end(), part.value.begin(), part.value.end());
    }
    options.rank = 0;
    for (const std::int32_t ranks : {1, 2, 3, 5}) {
      SCOPED_TRACE(std::to_string(made_for) + " ranks' on " + std::to_string(ranks));
      LocalRows dealt;
      dealt.row_begin.push_back(0);
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        const auto part = stencil_rows(options, {24 * made_for, ranks}, rank).take();
        EXPECT_EQ(part.first_row, static_cast<std::int64_t>(dealt.row_begin.size()) - 1);
        EXPECT_EQ(part.rows, static_cast<std::int64_t>(part.row_begin.size()) - 1);
        EXPECT_EQ(part.global_nonzeros, static_cast<std::int64_t>(whole.column.size()));
        const auto before = dealt.row_begin.back();
        for (std::size_t i = 1; i < part.row_begin.size(); ++i)
          dealt.row_begin.push_back(before + part.row_begin[i]);
        dealt.column.insert(dealt.column.end(), part.column.begin(), part.column.end());
        dealt.value.insert(dealt.value.end(), part.value.begin(), part.value.end());
      }
      EXPECT_EQ(dealt.row_begin, whole.row_begin);
      EXPECT_EQ(dealt.column, whole.column);
      EXPECT_EQ(dealt.value, whole.value);
    }
  }
  EXPECT_EQ(stencil_rows({100, 100, 100, 0, 4, 1, 1000}, {4000000, 3}, 0).code(),
            Errc::out_of_memory);
}

TEST(StencilTest, IsSymmetricWithTheRowSumsOfTheBoundary) {
  StencilOptions options{3, 2, 4, 0, 6, 2, kPlenty};
  std::map<std::pair<std::int64_t, std::int64_t>, double> all;
  std::map<std::int64_t, double> sums;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
    const auto problem = make_stencil_problem<std::int32_t>(options).take();
    const auto d = diagonal(problem);
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      EXPECT_EQ(d[at(row)], 26.0);
      const auto global = problem.first_row + problem.permutation[at(row)];
      for (auto k = at(problem.own.row_begin[at(row)]); k < at(problem.own.row_begin[at(row) + 1]);
           ++k) {
        const auto column = problem.permutation[at(problem.own.column[k])] + problem.first_row;
        all[{global, column}] = problem.own.value[k];
        sums[global] += problem.own.value[k];
      }
      if (row < problem.interior_rows) continue;
      const auto boundary = at(row - problem.interior_rows);
      for (auto k = at(problem.foreign.row_begin[boundary]);
           k < at(problem.foreign.row_begin[boundary + 1]); ++k) {
        all[{global, problem.halo_columns[at(problem.foreign.column[k])]}] =
            problem.foreign.value[k];
        sums[global] += problem.foreign.value[k];
      }
    }
  }
  for (const auto& [place, value] : all) {
    const auto mirror = all.find({place.second, place.first});
    ASSERT_NE(mirror, all.end());
    EXPECT_EQ(mirror->second, value);
  }
  // 6 ranks are 1 x 2 x 3: a grid of 3 x 4 x 12 points. A point with c_x, c_y, c_z neighbours per
  // axis (itself included) has the row sum 27 - c_x c_y c_z.
  std::map<double, int> histogram, expected;
  for (const auto& [row, sum] : sums) ++histogram[sum];
  for (int z = 0; z < 12; ++z) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 3; ++x) {
        const int cx = x == 1 ? 3 : 2, cy = y % 3 == 0 ? 2 : 3, cz = z % 11 == 0 ? 2 : 3;
        ++expected[27 - cx * cy * cz];
      }
    }
  }
  EXPECT_EQ(histogram, expected);
}

TEST(StencilTest, ProcessGridIsAsCubicAsPossible) {
  const auto expect = [](std::int32_t ranks, std::array<std::int32_t, 3> grid) {
    const auto got = ProcessGrid::of(ranks);
    EXPECT_EQ((std::array{got.px, got.py, got.pz}), grid) << ranks;
    EXPECT_EQ(got.coordinates(ranks - 1), (std::array{grid[0] - 1, grid[1] - 1, grid[2] - 1}));
  };
  expect(1, {1, 1, 1});
  expect(2, {1, 1, 2});
  expect(4, {1, 2, 2});
  expect(7, {1, 1, 7});
  expect(8, {2, 2, 2});
  expect(12, {2, 2, 3});
  expect(36, {3, 3, 4});
  expect(64, {4, 4, 4});
  expect(100, {4, 5, 5});
}

TEST(StencilTest, AbsurdSizesAreRefusedBeforeAnythingIsAllocated) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (const auto& options :
       std::vector<StencilOptions>{{0, 1, 1, 0, 1, 1, kPlenty},
                                   {1, -1, 1, 0, 1, 1, kPlenty},
                                   {1, 1, kHuge, 0, 1, 1, kPlenty},
                                   {kHuge, kHuge, kHuge, 0, 1, 1, kPlenty},
                                   {1 << 20, 1 << 20, 1 << 20, 0, 64, 1, kPlenty},
                                   {1, 1, 1, 1, 1, 1, kPlenty},
                                   {1, 1, 1, -1, 1, 1, kPlenty},
                                   {1, 1, 1, 0, 0, 1, kPlenty},
                                   {1, 1, 1, 0, 1, 0, kPlenty},
                                   {1, 1, 1, 0, 1, 5000, kPlenty}}) {
    EXPECT_EQ(make_stencil_problem<std::int32_t>(options).code(), Errc::invalid);
    EXPECT_EQ(stencil_size(options).code(), Errc::invalid);
  }
  EXPECT_EQ(make_stencil_problem<std::int32_t>({10000, 10000, 1000, 0, 1, 1, kPlenty}).code(),
            Errc::out_of_memory);
}

TEST(StencilTest, MemoryLimitIsExact) {
  StencilOptions options{6, 5, 4, 3, 8, 1, kPlenty};
  const auto size = stencil_size(options).take();
  for (const int index_bytes : {4, 8}) {
    const std::int64_t needed = size.bytes(index_bytes);
    for (const std::int64_t limit : {needed, needed - 1}) {
      options.memory_limit_bytes = limit;
      const auto expected = limit == needed ? Errc::ok : Errc::out_of_memory;
      EXPECT_EQ(index_bytes == 4 ? make_stencil_problem<std::int32_t>(options).code()
                                 : make_stencil_problem<std::int64_t>(options).code(),
                expected);
    }
  }
  options.memory_limit_bytes = kPlenty;
  const auto problem = make_stencil_problem<std::int32_t>(options).take();
  const auto bytes = [](const auto& array) {
    return static_cast<std::int64_t>(array.size() * sizeof(array[0]));
  };
  EXPECT_EQ(bytes(problem.permutation) + bytes(problem.halo_columns) +
                bytes(problem.own.row_begin) + bytes(problem.own.column) +
                bytes(problem.own.value) + bytes(problem.foreign.row_begin) +
                bytes(problem.foreign.column) + bytes(problem.foreign.value),
            size.bytes(4));
}

TEST(StencilTest, TooManyEntriesForTheIndexAreRefused) {
  const StencilOptions options{600, 600, 600, 0, 1, 1, kPlenty};
  EXPECT_TRUE(stencil_size(options).take().needs_64_bit());
  EXPECT_EQ(make_stencil_problem<std::int32_t>(options).code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::cg
