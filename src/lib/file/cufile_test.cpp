#include "lib/file/cufile_cuda.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/file/checksum.hpp"

namespace troupe::file {
namespace {

TEST(CuFile, MovesBytesWithCompatibilityModeOff) {
  const auto library = CuFile::load(TROUPE_TEST_CUFILE);
  ASSERT_TRUE(library.ok()) << library.error().message;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> disk(std::tmpfile(), &std::fclose);
  const auto file = library->open(::fileno(disk.get()));
  ASSERT_TRUE(file.ok()) << file.error().message;
  const std::string text(CuFile::kBlock, 'x');
  EXPECT_EQ(file->write(text.data(), text.size(), 4096), 4096);
  std::string back(2 * CuFile::kBlock, ' ');
  EXPECT_EQ(file->read(back.data(), back.size(), 4096), 4096) << "there is no more";
  EXPECT_EQ(back, text + std::string(CuFile::kBlock, ' '));
}

TEST(CuFile, TakesNotEveryFile) {
  const auto library = CuFile::load(TROUPE_TEST_CUFILE);
  ASSERT_TRUE(library.ok());
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const auto file = library->open(pipe[1]);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, Errc::unsupported);
  EXPECT_EQ(file.error().message, "cuFile: no direct way to this file system (status 5027)");
  ::close(pipe[0]), ::close(pipe[1]);
}

TEST(CuFile, IsMissing) {
  const auto library = CuFile::load("/no/such/folder/libcufile.so.0");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, Errc::unsupported);
  EXPECT_EQ(library.error().message, "cuFile: /no/such/folder/libcufile.so.0: not installed");
}

TEST(CuFile, IsNoOtherLibrary) {
  const auto library = CuFile::load("libz.so.1");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().message, "cuFile: libz.so.1: it has no cuFileSetParameterBool");
}

/// What the threads of a kernel do, one after the other.
std::uint32_t crc_by(std::uint64_t threads, const std::vector<unsigned char>& bytes) {
  const auto words = bytes.size() / 4;
  std::vector<std::uint32_t> tables(crc32::kTables * 256);
  for (std::uint32_t i = 0; i < tables.size(); ++i)
    tables[i] = crc32::table_entry(i, crc32::power(32 * threads));
  std::uint32_t sum = 0;
  for (std::uint64_t t = 0; t < threads; ++t) {
    sum ^= crc32::share(t, threads, words, tables.data(), [&](std::uint64_t i) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + 4 * i, sizeof word);
      return word;
    });
  }
  return crc32::finish(sum, words, bytes.data() + 4 * words, bytes.size() % 4);
}

TEST(Crc32, ByManyThreadsIsThatOfZlib) {
  std::mt19937 random(1);
  for (const std::size_t length : {0u, 1u, 3u, 4u, 5u, 8u, 1023u, 1024u, 4099u, 100'000u}) {
    std::vector<unsigned char> bytes(length);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    const auto expected = ::crc32_z(0, bytes.data(), bytes.size());
    for (const std::uint64_t threads : {1u, 2u, 255u, 256u, 4096u}) {
      EXPECT_EQ(crc_by(threads, bytes), expected) << length << " bytes, " << threads << " threads";
    }
  }
  EXPECT_EQ(crc_by(7, {'1', '2', '3', '4', '5', '6', '7', '8', '9'}), 0xcbf43926u);
}

}  // namespace
}  // namespace troupe::file
