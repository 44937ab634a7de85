#include "common/ipc/trusted_file.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe::ipc {
namespace {

namespace fs = std::filesystem;

class TrustedFile : public ::testing::Test {
 protected:
  TrustedFile() {
    auto name = (fs::temp_directory_path() / "troupe-trusted-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "mkdtemp");
    folder_ = name;
    std::ofstream(file()) << "contents";
    ::chmod(file().c_str(), 0644);
  }
  ~TrustedFile() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name = "file") const {
    return (folder_ / name).string();
  }
  /// Why the file is refused; empty: it is not.
  [[nodiscard]] static std::string why(const Result<UniqueFd>& opened) {
    return opened.ok() ? "" : opened.error().message;
  }
  fs::path folder_;
};

TEST_F(TrustedFile, OpensAFileOfTheUsersOwn) {
  const auto opened = open_trusted(file());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  char text[16];
  EXPECT_EQ(::read(opened->get(), text, sizeof text), 8);
  EXPECT_NE(::fcntl(opened->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(TrustedFile, SaysThatThereIsNone) {
  const auto opened = open_trusted(file("none"));
  EXPECT_EQ(opened.code(), Errc::io);
  EXPECT_EQ(opened.error().native, ENOENT);
}

TEST_F(TrustedFile, RefusesOneThatOthersMayWrite) {
  ::chmod(file().c_str(), 0664);
  EXPECT_EQ(open_trusted(file()).code(), Errc::invalid);
  EXPECT_EQ(why(open_trusted(file())), file() + " is not used: it may be written by its group");
  EXPECT_TRUE(open_trusted(file(), {.group_may_write = true}).ok());
  ::chmod(file().c_str(), 0646);
  EXPECT_EQ(why(open_trusted(file(), {.group_may_write = true})),
            file() + " is not used: it may be written by everybody");
}

TEST_F(TrustedFile, RefusesOneOfAnotherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(file().c_str(), 4321, 4321), 0);
  EXPECT_EQ(why(open_trusted(file())), file() + " is not used: it belongs to user 4321");
  EXPECT_EQ(why(create_trusted(file())), file() + " is not used: it belongs to user 4321");
}

TEST_F(TrustedFile, FollowsALinkOnlyWhereTheUserHasNamedIt) {
  fs::create_symlink(file(), file("link"));
  EXPECT_EQ(why(open_trusted(file("link"))), file("link") + " is not used: it is a symbolic link");
  EXPECT_TRUE(open_trusted(file("link"), {.follows_links = true}).ok());
  ::chmod(file().c_str(), 0666);
  EXPECT_EQ(open_trusted(file("link"), {.follows_links = true}).code(), Errc::invalid);
  EXPECT_EQ(create_trusted(file("link")).code(), Errc::invalid);
  EXPECT_EQ(fs::file_size(file()), 8u);
}

TEST_F(TrustedFile, NeverBlocksOnAFifo) {
  ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(why(open_trusted(file("fifo"))), file("fifo") + " is not used: it is no regular file");
  EXPECT_EQ(why(create_trusted(file("fifo"))),
            file("fifo") + " is not used: it is no regular file");
  EXPECT_EQ(open_trusted(folder_.string()).code(), Errc::invalid) << "a folder";
}

TEST_F(TrustedFile, WritesANewFileOrItsOwn) {
  EXPECT_TRUE(create_trusted(file("new"), 0600).ok());
  struct stat info {};
  ASSERT_EQ(::stat(file("new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(create_trusted(file()).ok());
  EXPECT_EQ(fs::file_size(file()), 0u);
}

TEST_F(TrustedFile, DoesNotWriteThroughAHardLink) {
  fs::create_hard_link(file(), file("other"));
  EXPECT_EQ(why(create_trusted(file("other"))),
            file("other") + " is not used: it has a second name (a hard link)");
  EXPECT_EQ(fs::file_size(file()), 8u);
}

}  // namespace
}  // namespace troupe::ipc
