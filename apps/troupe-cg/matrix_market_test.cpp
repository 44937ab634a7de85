#include "matrix_market.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

namespace troupe::cg {
namespace {

namespace fs = std::filesystem;

class MatrixMarketTest : public ::testing::Test {
 protected:
  MatrixMarketTest()
      : path_(fs::temp_directory_path() /
              ("troupe-mm-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".mtx")) {}
  ~MatrixMarketTest() override {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  Result<LocalRows> read(const std::string& text, std::int32_t rank = 0, std::int32_t ranks = 1) {
    write(text);
    return read_matrix_market(path_.string(), rank, ranks);
  }
  /// Every rank of two must report the same: `expected` after the file's name.
  void expect_invalid(const std::string& text, const std::string& expected) {
    for (const std::int32_t rank : {0, 1}) {
      const auto got = read(text, rank, 2);
      ASSERT_FALSE(got.ok()) << text;
      EXPECT_EQ(got.code(), Errc::invalid) << text;
      EXPECT_EQ(got.error().message.find(path_.string() + ":" + expected), 0u)
          << "got: " << got.error().message << "\nexpected: " << expected << "\nfile:\n"
          << text;
      EXPECT_EQ(got.error().message.find('\n'), std::string::npos);
    }
  }
  fs::path path_;
};

using Entries = std::map<std::pair<std::int64_t, std::int64_t>, double>;

Entries entries_of(const LocalRows& rows) {
  Entries result;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const auto begin = rows.row_begin[static_cast<std::size_t>(i)];
    const auto end = rows.row_begin[static_cast<std::size_t>(i) + 1];
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
      if (static_cast<std::int64_t>(k) > begin) {
        EXPECT_LT(rows.column[k - 1], rows.column[k]);
      }
      result[{rows.first_row + i, rows.column[k]}] = rows.value[k];
    }
  }
  EXPECT_EQ(result.size(), rows.value.size());
  return result;
}

const std::string kSymmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
const std::string kGeneral = "%%MatrixMarket matrix coordinate real general\n";

TEST_F(MatrixMarketTest, SymmetricFileGetsItsMirrorImage) {
  const auto rows = read(kSymmetric + "3 3 4\n1 1 4\n2 1 -1.5\n3 2 2e-1\n3 3 7\n");
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  EXPECT_EQ(rows->global_nonzeros, 6);
  EXPECT_EQ(rows->global_rows, 3);
  const Entries expected{{{0, 0}, 4},   {{0, 1}, -1.5}, {{1, 0}, -1.5},
                         {{1, 2}, 0.2}, {{2, 1}, 0.2},  {{2, 2}, 7}};
  EXPECT_EQ(entries_of(*rows), expected);
}

TEST_F(MatrixMarketTest, UnsortedGeneralFileIsSortedAndSymmetryAccepted) {
  const auto rows = read(kGeneral + "3 3 5\n3 1 2\n1 1 5\n2 2 -0.0\n1 3 2\n3 3 1\n");
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  const Entries expected{{{0, 0}, 5}, {{0, 2}, 2}, {{1, 1}, 0}, {{2, 0}, 2}, {{2, 2}, 1}};
  EXPECT_EQ(entries_of(*rows), expected);
  EXPECT_EQ(rows->global_nonzeros, 5);
}

TEST_F(MatrixMarketTest, TakesEveryHarmlessVariation) {
  const Entries expected{{{0, 0}, 100}, {{0, 1}, -0.25}, {{1, 0}, -0.25}, {{1, 1}, 3}};
  for (const std::string text :
       {"%%MATRIXMARKET Matrix COORDINATE Real SYMMETRIC\r\n% c\r\n\r\n2 2 3\r\n1 1 100\r\n2 1 "
        "-.25\r\n2 2 3\r\n",
        "%%MatrixMarket  matrix\tcoordinate real symmetric  \n%\n  % indented\n \n 2 2\t3 \n\n1 1 "
        "1.0D+02\n\n2 1 -2.5d-1\n2 2 +3.\n\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 4\n2 2 3E0\n2 1 -0.25\n1 2 "
        "-25e-2\n1 1 1e2"}) {
    const auto rows = read(text);
    ASSERT_TRUE(rows.ok()) << rows.error().to_string();
    EXPECT_EQ(entries_of(*rows), expected);
  }
  const auto integers =
      read("%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 -7\n2 1 +4\n");
  ASSERT_TRUE(integers.ok()) << integers.error().to_string();
  EXPECT_EQ(entries_of(*integers), (Entries{{{0, 0}, -7}, {{0, 1}, 4}, {{1, 0}, 4}}));
}

TEST_F(MatrixMarketTest, RanksTogetherHoldTheWholeMatrix) {
  std::mt19937 random(5);
  for (const bool symmetric : {true, false}) {
    constexpr std::int64_t kRows = 23;
    Entries expected;
    std::vector<std::string> lines;
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        if (i != j && random() % 4 != 0) continue;
        const double value = static_cast<double>(random() % 1000) / 8;
        for (const auto& [a, b] : {std::pair(i, j), std::pair(j, i)}) {
          if (!expected.emplace(std::pair(a, b), value).second || (symmetric && a < b)) continue;
          std::ostringstream line;
          line << a + 1 << ' ' << b + 1 << ' ' << value << '\n';
          lines.push_back(line.str());
        }
      }
    }
    std::shuffle(lines.begin(), lines.end(), random);
    std::string text =
        (symmetric ? kSymmetric : kGeneral) + "23 23 " + std::to_string(lines.size()) + "\n";
    for (const auto& line : lines) text += line;
    for (const std::int32_t ranks : {1, 2, 3, 7, 23}) {
      Entries all;
      const RowBlocks blocks{kRows, ranks};
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        const auto rows = read(text, rank, ranks);
        ASSERT_TRUE(rows.ok()) << rows.error().to_string();
        EXPECT_EQ(rows->first_row, blocks.first(rank));
        EXPECT_EQ(rows->rows, blocks.count(rank));
        EXPECT_EQ(rows->global_nonzeros, static_cast<std::int64_t>(expected.size()));
        all.merge(entries_of(*rows));
      }
      EXPECT_EQ(all, expected);
    }
  }
}

