// The files that a process has mapped, as long as they have a name.
#include "common/ipc/mapped_files.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe::ipc {
namespace {

TEST(MappedFiles, AreThoseThatHaveANameStill) {
  const std::string prefix = "/dev/shm/troupe-mapped-";
  std::string path = prefix + "XXXXXX";
  const int fd = ::mkstemp(path.data());
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, 4096), 0);
  EXPECT_EQ(mapped_files(::getpid(), prefix), std::vector<std::string>());
  auto* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  auto* const again = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  EXPECT_EQ(mapped_files(::getpid(), prefix), std::vector<std::string>{path});
  EXPECT_EQ(mapped_files(::getpid(), "/dev/shm/another-"), std::vector<std::string>());
  ::unlink(path.c_str());
  EXPECT_EQ(mapped_files(::getpid(), prefix), std::vector<std::string>());
  ::munmap(memory, 4096);
  ::munmap(again, 4096);
  ::close(fd);
}

TEST(MappedFiles, AreNoneOfAProcessThatIsGone) {
  EXPECT_EQ(mapped_files(1 << 30, "/"), std::vector<std::string>());
}

}  // namespace
}  // namespace troupe::ipc
