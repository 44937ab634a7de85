#include "rank/device/kernel_builder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

/// A folder of the test's own.
class Scratch {
 public:
  Scratch() {
    auto name = (fs::temp_directory_path() / "troupe-kernels-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "mkdtemp");
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
  fs::path path;
};

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  return files;
}

wire::CompileOutcome outcome_of(std::size_t bytes, char letter = 'x') {
  wire::CompileOutcome outcome;
  outcome.image.assign(bytes, static_cast<std::byte>(letter));
  outcome.names = {"f"};
  return outcome;
}
ContentId key_of(int number) {
  return content_id(std::to_string(number));
}

TEST(KernelCache, KeepsWhatItIsGivenForOtherProcessesAsWell) {
  const Scratch scratch;
  const auto folder = scratch.path / "a" / "b";
  KernelCache one(folder);
  EXPECT_FALSE(one.find(key_of(1)));
  one.store(key_of(1), outcome_of(5000));
  KernelCache other(folder);
  const auto found = other.find(key_of(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->image, outcome_of(5000).image);
  EXPECT_EQ(found->names, std::vector<std::string>{"f"});
  EXPECT_FALSE(other.find(key_of(2)));
  KernelCache none({});
  none.store(key_of(1), outcome_of(10));
  EXPECT_FALSE(none.find(key_of(1)));
}

TEST(KernelCache, ADamagedEntryIsNone) {
  const Scratch scratch;
  KernelCache cache(scratch.path);
  for (const std::uint64_t at : {0u, 20u, 33u, 40u, 200u, 300u}) {
    cache.store(key_of(1), outcome_of(500));
    ASSERT_TRUE(cache.find(key_of(1)));
    const auto file = files_in(scratch.path).at(0);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(at)).put('?');
    bytes.close();
    EXPECT_FALSE(cache.find(key_of(1))) << at;
    EXPECT_TRUE(files_in(scratch.path).empty()) << "the damaged entry stays";
  }
  for (const std::uint64_t length : {0u, 10u, 32u, 100u}) {
    cache.store(key_of(1), outcome_of(500));
    fs::resize_file(files_in(scratch.path).at(0), length);
    EXPECT_FALSE(cache.find(key_of(1))) << length;
  }
}

TEST(KernelCache, AnEntryOfAnotherCompilerIsNone) {
  const Scratch scratch;
  const auto compiler = scratch.path / "compiler with a name";
  std::ofstream(compiler) << "1";
  auto outcome = outcome_of(10);
  outcome.compiler = wire::file_stamp(compiler.string());
  KernelCache cache(scratch.path / "cache");
  cache.store(key_of(1), outcome);
  EXPECT_TRUE(cache.find(key_of(1)));
  std::ofstream(compiler) << "12";
  EXPECT_FALSE(cache.find(key_of(1)));
  cache.store(key_of(1), outcome);
  fs::remove(compiler);
  EXPECT_FALSE(cache.find(key_of(1)));
}

TEST(KernelCache, IsBoundedAndKeepsWhatWasUsedLast) {
  const Scratch scratch;
  KernelCache cache(scratch.path, 10'000);
  for (int i = 0; i < 8; ++i) {
    cache.store(key_of(i), outcome_of(1000));
    struct timespec old[2] = {{1000 + i, 0}, {1000 + i, 0}};  // so that their order is certain
    ASSERT_EQ(
        ::utimensat(AT_FDCWD, (scratch.path / (key_of(i).text() + ".kernel")).c_str(), old, 0), 0);
  }
  EXPECT_TRUE(cache.find(key_of(0)));  // used now
  for (int i = 8; i < 12; ++i) cache.store(key_of(i), outcome_of(1000));
  std::uint64_t bytes = 0;
  for (const auto& file : files_in(scratch.path)) bytes += fs::file_size(file);
  EXPECT_LE(bytes, 10'000u);
  EXPECT_TRUE(cache.find(key_of(0)));
  EXPECT_FALSE(cache.find(key_of(1)));
  EXPECT_TRUE(cache.find(key_of(11)));
  cache.store(key_of(20), outcome_of(9000));
  EXPECT_FALSE(cache.find(key_of(20))) << "one entry takes nearly all";
}

TEST(KernelCache, AFolderThatCannotBeWrittenCostsNothingElse) {
  const Scratch scratch;
  std::ofstream(scratch.path / "file") << "in the way";
  KernelCache cache(scratch.path / "file" / "cache");
  cache.store(key_of(1), outcome_of(10));
  EXPECT_FALSE(cache.find(key_of(1)));
  if (::geteuid() == 0) return;  // root may write anywhere
  KernelCache read_only(scratch.path / "cache");
  read_only.store(key_of(1), outcome_of(10));
  ::chmod((scratch.path / "cache").c_str(), 0500);
  read_only.store(key_of(2), outcome_of(10));
  EXPECT_TRUE(read_only.find(key_of(1)));
  EXPECT_FALSE(read_only.find(key_of(2)));
  ::chmod((scratch.path / "cache").c_str(), 0700);
}

/// A process of the test: stores and looks up, and ends with 0 if it never saw a wrong entry.
void use_cache(const fs::path& folder, int user) {
  KernelCache cache(folder, 200'000);
  for (int i = 0; i < 200; ++i) {
    const int key = (i * 7 + user) % 10;
    const auto outcome = outcome_of(10'000, static_cast<char>('a' + key));
    cache.store(key_of(key), outcome);
    if (const auto found = cache.find(key_of(key)); found && found->image != outcome.image)
      ::_exit(1);
  }
  ::_exit(0);
}

TEST(KernelCache, ManyProcessesUseOneFolderAtOnce) {
  const Scratch scratch;
  std::vector<pid_t> users;
  for (int user = 0; user < 4; ++user) {
    users.push_back(::fork());
    if (users.back() == 0) use_cache(scratch.path, user);
    ASSERT_GT(users.back(), 0);
  }
  for (const auto user : users) {
    int status = -1;
    ASSERT_EQ(::waitpid(user, &status, 0), user);
    EXPECT_EQ(status, 0);
  }
  std::uint64_t bytes = 0;
  for (const auto& file : files_in(scratch.path)) {
    EXPECT_EQ(file.extension(), ".kernel") << "an unfinished entry is left";
    bytes += fs::file_size(file);
  }
  EXPECT_GT(bytes, 0u);
  EXPECT_LE(bytes, 200'000u);
}

TEST(IncludedText, IsAllThatASourceMayReach) {
  const Scratch scratch;
  fs::create_directories(scratch.path / "deep");
  std::ofstream(scratch.path / "a.hpp") << "#include <deep/b.hpp>\n";
  std::ofstream(scratch.path / "deep" / "b.hpp") << "#include \"c.hpp\"\nint b;";
  std::ofstream(scratch.path / "deep" / "c.hpp") << "int c;";
  wire::CompileJob job;
  job.source = "  #  include \"a.hpp\"\n#include <cstdint>\n";
  job.include_paths = {scratch.path.string()};
  const auto before = included_text(job);
  ASSERT_TRUE(before);
  EXPECT_NE(before->find("int c;"), std::string::npos);
  std::ofstream(scratch.path / "deep" / "c.hpp") << "int d;";
  EXPECT_NE(*included_text(job), *before);
  job.source = "#include NAME\n";
  EXPECT_FALSE(included_text(job));
}

wire::CompileJob job_of(std::string engine, std::string source, std::vector<std::string> names) {
  wire::CompileJob job;
  job.engine = std::move(engine);
  job.compute_capability = 90;
  job.file = "test.cu";
  job.source = std::move(source);
  job.names = std::move(names);
  job.standard = "c++17";
  return job;
}

/// Of both compilers; a machine without NVRTC has one.
class KernelBuilding : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    KernelBuilder builder({.tool = TROUPE_TEST_COMPILE});
    const auto probe =
        builder.build(job_of(GetParam(), "extern \"C\" __global__ void f() {}", {"f"}));
    if (probe.code() == Errc::unsupported) GTEST_SKIP() << "no compiler: " << probe.error().message;
  }
};

TEST_P(KernelBuilding, GivesAnImageAndTheNamesInIt) {
  KernelBuilder builder({.tool = TROUPE_TEST_COMPILE});
  const auto built =
      builder.build(job_of(GetParam(),
                           "template <class T> __global__ void scale(T* x) { x[0] *= 2; }\n"
                           "extern \"C\" __global__ void plain(int* x) { x[0] = 1; }",
                           {"scale<float>", "plain"}));
  ASSERT_TRUE(built.ok()) << built.error().message;
  ASSERT_EQ(built->names.size(), 2u);
  EXPECT_EQ(built->names[0],
            std::string(GetParam()) == "cuda" ? "_Z5scaleIfEvPT_" : "scale<float>");
  EXPECT_EQ(built->names[1], "plain");
  ASSERT_GT(built->image.size(), 64u);
  EXPECT_EQ(static_cast<char>(built->image[1]), 'E') << "neither a cubin nor a shared object";
}

TEST_P(KernelBuilding, TellsWhatTheCompilerSays) {
  KernelBuilder builder({.tool = TROUPE_TEST_COMPILE});
  const auto built =
      builder.build(job_of(GetParam(), "\n\n__global__ void f(int* x) { x[0] = nowhere; }", {"f"}));
  ASSERT_EQ(built.code(), Errc::invalid);
  EXPECT_NE(built.error().message.find("nowhere"), std::string::npos) << built.error().message;
  EXPECT_NE(built.error().message.find("test.cu"), std::string::npos) << built.error().message;
  EXPECT_NE(built.error().message.find("3"), std::string::npos) << "no line";
}

TEST_P(KernelBuilding, WhatWasCompiledIsNotCompiledAgain) {
  const Scratch scratch;
  const KernelBuilder::Options options{.tool = TROUPE_TEST_COMPILE, .cache = scratch.path};
  const auto job = job_of(GetParam(), "extern \"C\" __global__ void f() {}", {"f"});
  KernelBuilder first(options);
  const auto image = first.build(job)->image;
  EXPECT_EQ(first.build(job)->image, image);
  EXPECT_EQ(first.compiled(), 1u);
  KernelBuilder second(options);
  EXPECT_EQ(second.build(job)->image, image);
  EXPECT_EQ(second.compiled(), 0u);
  auto other = job;
  other.options = {"-DX=1"};
  EXPECT_TRUE(second.build(other).ok());
  EXPECT_EQ(second.compiled(), 1u);
  for (const auto& file : files_in(scratch.path)) fs::resize_file(file, 100);
  KernelBuilder third(options);
  EXPECT_TRUE(third.build(job).ok());
  EXPECT_EQ(third.compiled(), 1u) << "the damaged entry was taken";
}

TEST_P(KernelBuilding, EndsWhenItIsToldTo) {
  KernelBuilder builder({.tool = TROUPE_TEST_COMPILE});
  std::atomic<int> ended{0};
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(builder
                    .start([&] {
                      (void)builder.build(job_of(GetParam(), "__global__ void f() {}", {"f"}));
                      ++ended;
                    })
                    .ok());
  }
  builder.stop();
  EXPECT_LE(ended.load(), 8);
  EXPECT_EQ(builder.start([] {}).code(), Errc::stopped);
}

INSTANTIATE_TEST_SUITE_P(Engines, KernelBuilding, ::testing::Values("cuda", "cpu"),
                         [](const auto& one) { return std::string(one.param); });

class KernelBuildingForCuda : public KernelBuilding {};

TEST_P(KernelBuildingForCuda, LinksWithOptimisationsWhereAskedTo) {
  KernelBuilder builder({.tool = TROUPE_TEST_COMPILE});
  auto job =
      job_of("cuda", "template <class T> __global__ void g(T* x) { x[0] += 1; }", {"g<int>"});
  job.link = true;
  const auto built = builder.build(job);
  ASSERT_TRUE(built.ok()) << built.error().message;
  EXPECT_EQ(built->names[0], "_Z1gIiEvPT_");
  const std::string image(reinterpret_cast<const char*>(built->image.data()), built->image.size());
  EXPECT_NE(image.find("_Z1gIiEvPT_"), std::string::npos);
}

TEST_P(KernelBuildingForCuda, FindsTheToolkitsHeadersAndMakesPtxForADeviceOfTheFuture) {
  KernelBuilder builder({.tool = TROUPE_TEST_COMPILE});
  auto job = job_of("cuda",
                    "#include <cuda_fp16.h>\n#include <cub/block/block_reduce.cuh>\n"
                    "extern \"C\" __global__ void f(__half* x) { x[0] = __float2half(1.0f); }",
                    {"f"});
  EXPECT_TRUE(builder.build(job).ok()) << builder.build(job).error().message;
  job.compute_capability = 990;
  const auto built = builder.build(job);
  ASSERT_TRUE(built.ok()) << built.error().message;
  const std::string image(reinterpret_cast<const char*>(built->image.data()), built->image.size());
  EXPECT_NE(image.find(".visible .entry f"), std::string::npos) << image.substr(0, 400);
}

INSTANTIATE_TEST_SUITE_P(Engines, KernelBuildingForCuda, ::testing::Values("cuda"),
                         [](const auto& one) { return std::string(one.param); });

TEST(KernelBuilder, ACompilerThatIsNotThereIsUnsupported) {
  KernelBuilder builder({.tool = TROUPE_TEST_COMPILE, .host_compiler = "no-such-compiler"});
  const auto built = builder.build(job_of("cpu", "__global__ void f() {}", {"f"}));
  EXPECT_EQ(built.code(), Errc::unsupported);
  EXPECT_NE(built.error().message.find("no-such-compiler"), std::string::npos);
}

TEST(KernelBuilder, ACompilerThatDiesCostsItsJob) {
  KernelBuilder builder({.tool = "/bin/false"});
  const auto built = builder.build(job_of("cpu", "__global__ void f() {}", {"f"}));
  EXPECT_EQ(built.code(), Errc::library);
  EXPECT_EQ(KernelBuilder({.tool = "/no/such/tool"}).build(job_of("cpu", "", {"f"})).code(),
            Errc::io);
}

TEST(KernelBuilder, WarpsAreBeyondTheSubsetOfTheCpuEngine) {
  KernelBuilder builder({.tool = TROUPE_TEST_COMPILE});
  const auto built = builder.build(
      job_of("cpu", "__global__ void f(int* x) { x[0] = __shfl_down_sync(~0u, x[0], 1); }", {"f"}));
  EXPECT_EQ(built.code(), Errc::invalid);
  EXPECT_NE(built.error().message.find("the cpu engine has no warps"), std::string::npos)
      << built.error().message;
}

}  // namespace
}  // namespace troupe::rank_process