TEST_F(MatrixMarketTest, EveryMalformedFileIsNamedWithItsLine) {
  expect_invalid("", "1: the file is empty");
  expect_invalid("2 2 1\n1 1 1\n", "1: not a Matrix Market file");
  expect_invalid("MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 1\n",
                 "1: not a Matrix Market file");
  expect_invalid("\n" + kGeneral + "2 2 1\n1 1 1\n", "1: not a Matrix Market file");
  expect_invalid("%%MatrixMarket matrix coordinate real\n", "1: the banner must be");
  expect_invalid("%%MatrixMarket matrix coordinate real general x\n", "1: the banner must be");
  expect_invalid("%%MatrixMarket vector coordinate real general\n",
                 "1: unsupported object 'vector'");
  expect_invalid("%%MatrixMarket matrix array real general\n", "1: unsupported format 'array'");
  for (const std::string field : {"complex", "pattern", "rational"}) {
    expect_invalid("%%MatrixMarket matrix coordinate " + field + " general\n",
                   "1: unsupported field '" + field + "'");
  }
  for (const std::string symmetry : {"skew-symmetric", "hermitian"}) {
    expect_invalid("%%MatrixMarket matrix coordinate real " + symmetry + "\n",
                   "1: unsupported symmetry '" + symmetry + "'");
  }
  expect_invalid(kGeneral + "% c\n" + kGeneral + "2 2 1\n1 1 1\n", "3: a second banner");
  expect_invalid(kGeneral + "2 2 2\n1 1 1\n" + kGeneral + "2 2 1\n", "4: a second banner");
  expect_invalid(kGeneral + "% only comments\n\n", "3: truncated: no size line");

  for (const std::string size : {"2 2", "2 two 2", "2.0 2 2", "99999999999999999999 1 1", "a"}) {
    expect_invalid(kGeneral + size + "\n", "2: the size line must be three integers");
  }
  expect_invalid(kGeneral + "2 2 2 2\n", "2: trailing junk after the size");
  for (const std::string size : {"-2 -2 2", "0 0 0", "2 2 -1", "2 0 2"}) {
    expect_invalid(kGeneral + size + "\n", "2: the sizes must be positive");
  }
  expect_invalid(kGeneral + "%\n2 3 2\n", "3: the matrix is not square");
  expect_invalid(kGeneral + "9000000000 9000000000 2\n", "2: more than 2^31 rows");
  expect_invalid(kGeneral + "2 2 5\n", "2: more entries than the matrix has places");
  expect_invalid(kSymmetric + "2 2 4\n", "2: more entries than the matrix has places");
  expect_invalid(kSymmetric + "3 3 7\n", "2: more entries than the matrix has places");
  expect_invalid(kGeneral + "100000 100000 1000000000\n1 1 1\n", "2: truncated: more entries");
  expect_invalid(kSymmetric + "2000000000 2000000000 1\n1 1 1\n", "2: more rows than the entries");
  expect_invalid(kGeneral + "1 1 1\n1 1 1\n", "2: more ranks than rows: 2 and 1");

  expect_invalid(kGeneral + "2 2 3\n1 1 1\n2 2 1\n", "4: truncated: 2 of 3");
  expect_invalid(kGeneral + "2 2 2\n1 1 1\n2 2 1\n\n1 2 1\n", "6: more than the announced 2");
  for (const std::string entry : {"0 1 1", "1 0 1", "-1 1 1", "3 1 1", "1 3 1"}) {
    expect_invalid(kGeneral + "2 2 2\n2 2 1\n" + entry + "\n", "4: index out of range 1 to 2");
  }
  for (const std::string entry : {"1", "1.5 1 1", "x 1 1", "1 1e0 1", "% late", "++1 1 1"}) {
    expect_invalid(kGeneral + "2 2 2\n2 2 1\n" + entry + "\n", "4: an entry must begin with two");
  }
  expect_invalid(kGeneral + "2 2 2\n2 2\n1 1 1\n", "3: the entry has no value");
  for (const std::string value : {"x", "nan", "inf", "-Infinity", "1e999", "1.0D+999", "1,5",
                                  "1.0x", "0x10", "+-1", "--1", "1e", "+", "1D1D1", "NaN(3)"}) {
    expect_invalid(kGeneral + "2 2 2\n2 2 1\n1 1 " + value + "\n",
                   "4: the value is not a finite number");
  }
  expect_invalid(kGeneral + "2 2 2\n2 2 1\n1 1 1 1\n", "4: trailing junk after the entry");
  expect_invalid(kGeneral + "2 2 2\n2 2 1\n1 1 1" + std::string(1, '\0') + "\n", "4: the value is");
  for (const std::string value : {"1.5", "1e3", "9007199254740993", "99999999999999999999"}) {
    expect_invalid(
        "%%MatrixMarket matrix coordinate integer general\n2 2 2\n2 2 1\n1 1 " + value + "\n",
        "4: the value is not an integer");
  }
  expect_invalid(kSymmetric + "2 2 2\n1 1 1\n1 2 1\n", "4: an entry above the diagonal");
  expect_invalid(kGeneral + "2 2 2\n" + std::string(2 << 20, ' ') + "\n", "3: a line longer than");
}

