#include "rank/device/host/tuning_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "common/wire/tuning_mark.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;
using Entry = TuningFile::Entry;

class TuningFiles : public ::testing::Test {
 protected:
  fs::path folder = [] {
    std::string name = (fs::temp_directory_path() / "troupe-tuning-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return fs::path(name);
  }();
  fs::path file = folder / "a" / "tuning";
  ~TuningFiles() override { fs::remove_all(folder); }

  static Entry entry(int number, std::size_t bytes = 64) {
    Entry one{"blas", std::vector<std::byte>(bytes)};
    std::memcpy(one.plan.data(), wire::kTuningMark.data(), wire::kTuningMark.size());
    std::memcpy(one.plan.data() + wire::kTuningMark.size(), &number, sizeof number);
    return one;
  }
};

TEST_F(TuningFiles, KeepWhatTheyAreGivenForOtherProcesses) {
  TuningFile one(file);
  EXPECT_TRUE(one.load().empty());
  one.add({entry(1), entry(2)});
  one.add({entry(3), entry(1)});
  EXPECT_EQ(TuningFile(file).load(), (std::vector<Entry>{entry(3), entry(1), entry(2)}));
  TuningFile none({});
  none.add({entry(1)});
  EXPECT_TRUE(none.load().empty());
}

TEST_F(TuningFiles, LeaveOutWhatIsNoMeasurement) {
  TuningFile one(file);
  one.add({{"kernel", std::vector<std::byte>(64)}});
  one.add({entry(1, TuningFile::kMaxBytes + 1)});
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(TuningFiles, AreIgnoredAndMadeAnewWhereTheyAreDamaged) {
  TuningFile(file).add({entry(1), entry(2)});
  const auto size = fs::file_size(file);
  const auto spoil = [&](std::uintmax_t at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put('\x55');
  };
  for (const auto at : {std::uintmax_t{13}, std::uintmax_t{20}, size - 1}) {  // version, sum, plan
    spoil(at);
    EXPECT_TRUE(TuningFile(file).load().empty());
    TuningFile(file).add({entry(1), entry(2)});
    EXPECT_EQ(TuningFile(file).load().size(), 2u);
  }
  for (const auto length : {size - 1, std::uintmax_t{31}, std::uintmax_t{0}}) {
    fs::resize_file(file, length);
    EXPECT_TRUE(TuningFile(file).load().empty());
    TuningFile(file).add({entry(1), entry(2)});
    EXPECT_EQ(TuningFile(file).load().size(), 2u);
  }
}

TEST_F(TuningFiles, AreBounded) {
  std::vector<Entry> many;
  for (int i = 0; i < static_cast<int>(TuningFile::kMost); ++i) many.push_back(entry(i));
  TuningFile(file).add(many);
  TuningFile(file).add({entry(-1)});
  const auto kept = TuningFile(file).load();
  ASSERT_EQ(kept.size(), TuningFile::kMost);
  EXPECT_EQ(kept.front(), entry(-1));
  EXPECT_EQ(kept.back(), many[many.size() - 2]);
}

TEST_F(TuningFiles, AreNotBelievedWhereOthersMayWriteThem) {
  TuningFile(file).add({entry(1)});
  ::chmod(file.c_str(), 0666);
  EXPECT_TRUE(TuningFile(file).load().empty());
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(TuningFile(file).load().empty()) << "and it does not block";
}

TEST_F(TuningFiles, LeaveNothingBesideThemAfterAKilledWriter) {
  TuningFile(file).add({entry(1)});
  std::ofstream(file.string() + ".new") << "half of it";
  TuningFile(file).add({entry(2)});
  EXPECT_EQ(TuningFile(file).load().size(), 2u);
  EXPECT_FALSE(fs::exists(file.string() + ".new"));
}

/// None is lost, whoever writes at the same time.
TEST_F(TuningFiles, TakeManyWritersAtOnce) {
  constexpr int kWriters = 6, kEach = 8;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const auto child = ::fork();
    if (child == 0) {
      TuningFile mine(file);
      for (int i = 0; i < kEach; ++i) mine.add({entry(writer * kEach + i)});
      ::_exit(0);
    }
    writers.push_back(child);
  }
  for (const auto writer : writers) ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
  EXPECT_EQ(TuningFile(file).load().size(), std::size_t{kWriters * kEach});
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& one : fs::directory_iterator(file.parent_path())) ++files;
  EXPECT_EQ(files, 2u);  // with the lock
}

}  // namespace
}  // namespace troupe::rank_process
