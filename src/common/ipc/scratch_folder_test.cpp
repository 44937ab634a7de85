#include "common/ipc/scratch_folder.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe::ipc {
namespace {

namespace fs = std::filesystem;

/// Has temporary folders made in one of the test's own.
class ScratchFolders : public ::testing::Test {
 protected:
  ScratchFolders() {
    auto name = (fs::temp_directory_path() / "troupe-test-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "mkdtemp");
    parent_ = name;
    if (const char* const set = std::getenv("TMPDIR"); set != nullptr) before_ = set;
    ::setenv("TMPDIR", name.c_str(), 1);
  }
  ~ScratchFolders() override {
    if (before_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(parent_);
  }
  [[nodiscard]] std::ptrdiff_t count() const {
    return std::distance(fs::directory_iterator(parent_), fs::directory_iterator());
  }
  /// A process that is killed while it has a folder with a file in it.
  static void lose_one() {
    const auto child = ::fork();
    if (child == 0) {
      const auto lost = ScratchFolder::make("some");
      std::ofstream(fs::path(lost->path()) / "file") << "left";
      ::raise(SIGKILL);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }
  fs::path parent_;
  std::string before_;
};

TEST_F(ScratchFolders, GoWithTheirOwner) {
  {
    auto one = ScratchFolder::make("some");
    ASSERT_TRUE(one.ok()) << one.error().message;
    fs::create_directories(fs::path(one->path()) / "a" / "b");
    const auto other = ScratchFolder::make("some");
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(count(), 2) << "one of a living process was removed";
    auto moved = std::move(*one);
    EXPECT_TRUE(fs::is_directory(moved.path()));
  }
  EXPECT_EQ(count(), 0);
}

TEST_F(ScratchFolders, OfAKilledProcessAreRemovedByTheNext) {
  lose_one();
  EXPECT_EQ(count(), 1);
  {
    const auto next = ScratchFolder::make("other");
    EXPECT_EQ(count(), 2) << "of another kind";
  }
  const auto next = ScratchFolder::make("some");
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(count(), 1) << "the lost one is still there";
  EXPECT_TRUE(fs::is_directory(next->path()));
}

}  // namespace
}  // namespace troupe::ipc