TEST_F(MatrixMarketTest, DuplicatesAreFoundWhereverTheyAre) {
  expect_invalid(kSymmetric + "3 3 4\n1 1 1\n2 1 5\n2 1 5\n3 3 1\n",
                 "5: entry (2, 1) occurs a second");
  expect_invalid(kSymmetric + "3 3 4\n3 2 1\n1 1 1\n3 3 1\n3 2 2\n",
                 "6: entry (3, 2) occurs a second");
  expect_invalid(kGeneral + "2 2 4\n1 2 5\n2 1 5\n1 2 5\n2 1 5\n",
                 "5: entry (1, 2) occurs a second");
  expect_invalid(kGeneral + "2 2 3\n2 2 5\n1 1 5\n2 2 5\n", "5: entry (2, 2) occurs a second");
}

TEST_F(MatrixMarketTest, GeneralMatrixMustBeSymmetric) {
  expect_invalid(kGeneral + "3 3 4\n1 1 1\n2 2 1\n3 1 5\n3 3 1\n", "5: entry (3, 1) has no mirror");
  expect_invalid(kGeneral + "3 3 5\n1 1 1\n1 3 5\n2 2 1\n3 1 5.0000000001\n3 3 1\n",
                 "6: entry (3, 1) differs");
  expect_invalid(kGeneral + "3 3 5\n1 1 1\n1 3 5\n2 2 1\n3 1 -5\n3 3 1\n",
                 "6: entry (3, 1) differs");
  // The same values on both sides, at the wrong places.
  expect_invalid(kGeneral + "3 3 4\n1 2 5\n1 3 6\n2 1 6\n3 1 5\n", "5: entry (2, 1) differs");
  expect_invalid(kGeneral + "3 3 4\n1 2 5\n1 3 6\n2 1 5\n3 2 6\n", "4: entry (1, 3) has no mirror");
}

