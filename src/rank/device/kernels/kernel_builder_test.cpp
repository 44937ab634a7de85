#include "rank/device/kernels/kernel_builder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

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
std::vector<std::byte> key_of(int number) {
  const auto text = std::to_string(number);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
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
    ASSERT_EQ(::utimensat(AT_FDCWD, cache.path_of(key_of(i)).c_str(), old, 0), 0);
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

TEST(KernelCache, AnEntryIsForItsKeyAlone) {
  const Scratch scratch;
  KernelCache cache(scratch.path);
  cache.store(key_of(1), outcome_of(500));
  fs::rename(cache.path_of(key_of(1)), cache.path_of(key_of(2)));
  EXPECT_FALSE(cache.find(key_of(2))) << "the code of another kernel";
}

TEST(KernelCache, AnEntryOfChangedFilesIsNone) {
  const Scratch scratch;
  const auto there = (scratch.path / "there.h").string(),
             not_there = (scratch.path / "absent.h").string();
  std::ofstream(there) << "1";
  auto outcome = outcome_of(10);
  outcome.inputs = {wire::look_at(there), wire::look_at(not_there)};
  KernelCache cache(scratch.path / "cache");
  const auto taken = [&] {
    cache.store(key_of(1), outcome);
    return cache.find(key_of(1)).has_value();
  };
  EXPECT_TRUE(taken());
  std::ofstream(there) << "2";
  EXPECT_FALSE(taken()) << "a header has changed";
  std::ofstream(there) << "1";
  EXPECT_TRUE(taken());
  std::ofstream(scratch.path / "absent.h");
  EXPECT_FALSE(taken()) << "a header is there now";
  fs::remove(scratch.path / "absent.h");
  fs::remove(there);
  EXPECT_FALSE(taken()) << "a header is gone";
}

/// An entry is run as code.
TEST(KernelCache, AnEntryThatOthersMayHaveWrittenIsNotTaken) {
  const Scratch scratch;
  KernelCache cache(scratch.path / "cache");
  const auto entry = cache.path_of(key_of(1));
  cache.store(key_of(1), outcome_of(500));
  ASSERT_TRUE(cache.find(key_of(1)));
  ::chmod(entry.c_str(), 0622);
  EXPECT_FALSE(cache.find(key_of(1))) << "anybody may write it";
  EXPECT_TRUE(fs::exists(entry)) << "what is not trusted is left alone";
  cache.store(key_of(1), outcome_of(500));
  EXPECT_TRUE(cache.find(key_of(1))) << "it is replaced";
  if (::geteuid() == 0) {  // only root can give files away
    ASSERT_EQ(::chown(entry.c_str(), 4321, 4321), 0);
    EXPECT_FALSE(cache.find(key_of(1))) << "it is somebody else's";
    cache.store(key_of(1), outcome_of(500));
  }
  fs::rename(entry, scratch.path / "elsewhere");
  fs::create_symlink(scratch.path / "elsewhere", entry);
  EXPECT_FALSE(cache.find(key_of(1))) << "a symbolic link";
  fs::remove(entry);
  ASSERT_EQ(::mkfifo(entry.c_str(), 0600), 0);
  EXPECT_FALSE(cache.find(key_of(1))) << "and it does not block";
  cache.store(key_of(1), outcome_of(500));
  EXPECT_TRUE(cache.find(key_of(1)));
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

/// Ways to name a header, each with one of its own: V0 of the first, and so on.
struct Way {
  const char* line;       ///< in the source; FOLDER is the headers' folder
  const char* option;     ///< FOLDER likewise
  const char* file;       ///< in the folder
  bool only_cpu = false;  ///< NVRTC does not know it
};
constexpr Way kWays[] = {
    {"#include \"path.h\"", "", "path/path.h"},
    {"#include <angle.h>", "", "path/angle.h"},
    {"/* a comment */ #include \"comment.h\"", "", "path/comment.h"},
    {"#\\\ninclude \"spliced.h\"", "", "path/spliced.h"},
    {"%:include \"digraph.h\"", "", "path/digraph.h"},
    {"#define NAME \"macro.h\"\n#include NAME", "", "path/macro.h"},
    {"#include \"FOLDER/absolute.h\"", "", "absolute.h"},
    {"#include \"option.h\"", "-IFOLDER/option", "option/option.h"},
    {"", "-include FOLDER/before.h", "before.h"},
    {"#include <nested/first.h>", "", "path/second.h"},  // nested/first.h is fixed: see below
    {"#import \"import.h\"", "", "path/import.h", true},
    {"#include \"environment.h\"", "", "environment/environment.h", true},
};

/// A source that has a header by each way, and its builders.
class KernelHeaders : public KernelBuilding {
 protected:
  void SetUp() override {
    KernelBuilding::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(scratch_.path / "path/nested");
    fs::create_directories(scratch_.path / "early");
    fs::create_directories(scratch_.path / "option");
    fs::create_directories(scratch_.path / "environment");
    // <second.h> is the one of the path, not the one beside.
    std::ofstream(scratch_.path / "path/nested/first.h") << "#include <second.h>\n";
    std::ofstream(scratch_.path / "path/nested/second.h") << "#error the wrong one\n";
    ::setenv("CPATH", (scratch_.path / "environment").c_str(), 1);
    std::string text, sum = "0";
    for (std::size_t i = 0; i < std::size(kWays); ++i) {
      if (!concerns(kWays[i])) continue;
      write(i, 1);
      text += in_folder(kWays[i].line) + "\n";
      sum += " + V" + std::to_string(i);
      std::istringstream options(in_folder(kWays[i].option));
      for (std::string option; options >> option;) job_.options.push_back(option);
    }
    text += "#if __has_include(\"extra.h\")\n#define EXTRA 1000\n#else\n#define EXTRA 0\n#endif\n";
    text += "extern \"C\" __global__ void f(int* x) { x[0] = EXTRA + " + sum + "; }\n";
    auto whole = job_of(GetParam(), text, {"f"});
    whole.options = job_.options;
    whole.include_paths = {(scratch_.path / "early").string(), (scratch_.path / "path").string()};
    job_ = whole;
  }
  ~KernelHeaders() override { ::unsetenv("CPATH"); }
  [[nodiscard]] static bool concerns(const Way& way) {
    return !way.only_cpu || std::string(GetParam()) == "cpu";
  }
  [[nodiscard]] std::string in_folder(std::string text) const {
    const std::string name = "FOLDER";
    if (const auto at = text.find(name); at != text.npos)
      text.replace(at, name.size(), scratch_.path.string());
    return text;
  }
  void write(std::size_t way, int value) const {
    std::ofstream(scratch_.path / kWays[way].file) << "#define V" << way << " " << value << "\n";
  }
  /// The image, and whether a compiler has made it now.
  std::pair<std::vector<std::byte>, bool> build() {
    KernelBuilder builder({.tool = TROUPE_TEST_COMPILE, .cache = scratch_.path / "cache"});
    const auto built = builder.build(job_);
    EXPECT_TRUE(built.ok()) << built.error().message;
    return {built.ok() ? built->image : std::vector<std::byte>(), builder.compiled() != 0};
  }
  const Scratch scratch_;
  wire::CompileJob job_;
};

TEST_P(KernelHeaders, AnEditedOneIsSeenHoweverItIsNamed) {
  const auto first = build();
  ASSERT_TRUE(first.second);
  EXPECT_FALSE(build().second) << "the same again";
  for (std::size_t i = 0; i < std::size(kWays); ++i) {
    if (!concerns(kWays[i])) continue;
    write(i, 100);
    const auto edited = build();
    EXPECT_TRUE(edited.second) << "stale: " << kWays[i].line << " " << kWays[i].option;
    EXPECT_NE(edited.first, first.first) << kWays[i].file;
    write(i, 1);
  }
  EXPECT_EQ(build().first, first.first);
}

TEST_P(KernelHeaders, OneThatWasNotThereIsSeen) {
  const auto first = build();
  std::ofstream(scratch_.path / "path/extra.h");
  const auto extra = build();
  EXPECT_TRUE(extra.second) << "__has_include";
  EXPECT_NE(extra.first, first.first);
  fs::remove(scratch_.path / "path/extra.h");
  std::ofstream(scratch_.path / "early/path.h") << "#define V0 77\n";
  const auto early = build();
  EXPECT_TRUE(early.second) << "one that is found earlier";
  EXPECT_NE(early.first, first.first);
}

INSTANTIATE_TEST_SUITE_P(Engines, KernelHeaders, ::testing::Values("cuda", "cpu"),
                         [](const auto& one) { return std::string(one.param); });

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

/// A compiler that is a script around the machine's own.
class ScriptedCompiler : public ::testing::Test {
 protected:
  [[nodiscard]] KernelBuilder::Options options(const std::string& script) const {
    const auto program = scratch.path / "compiler";
    std::ofstream(program) << "#!/bin/sh\nfolder=" << scratch.path.string() << "\n"
                           << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
    return {.tool = TROUPE_TEST_COMPILE,
            .host_compiler = program.string(),
            .cache = scratch.path / "cache"};
  }
  [[nodiscard]] wire::CompileJob job() const {
    auto job = job_of("cpu",
                      "#include \"value.h\"\n"
                      "extern \"C\" __global__ void f(int* x) { x[0] = VALUE; }",
                      {"f"});
    job.include_paths = {scratch.path.string()};
    return job;
  }
  /// The process that a file names; waits for the file.
  [[nodiscard]] pid_t process(const std::string& file) const {
    pid_t pid = 0;
    while (!(std::ifstream(scratch.path / file) >> pid)) ::usleep(1000);
    return pid;
  }
  static bool lives(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    return std::getline(stat, line) && line.find(") Z") == line.npos;
  }
  static bool ends(pid_t pid) {
    for (int i = 0; i < 20'000 && lives(pid); ++i) ::usleep(1000);
    return !lives(pid);
  }
  const Scratch scratch;
};

TEST_F(ScriptedCompiler, AHeaderThatIsEditedMeanwhileIsNotTakenForTheOld) {
  std::ofstream(scratch.path / "value.h") << "#define VALUE 1\n";
  KernelBuilder builder(
      options("case \"$*\" in *-o*image.so*) echo '#define VALUE 2' > $folder/value.h;; esac\nexec "
              "c++ \"$@\""));
  const auto old = builder.build(job());
  ASSERT_TRUE(old.ok()) << old.error().message;
  const auto now = builder.build(job());
  ASSERT_TRUE(now.ok()) << now.error().message;
  EXPECT_NE(now->image, old->image);
  std::ofstream(scratch.path / "value.h") << "#define VALUE 1\n";
  EXPECT_EQ(builder.build(job())->image, old->image);
  EXPECT_EQ(builder.compiled(), 2u);
}

TEST_F(ScriptedCompiler, AnotherMachineIsAnotherKernel) {
  std::ofstream(scratch.path / "value.h") << "#define VALUE 1\n";
  std::ofstream(scratch.path / "machine") << "-march=one\n";
  KernelBuilder builder(
      options("case \"$*\" in *-###*) cat $folder/machine;; esac\nexec c++ \"$@\""));
  auto native = job();
  native.options = {"-march=native"};
  ASSERT_TRUE(builder.build(native).ok());
  ASSERT_TRUE(builder.build(native).ok());
  EXPECT_EQ(builder.compiled(), 1u);
  std::ofstream(scratch.path / "machine") << "-march=other\n";
  ASSERT_TRUE(builder.build(native).ok());
  EXPECT_EQ(builder.compiled(), 2u) << "-march=native means another machine";
}

TEST_F(ScriptedCompiler, IsAskedEachTimeWhereAnOptionMayNameAFile) {
  std::ofstream(scratch.path / "value.h") << "#define VALUE 1\n";
  KernelBuilder builder(options("exec c++ \"$@\""));
  auto linked = job();
  linked.options = {"-Wl,--as-needed"};
  ASSERT_TRUE(builder.build(linked).ok());
  ASSERT_TRUE(builder.build(linked).ok());
  EXPECT_EQ(builder.compiled(), 2u);
}

/// It is at work, has a child, and both ignore SIGTERM.
constexpr auto kStubborn =
    "trap '' TERM\n"
    "sh -c 'echo $$ > '$folder'/child; exec sleep 1000' &\n"
    "echo $$ > $folder/self\nwait\n";

TEST_F(ScriptedCompiler, EndsWithTheRuntimeAndItsOwnChildrenToo) {
  KernelBuilder builder(options(kStubborn));
  ASSERT_TRUE(builder.start([&] { (void)builder.build(job()); }).ok());
  const auto self = process("self"), child = process("child");
  EXPECT_TRUE(lives(self) && lives(child));
  builder.stop();
  EXPECT_TRUE(ends(self)) << "the compiler";
  EXPECT_TRUE(ends(child)) << "what the compiler has started";
}

TEST_F(ScriptedCompiler, EndsWithAKilledRankAndLeavesNoFolder) {
  const auto folder = scratch.path / "tmp";
  fs::create_directories(folder);
  const auto rank = ::fork();
  if (rank == 0) {
    ::setenv("TMPDIR", folder.c_str(), 1);
    KernelBuilder builder(options(kStubborn));
    (void)builder.build(job());
    ::_exit(0);
  }
  const auto self = process("self"), child = process("child");
  EXPECT_EQ(files_in(folder).size(), 1u);
  ::kill(rank, SIGKILL);
  ASSERT_EQ(::waitpid(rank, nullptr, 0), rank);
  EXPECT_TRUE(ends(self)) << "the compiler";
  EXPECT_TRUE(ends(child)) << "what the compiler has started";
  EXPECT_TRUE(files_in(folder).empty()) << "a temporary folder stays";
}

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
