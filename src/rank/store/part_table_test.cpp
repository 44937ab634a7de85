// A saved part as bytes: there and back, and whatever is damaged refused.
#include "rank/store/part_table.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include <array>
#include <cstring>
#include <random>

#include "rank/store/compare.hpp"

namespace troupe::rank_process {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<SavedEntry> entries() {
  return {{"x", DType::f64, 8, 100},
          {"iteration", {}, 24, 1},
          {"empty", DType::i32, 4, 0},
          {std::string(kSavedNameBytes, 'n'), DType::u8, 1, 777}};
}

Bytes image_of(PartTable& table) {
  Bytes image(table.bytes, std::byte{0xee});
  std::mt19937 random(7);
  for (const auto& place : table.places) {
    for (std::uint64_t i = 0; i < place.bytes; ++i)
      image[place.offset + i] = static_cast<std::byte>(random());
  }
  seal(table, image);
  return image;
}

PartTable some_table() {
  auto table = lay_out(entries());
  table.part = 2;
  table.parts = 5;
  table.step = 1234567890123;
  return table;
}

TEST(PartTable, ComesBackFromItsBytes) {
  auto table = some_table();
  const auto image = image_of(table);
  const auto read = open_image(image);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->part, 2);
  EXPECT_EQ(read->parts, 5);
  EXPECT_EQ(read->step, 1234567890123);
  EXPECT_EQ(read->head_crc, table.head_crc);
  ASSERT_EQ(read->places.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto &is = read->places[i], &was = table.places[i];
    EXPECT_EQ(is.entry.name, was.entry.name);
    EXPECT_EQ(is.entry.dtype, was.entry.dtype);
    EXPECT_EQ(is.entry.element_bytes, was.entry.element_bytes);
    EXPECT_EQ(is.entry.count, was.entry.count);
    EXPECT_EQ(is.offset, was.offset);
    EXPECT_EQ(is.offset % kPartAlignment, 0u);
    EXPECT_EQ(is.crc, was.crc);
  }
  EXPECT_EQ(read->find("iteration")->bytes, 24u);
  EXPECT_EQ(read->find("y"), nullptr);
}

TEST(PartTable, WithoutEntriesIsAHeader) {
  auto table = lay_out({});
  table.step = 0;
  const auto image = image_of(table);
  EXPECT_EQ(image.size(), kPartHeaderBytes);
  EXPECT_TRUE(open_image(image).ok());
}

TEST(PartTable, ChecksumIsThatOfZlib) {
  // The check value of CRC-32/ISO-HDLC, which zlib computes: crc32("123456789").
  EXPECT_EQ(checksum(std::as_bytes(std::span("123456789", 9))), 0xcbf43926u);
}

TEST(PartTable, EveryTruncationIsRefused) {
  auto table = some_table();
  const auto image = image_of(table);
  for (std::size_t size = 0; size < image.size(); ++size)
    EXPECT_EQ(open_image(std::span(image).first(size)).code(), Errc::invalid) << size;
  auto longer = image;
  longer.push_back(std::byte{0});
  EXPECT_EQ(open_image(longer).code(), Errc::invalid);
}

TEST(PartTable, EveryFlippedBitOfHeaderTableAndDataIsSeen) {
  auto table = some_table();
  const auto image = image_of(table);
  const auto head = *head_bytes(image);
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < head; ++i) bytes.push_back(i);
  for (const auto& place : table.places) {
    for (std::uint64_t i = 0; i < place.bytes; i += 13) bytes.push_back(place.offset + i);
    if (place.bytes > 0) bytes.push_back(place.offset + place.bytes - 1);
  }
  for (const auto at : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bad = image;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_EQ(open_image(bad).code(), Errc::invalid) << "byte " << at << ", bit " << bit;
    }
  }
}

/// Changes a number of the header or table and makes the checksum right again: what is left are the
/// rules themselves.
template <class T>
Errc verdict_with(std::size_t at, T value) {
  auto table = some_table();
  auto image = image_of(table);
  std::memcpy(image.data() + at, &value, sizeof value);
  const auto size = head_bytes(image);
  if (!size) return size.code();
  if (*size > image.size()) return open_image(image).code();
  const auto head = std::span(image).first(*size);
  constexpr std::byte kZero[4] = {};
  const auto crc = checksum(head.subspan(12), checksum(kZero, checksum(head.first(8))));
  std::memcpy(image.data() + 8, &crc, sizeof crc);
  return open_image(image).code();
}