TEST_F(MatrixMarketTest, UnreadableFilesAreIoErrors) {
  EXPECT_EQ(read_matrix_market("/nonexistent/a.mtx", 0, 1).code(), Errc::io);
  EXPECT_EQ(read_matrix_market(fs::temp_directory_path().string(), 0, 1).code(), Errc::io);
}

TEST_F(MatrixMarketTest, LongFilesCrossTheReadBuffer) {
  std::string text = kSymmetric + "200000 200000 200000\n";
  for (int i = 1; i <= 200000; ++i) {
    text += std::to_string(i) + " " + std::to_string(i) + " " + std::to_string(i) + ".25\n";
  }
  ASSERT_GT(text.size(), 3u << 20);
  const auto rows = read(text, 1, 2);
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  ASSERT_EQ(rows->value.size(), 100000u);
  for (std::size_t i = 0; i < rows->value.size(); ++i) {
    ASSERT_EQ(rows->value[i], 100001.25 + static_cast<double>(i));
  }
}

fs::path shared_matrix(const std::string& name) {
  const char* shared = std::getenv("TROUPE_SHARED");
  const fs::path folder = shared ? fs::path(shared) : fs::path(TROUPE_SOURCE_DIR) / ".." / "shared";
  return folder / "matrices" / name;
}

struct Known {
  const char* name;
  std::int64_t rows, nonzeros;
};
void PrintTo(const Known& known, std::ostream* out) {
  *out << known.name;
}

class RealMatrixTest : public ::testing::TestWithParam<Known> {};

TEST_P(RealMatrixTest, HasItsPublishedSize) {
  const fs::path path = shared_matrix(GetParam().name);
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there (set TROUPE_SHARED)";
  std::int64_t nonzeros = 0;
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    const auto rows = read_matrix_market(path.string(), rank, 3);
    ASSERT_TRUE(rows.ok()) << rows.error().to_string();
    EXPECT_EQ(rows->global_rows, GetParam().rows);
    EXPECT_EQ(rows->global_nonzeros, GetParam().nonzeros);
    nonzeros += static_cast<std::int64_t>(rows->value.size());
  }
  EXPECT_EQ(nonzeros, GetParam().nonzeros);
}

INSTANTIATE_TEST_SUITE_P(SuiteSparse, RealMatrixTest,
                         ::testing::Values(Known{"494_bus.mtx", 494, 1666},
                                           Known{"bcsstk13.mtx", 2003, 83883}));

}  // namespace
}  // namespace troupe::cg
