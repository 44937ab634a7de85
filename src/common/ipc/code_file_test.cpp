// Files of code that a program names: they are loaded as they were first, or not at all.
#include "common/ipc/code_file.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe::ipc {
namespace {

namespace fs = std::filesystem;

/// A folder with copies of a shared object of this system's.
class CodeFiles : public ::testing::Test {
 protected:
  CodeFiles() {
    char name[] = "/tmp/troupe-code-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    void* const system = ::dlopen("libz.so.1", RTLD_NOW);
    link_map* map = nullptr;
    if (system == nullptr || ::dlinfo(system, RTLD_DI_LINKMAP, &map) != 0) std::abort();
    fs::copy_file(map->l_name, path());
  }
  ~CodeFiles() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name = "libone.so") const {
    return folder_ / name;
  }
  /// As a linker does: another file takes the name.
  void build_anew() const {
    fs::copy_file(path(), path("new"));
    std::ofstream(path("new"), std::ios::app) << "built anew";
    fs::rename(path("new"), path());
  }
  fs::path folder_;
};

TEST_F(CodeFiles, AreKeptAsTheyWereWhenTheyWereFirstNamed) {
  const auto first = keep_code(path()).take();
  EXPECT_EQ(first.path, path());
  EXPECT_TRUE(load_code(first, RTLD_NOW).ok());
  EXPECT_TRUE(read_code(first).ok());
  build_anew();
  EXPECT_EQ(keep_code(path()).take(), first);
  EXPECT_NE(look_at_code(path()).take(), first);
  for (const auto& error : {load_code(first, RTLD_NOW).error(), read_code(first).error()}) {
    EXPECT_EQ(error.code, Errc::invalid);
    EXPECT_EQ(error.message.find(path() + " has changed since this job began to use it"), 0u)
        << error.message;
  }
}

TEST_F(CodeFiles, AreToldOfByTheirNamesIfTheyCannotBeUsed) {
  EXPECT_EQ(look_at_code(path("none.so")).code(), Errc::unsupported);
  EXPECT_EQ(look_at_code("none.so").code(), Errc::unsupported);
  std::ofstream(path("text.so"))
      << "no shared object, and long enough for the head of one, or so it is";
  fs::copy_file(path(), path("short.so"));
  fs::resize_file(path("short.so"), fs::file_size(path()) / 2);
  fs::copy_file(path(), path("open.so"));
  ASSERT_EQ(::chmod(path("open.so").c_str(), 0777), 0);
  ASSERT_EQ(::mkfifo(path("fifo.so").c_str(), 0600), 0);
  for (const auto& [name, why] : {std::pair{"text.so", "it is no shared object"},
                                  {"short.so", "it is cut short, at "},
                                  {"open.so", "may be written by everybody"},
                                  {"fifo.so", "is no regular file"}}) {
    const auto seen = look_at_code(path(name));
    ASSERT_EQ(seen.code(), Errc::invalid) << name;
    EXPECT_EQ(seen.error().message.find(path(name)), 0u) << seen.error().message;
    EXPECT_NE(seen.error().message.find(why), std::string::npos) << seen.error().message;
  }
  EXPECT_EQ(check_whole(path("short.so")).code(), Errc::invalid);
  EXPECT_TRUE(check_whole(path()).ok());
}

TEST_F(CodeFiles, LieWhereTheirNamesLedToFirst) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_EQ(fs::path(code_path("./libone.so")).lexically_normal(), path());
  EXPECT_EQ(code_path("libone.so"), "libone.so") << "the loader does not look there either";
  ::setenv("LD_LIBRARY_PATH", ("/nowhere:" + folder_.string()).c_str(), 1);
  EXPECT_EQ(code_path("libone.so"), path());
  ::unsetenv("LD_LIBRARY_PATH");
  fs::current_path(before);
  EXPECT_EQ(code_path("/a/b.so"), "/a/b.so");
}

TEST_F(CodeFiles, AreNotMissingWhereTheProcessHasNoMoreDescriptors) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = ::dup(0);
  ASSERT_GE(next, 0);
  ::close(next);
  const auto library = path();  // sanitizers want a descriptor to look at an object
  const rlimit none{static_cast<rlim_t>(next), limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW);
  const auto error = load_error("blas");
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(loaded, nullptr);
  EXPECT_EQ(error.code, Errc::io);
  EXPECT_NE(error.message.find("Too many open files"), std::string::npos) << error.message;
  EXPECT_EQ(::dlopen("/no/such/lib.so", RTLD_NOW), nullptr);
  EXPECT_EQ(load_error({}).code, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::ipc