TEST(PartTable, NumbersThatMakeNoSenseAreRefusedWhateverTheChecksum) {
  EXPECT_EQ(verdict_with<std::int32_t>(16, 2), Errc::ok) << "nothing changed";
  EXPECT_EQ(verdict_with<std::uint32_t>(12, 0xffff'ffff), Errc::invalid) << "entries";
  EXPECT_EQ(verdict_with<std::uint32_t>(12, 4096), Errc::invalid) << "entries beyond the end";
  EXPECT_EQ(verdict_with<std::uint32_t>(12, 3), Errc::invalid) << "one entry fewer";
  EXPECT_EQ(verdict_with<std::int32_t>(16, -1), Errc::invalid) << "part";
  EXPECT_EQ(verdict_with<std::int32_t>(16, 5), Errc::invalid) << "part";
  EXPECT_EQ(verdict_with<std::int32_t>(20, 0), Errc::invalid) << "parts";
  EXPECT_EQ(verdict_with<std::int64_t>(24, -1), Errc::invalid) << "step";
  EXPECT_EQ(verdict_with<std::uint64_t>(32, 1), Errc::invalid) << "bytes";
  constexpr std::size_t kFirst = kPartHeaderBytes, kDType = 64, kElement = 72, kCount = 80,
                        kOffset = 88, kLength = 96;
  EXPECT_EQ(verdict_with<char>(kFirst, '\0'), Errc::invalid) << "no name";
  EXPECT_EQ(verdict_with<std::uint32_t>(kFirst + kDType, 14), Errc::invalid) << "dtype";
  EXPECT_EQ(verdict_with<std::uint32_t>(kFirst + kDType, 2), Errc::invalid) << "dtype's size";
  for (const std::size_t field : {kElement, kCount, kOffset, kLength}) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40,
                                      std::uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 511}) {
      EXPECT_EQ(verdict_with(kFirst + field, value), Errc::invalid) << field << " = " << value;
    }
  }
  const auto second_name = kPartHeaderBytes + kPartEntryBytes;
  const std::array<char, 16> twice{'x'};
  EXPECT_EQ(verdict_with(second_name, twice), Errc::invalid) << "the same name twice";
}

TEST(PartTable, RandomBytesNeitherCrashNorPass) {
  std::mt19937_64 random(3);
  auto table = some_table();
  const auto image = image_of(table);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bad = image;
    for (auto changes = 1 + random() % 8; changes > 0; --changes)
      bad[random() % (kPartHeaderBytes + 4 * kPartEntryBytes)] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    if (bad != image) {
      EXPECT_EQ(open_image(bad).code(), Errc::invalid);
    }
  }
}

template <class T>
std::optional<Difference> compared(std::optional<DType> dtype, std::vector<T> before,
                                   std::vector<T> after, double tolerance = 0) {
  const SavedEntry entry{"e", dtype, sizeof(T), before.size()};
  return compare(entry, std::as_bytes(std::span(before)), std::as_bytes(std::span(after)),
                 tolerance);
}

TEST(Compare, TheFirstElementThatDiffersIsNamed) {
  EXPECT_FALSE(compared<double>(DType::f64, {1, 2, 3}, {1, 2, 3}));
  EXPECT_FALSE(compared<double>(DType::f64, {}, {}));
  const auto difference = compared<double>(DType::f64, {1, 2, 3, 4}, {1, 2.5, 3, -4});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->first, 1u);
  EXPECT_EQ(difference->count, 2u);
  EXPECT_EQ(difference->before, "2");
  EXPECT_EQ(difference->after, "2.5");
  EXPECT_EQ(compared<std::int32_t>(DType::i32, {7, -7}, {7, -8})->after, "-8");
  EXPECT_EQ(compared<std::uint8_t>(DType::u8, {200}, {201})->before, "200");
  EXPECT_EQ(compared<std::uint16_t>(DType::f16, {0x3c00}, {0xc500})->after, "-5");
  EXPECT_EQ(compared<std::uint16_t>(DType::bf16, {0x3f80}, {0x4040})->after, "3");
  using Complex = std::array<float, 2>;
  EXPECT_EQ((compared<Complex>(DType::c64, {Complex{1, 2}}, {Complex{1, 3}})->after), "1 + i 3");
  EXPECT_EQ(compared<std::uint32_t>({}, {0x01020304}, {0x05020304})->after, "0x04030205");
}

TEST(Compare, AToleranceIsOfTheLargestValue) {
  const std::vector<float> before{1000, 1e-3f}, after{1000, 2e-3f};
  EXPECT_TRUE(compared<float>(DType::f32, before, after));
  EXPECT_FALSE(compared<float>(DType::f32, before, after, 1e-5));
  EXPECT_TRUE(compared<float>(DType::f32, before, after, 1e-8));
  EXPECT_TRUE(compared<std::int64_t>(DType::i64, {1'000'000}, {1'000'001}, 0.1)) << "whole numbers";
  EXPECT_TRUE(compared<std::int64_t>({}, {1'000'000}, {1'000'001}, 0.1)) << "host values";
  const double nan = std::nan("");
  EXPECT_FALSE(compared<double>(DType::f64, {nan, 1}, {nan, 1}, 0.1));
  EXPECT_TRUE(compared<double>(DType::f64, {nan, 1}, {1, 1}, 0.1));
  EXPECT_TRUE(compared<double>(DType::f64, {1, 1}, {HUGE_VAL, 1}, 0.1));
}

}  // namespace
}  // namespace troupe::rank_process
