#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <troupe/lib/file.hpp>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

/// A folder that goes with the test.
class Files : public ::testing::Test {
 protected:
  Files() {
    std::string name = fs::temp_directory_path() / "troupe-files-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Files() override { fs::remove_all(folder_); }

  [[nodiscard]] fs::path file(const std::string& name) const { return folder_ / name; }
  static std::vector<std::uint8_t> read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static void write(const fs::path& path, const std::vector<std::uint8_t>& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  static std::uint32_t crc(std::span<const std::uint8_t> bytes) {
    return static_cast<std::uint32_t>(::crc32_z(0, bytes.data(), bytes.size()));
  }

  fs::path folder_;
};

/// Lengths around a block of the disk, a word, and the pieces of a transfer through host memory.
constexpr std::int64_t kLengths[] = {1, 3, 4, 511, 4095, 12'289, 1'000'003, (16 << 20) + 4097};
constexpr std::uint64_t kOffsets[] = {0, 1, 512, 4096, 10'001};

TEST_F(Files, HoldWhatIsWrittenAndItsChecksum) {
  for (const auto length : kLengths) {
    const auto bytes = random_bytes(static_cast<std::size_t>(length), 7);
    const auto buffer = put(bytes);
    for (const auto offset : kOffsets) {
      SCOPED_TRACE(std::to_string(length) + " from " + std::to_string(offset));
      const auto path = file("out");
      fs::remove(path);
      const auto done = troupe::file::on(device()).write(buffer, path, {.offset = offset}).get();
      EXPECT_EQ(done.bytes, bytes.size());
      EXPECT_EQ(done.error, 0) << done.words();
      EXPECT_EQ(done.crc32, crc(bytes));
      auto expected = std::vector<std::uint8_t>(offset);
      expected.insert(expected.end(), bytes.begin(), bytes.end());
      EXPECT_TRUE(read(path) == expected);
      const bool direct = done.way == troupe::file::Way::direct;
      EXPECT_TRUE(direct || on_cuda());
      EXPECT_EQ(done.words().empty(), direct) << done.words();
    }
  }
}

TEST_F(Files, KeepWhatLiesBesideTheRange) {
  const auto bytes = random_bytes(20'000, 8);
  auto expected = random_bytes(50'000, 9);
  write(file("out"), expected);
  troupe::file::on(device()).write(put(bytes), file("out"), {.offset = 5'000}).get();
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 5'000);
  EXPECT_TRUE(read(file("out")) == expected);
}

TEST_F(Files, AreReadToWhereTheyShould) {
  const auto all = random_bytes((17 << 20) + 20'000, 10);
  write(file("in"), all);
  for (const auto length : kLengths) {
    for (const auto offset : kOffsets) {
      SCOPED_TRACE(std::to_string(length) + " from " + std::to_string(offset));
      const auto buffer = put(std::vector<std::uint8_t>(static_cast<std::size_t>(length) + 2, 1));
      const auto done = troupe::file::on(device())
                            .read(file("in"), buffer.slice(1, length), {.offset = offset})
                            .get();
      const auto* const from = all.data() + offset;
      const std::vector<std::uint8_t> expected(from, from + length);
      EXPECT_EQ(done.bytes, expected.size());
      EXPECT_EQ(done.crc32, crc(expected));
      const auto values = device().download(buffer);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), values.begin() + 1));
      EXPECT_EQ(values.front(), 1);
      EXPECT_EQ(values.back(), 1);
    }
  }
}

TEST_F(Files, AreWrittenAndReadInTheOrderOfTheProgram) {
  const auto x = device().alloc<float>(100'000), y = device().alloc<float>(100'000);
  for (int i = 1; i <= 20; ++i) {
    device().fill(x, static_cast<float>(i));
    (void)troupe::file::on(device()).write(x, file("x"));
    device().fill(x, -1.0f);
    (void)troupe::file::on(device()).read(file("x"), y);
    const auto values = device().download(y);
    ASSERT_EQ(std::count(values.begin(), values.end(), static_cast<float>(i)), 100'000) << i;
  }
}

/// The first file operation waits for slow kernels. The device host may take it out of the command
/// ring until then, and must not let the next operation on the same file overtake it.
TEST_F(Files, KeepTheirOrderBehindWhatTakesLong) {
  constexpr std::int64_t kSide = 300, kLength = kSide * kSide;
  const auto files = troupe::file::on(device());
  const auto ones = device().alloc<float>(kLength), old = device().alloc<float>(kLength),
             result = device().alloc<float>(kLength), seen = device().alloc<float>(kLength);
  device().fill(ones, 1.0f), device().fill(old, 7.0f);
  const auto compute = [&](const GpuRef<float>& to) {
    for (int i = 0; i < 3; ++i)
      device().blas().gemm(ones, ones, to, {.m = kSide, .n = kSide, .k = kSide}, 1.0f, 0.0f);
  };
  const auto all_are = [&](const GpuRef<float>& x, float value) {
    const auto values = device().download(x);
    return std::count(values.begin(), values.end(), value) == kLength;
  };
  for (int i = 0; i < 8; ++i) {
    files.write(old, file("x")).get();
    compute(result);
    (void)files.write(result, file("x"));
    (void)files.read(file("x"), seen);
    ASSERT_TRUE(all_are(seen, kSide)) << "a read behind a write";

    compute(result);
    (void)files.write(result, file("x"));
    (void)files.write(old, file("x"));
    (void)files.read(file("x"), seen);
    ASSERT_TRUE(all_are(seen, 7)) << "a write behind a write";

    const auto fresh = device().alloc<float>(kLength);
    compute(fresh);
    (void)files.read(file("x"), fresh);
    (void)files.write(ones, file("x"));
    ASSERT_TRUE(all_are(fresh, 7)) << "a write behind a read";
  }
}

/// All that an operation names outside of memory, of two operations.
bool meet(const troupe::file::Touched& one, const troupe::file::Touched& other) {
  for (const auto* a : {&one.inode, &one.place}) {
    for (const auto* b : {&other.inode, &other.place})
      if (a->present() && b->present() && detail::overlap(*a, *b)) return true;
  }
  return false;
}

TEST_F(Files, AreTheSameUnderAllTheirNames) {
  using troupe::file::touched_by;
  const auto folder = folder_ / "folder";
  fs::create_directory(folder);
  const auto before = touched_by(folder / "new"), other = touched_by(folder / "other");
  EXPECT_FALSE(before.inode.present());
  EXPECT_FALSE(meet(before, other));
  fs::create_directory_symlink(folder, file("short"));
  fs::create_symlink("folder/new", file("link"));  // to a file that is not there yet
  EXPECT_TRUE(meet(before, touched_by(file("short") / "new")));
  EXPECT_TRUE(meet(before, touched_by(file("link"))));
  EXPECT_TRUE(meet(before, touched_by(folder / ".." / "folder" / "new")));
  write(folder / "new", {1, 2, 3});
  write(folder / "other", {1, 2, 3});
  const auto after = touched_by(folder / "new");
  EXPECT_TRUE(after.inode.present());
  EXPECT_TRUE(meet(before, after)) << "it is made by an operation that is under way";
  EXPECT_TRUE(meet(after, touched_by(file("link"))));
  fs::create_hard_link(folder / "new", file("hard"));
  EXPECT_TRUE(meet(after, touched_by(file("hard"))));
  EXPECT_FALSE(meet(after, touched_by(folder / "other")));
  fs::create_symlink("round", file("round"));
  for (const auto& unknown : {file("nowhere") / "x", file("round")}) {
    EXPECT_TRUE(meet(after, touched_by(unknown))) << "may be any file, when it is its turn";
    EXPECT_TRUE(meet(touched_by(unknown), touched_by(unknown)));
  }
}

TEST_F(Files, OfNothingAreFine) {
  const auto empty = device().alloc<double>(0);
  const auto done = troupe::file::on(device()).write(empty, file("out")).get();
  EXPECT_EQ(done.bytes, 0u);
  EXPECT_EQ(done.crc32, 0u);
  EXPECT_TRUE(fs::exists(file("out")));
  EXPECT_EQ(troupe::file::on(device()).read(file("out"), empty).get().bytes, 0u);
}

TEST_F(Files, ThatEndTooEarlyAreAnError) {
  write(file("short"), random_bytes(10'000, 11));
  const auto buffer = device().alloc<std::uint8_t>(20'000);
  device().fill(buffer, std::uint8_t{0}).get();
  const auto told =
      troupe::file::on(device())
          .read(file("short"), buffer, {.offset = 1'000, .on_failure = OnFailure::report})
          .get();
  EXPECT_EQ(told.error, ENODATA);
  EXPECT_EQ(told.bytes, 9'000u);
  EXPECT_NE(told.words().find("at byte 10000: it ends there"), std::string_view::npos)
      << told.words();
  EXPECT_TRUE(buffer.valid());

  const auto failed = troupe::file::on(device()).read(file("short"), buffer).wait();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::io);
  EXPECT_EQ(failed.error().native, ENODATA);
  EXPECT_FALSE(buffer.valid()) << "its contents are nobody's";
  (void)device().take_error();
}

TEST_F(Files, ThatCannotBeOpenedAreAnError) {
  const auto buffer = put(random_bytes(5'000, 12));
  for (const auto& path : {file("nowhere") / "out", folder_}) {
    const auto failed = troupe::file::on(device()).write(buffer, path).wait();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, Errc::io);
  }
  EXPECT_EQ(troupe::file::on(device()).read(file("none"), buffer).wait().error().native, ENOENT);
  (void)device().take_error();
}

TEST_F(Files, OnAFullDiskAreAnErrorThatSaysHowFarItCame) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const auto buffer = put(random_bytes(50'000, 13));
  const auto failed = troupe::file::on(device()).write(buffer, "/dev/full").wait();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().native, ENOSPC);
  EXPECT_NE(failed.error().message.find("/dev/full at byte 0: "), std::string::npos)
      << failed.error().message;
  EXPECT_TRUE(device().fill(buffer, std::uint8_t{1}).wait().ok());
  (void)device().take_error();
}

TEST_F(Files, BeyondTheLimitOfSizesAreAnErrorAndNotTheEnd) {
  // A device host inherits the limit. What it writes beyond it would end it by a signal.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 30;
  const rlimit lower{kLimit, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &lower), 0);
  DeviceRig limited({"--standby", "off"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  const auto buffer = limited.device().alloc<std::uint8_t>(100'000);
  limited.device().fill(buffer, std::uint8_t{3}).get();
  const auto failed = troupe::file::on(limited.device())
                          .write(buffer, file("out"), {.offset = kLimit - 512})
                          .wait();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().native, EFBIG);
  const auto at = " at byte " + std::to_string(kLimit) + ": ";
  EXPECT_NE(failed.error().message.find(at), std::string::npos) << failed.error().message;
  EXPECT_TRUE(limited.device().fill(buffer, std::uint8_t{1}).wait().ok()) << "it lives";
}

TEST_F(BadArguments, OfFilesWithoutAPath) {
  EXPECT_EQ(file::on(device()).write(put(std::vector<float>{1}), "").wait().code(), Errc::invalid);
  EXPECT_EQ(file::on(device()).read("", put(std::vector<float>{1})).wait().code(), Errc::invalid);
  (void)device().take_error();
}

TEST_F(BadArguments, OfFiles) {
  using namespace troupe::file;
  const auto path = [](std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto cell = device().pinned<std::uint64_t>(sizeof(Done) / 8);
  Write good;
  good.dtype = DType::f64, good.path_bytes = 2, good.source = x, good.done = cell.operand();
  const auto refused = [&](const Write& op, std::string_view text) {
    const auto bytes = path(text);
    const auto future =
        detail::submit(device().submitter(), op, Parts(std::span<const TailOperand>(), bytes));
    ASSERT_TRUE(future.ready()) << "it was launched";
    EXPECT_EQ(future.wait().code(), Errc::invalid);
  };
  refused(good, "no");
  refused(good, "/");
  refused(good, std::string_view("/\0", 2));
  auto op = good;
  op.path_bytes = 0;
  refused(op, "/x");
  op = good, op.source = absent;
  refused(op, "/x");
  op = good, op.offset = ~std::uint64_t{0};
  refused(op, "/x");
  op = good, op.on_failure = static_cast<OnFailure>(7);
  refused(op, "/x");
  op = good, op.place = x;
  refused(op, "/x");
  op = good, op.done.bytes = sizeof(Done) - 8;
  refused(op, "/x");
  op = good, op.source = device().pinned<double>(16).operand();
  refused(op, "/x");
}

}  // namespace
}  // namespace troupe::test
