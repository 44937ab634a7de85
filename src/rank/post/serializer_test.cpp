// Messages as bytes: there and back, and whatever else the bytes may be.
#include <troupe/actor/serializer.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <troupe/future.hpp>
#include <troupe/gpu_ref.hpp>

namespace troupe {
namespace {

struct Plain {
  std::int32_t number;
  double value;
  friend bool operator==(const Plain&, const Plain&) = default;
};
struct Nothing {
  friend bool operator==(const Nothing&, const Nothing&) = default;
};
struct Batch {
  std::string name;
  std::vector<Plain> plains;
  std::vector<std::string> names;
  std::optional<Nothing> nothing;
  std::optional<std::int64_t> number;
  bool last = false;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, plains, names, nothing, number, last);
  }
  friend bool operator==(const Batch&, const Batch&) = default;
};

static_assert(Portable<Plain> && Portable<Batch> && Portable<GpuToken> && Portable<std::string>);
static_assert(!Portable<GpuRef<float>>, "a reference keeps a buffer of this process alive");
static_assert(!Portable<int*> && !Portable<std::unique_ptr<int>> && !Portable<Future<int>>);
static_assert(!Portable<std::map<int, int>>, "for that there is cereal");

Batch some_batch() {
  return {.name = "batch\0 7",
          .plains = {{1, 2.5}, {-3, 4.0}},
          .names = {"", "one", std::string(300, 'x')},
          .nothing = Nothing{},
          .number = -5,
          .last = true};
}

template <class T>
void expect_there_and_back(const T& value) {
  const auto bytes = detail::to_bytes(value);
  const auto read = detail::from_bytes<T>(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, value);
}

TEST(Serializer, ThereAndBack) {
  expect_there_and_back(Plain{7, -0.5});
  expect_there_and_back(Nothing{});
  expect_there_and_back(some_batch());
  expect_there_and_back(Batch{});
  expect_there_and_back(true);
  expect_there_and_back(std::vector<std::vector<std::int64_t>>{{1, 2}, {}, {3}});
  expect_there_and_back(std::vector<Nothing>(0));
}

TEST(Serializer, WhatIsEmptyTakesNoBytes) {
  EXPECT_TRUE(detail::to_bytes(Nothing{}).empty());
  EXPECT_EQ(detail::to_bytes(Plain{}).size(), sizeof(Plain));
}

TEST(Serializer, EveryTruncationAndEveryExcessIsRefused) {
  auto bytes = detail::to_bytes(some_batch());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(detail::from_bytes<Batch>(std::span(bytes).first(length)).code(), Errc::invalid)
        << length;
  bytes.push_back(std::byte{0});
  EXPECT_EQ(detail::from_bytes<Batch>(bytes).code(), Errc::invalid);
}

TEST(Serializer, ALengthThatIsWrongCostsNoMemory) {
  for (const auto length : {std::numeric_limits<std::uint64_t>::max(),
                            std::numeric_limits<std::uint64_t>::max() / 8 + 1, std::uint64_t{9}}) {
    const auto bytes = detail::to_bytes(length);
    EXPECT_EQ(detail::from_bytes<std::string>(bytes).code(), Errc::invalid);
    EXPECT_EQ(detail::from_bytes<std::vector<double>>(bytes).code(), Errc::invalid);
    EXPECT_EQ(detail::from_bytes<std::vector<std::string>>(bytes).code(), Errc::invalid);
    EXPECT_EQ(detail::from_bytes<std::vector<Nothing>>(bytes).code(), Errc::invalid);
  }
}

TEST(Serializer, ABoolIsZeroOrOne) {
  const std::byte two{2};
  EXPECT_EQ(detail::from_bytes<bool>(std::span(&two, 1)).code(), Errc::invalid);
}

TEST(Serializer, GarbageIsRefusedOrIsAMessage) {
  std::mt19937 random(1);
  const auto sound = detail::to_bytes(some_batch());
  int accepted = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = sound;
    for (int flips = 0; flips < 4; ++flips) bytes[random() % bytes.size()] = std::byte(random());
    const auto read = detail::from_bytes<Batch>(bytes);
    if (read.ok()) {
      ++accepted;
      EXPECT_EQ(detail::to_bytes(*read), bytes);
    } else {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace troupe
