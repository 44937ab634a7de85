// The token routers' messages as bytes: there and back, and what is no message refused.
#include "rank/token/token_message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include <troupe/remote_device.hpp>

#include "common/core/field_bytes.hpp"

namespace troupe::rank_process {
namespace {

/// Gives a field a value that no other field of the message has.
class Filler {
 public:
  template <class T>
  void operator()(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(++count_);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "why" + std::string(1, '\0') + std::to_string(++count_);
    } else if constexpr (std::is_same_v<T, std::vector<std::byte>>) {
      value.assign(3, static_cast<std::byte>(++count_));
    } else if constexpr (std::is_same_v<T, Error>) {
      value = {Errc::stale, ++count_, "it is gone"};
    } else if constexpr (std::is_same_v<T, Result<void>>) {
      value = Error{Errc::library, ++count_, "it does not work"};
    } else {
      for_each_field(value, *this);
    }
  }

 private:
  int count_ = 0;
};

/// One of each kind.
std::vector<TokenMessage> one_of_each_kind() {
  std::vector<TokenMessage> all(std::variant_size_v<TokenMessage>);
  for (std::size_t kind = 0; kind < all.size(); ++kind)
    emplace_alternative(kind, all[kind], [filler = Filler()](auto& said) mutable { filler(said); });
  return all;
}

TEST(TokenMessage, CommitsAreNumberedInTheOrderInWhichTheyAreMade) {
  EXPECT_GT(commit_number(0, 0), 0u);
  EXPECT_GT(commit_number(0, 1), commit_number(0, 0));
  EXPECT_GT(commit_number(1, 0), commit_number(0, 1'000'000'000));
}

TEST(TokenMessage, EveryFieldOfEveryKindComesBack) {
  for (const auto& sent : one_of_each_kind()) {
    const auto bytes = encode(3, sent);
    const auto got = decode_token_message(bytes);
    ASSERT_TRUE(got.ok()) << sent.index();
    EXPECT_EQ(got->from, 3);
    EXPECT_EQ(got->message.index(), sent.index());
    EXPECT_EQ(encode(3, got->message), bytes) << sent.index();
    FieldWriter empty;  // what a message without values would be
    TokenMessage unset;
    emplace_alternative(sent.index(), unset, [&](auto& said) { empty.put(said); });
    EXPECT_NE(encode(3, unset), bytes) << sent.index();
  }
}

TEST(TokenMessage, CarriesAnOutcome) {
  const Error gone{Errc::stale, 42, "it is gone"};
  const auto bad = decode_token_message(encode(1, routed::Answer{{7, 1, 2}, gone}));
  ASSERT_TRUE(bad.ok());
  const auto& outcome = std::get<routed::Answer>(bad->message).outcome;
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().to_string(), gone.to_string());
  const auto good = decode_token_message(encode(1, routed::Over{}));
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(std::get<routed::Over>(good->message).outcome.ok());
}

TEST(TokenMessage, AnErrorWithALongTextComesWhole) {
  const Error error{Errc::library, 1, std::string(kLongestRequest + 100, 'x')};
  const auto got = decode_token_message(encode(1, routed::Over{{}, error}));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(std::get<routed::Over>(got->message).outcome.error().message, error.message);
}

TEST(TokenMessage, EveryTruncationAndEveryExcessIsRefused) {
  for (const auto& sent : one_of_each_kind()) {
    const auto bytes = encode(3, sent);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_EQ(decode_token_message(std::span(bytes).first(length)).code(), Errc::invalid)
          << sent.index() << ", " << length;
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode_token_message(longer).code(), Errc::invalid) << sent.index();
  }
}

TEST(TokenMessage, WhatNoRankSendsIsRefused) {
  const auto with_number = [](std::vector<std::byte> bytes, std::size_t at, std::uint32_t number) {
    std::memcpy(bytes.data() + at, &number, sizeof number);
    return bytes;
  };
  const auto kinds = static_cast<std::uint32_t>(std::variant_size_v<TokenMessage>);
  EXPECT_EQ(decode_token_message(with_number(encode(3, routed::SlabGone{1}), 4, kinds)).code(),
            Errc::invalid);
  auto unknown_error = encode(3, routed::Answer{{}, Error{Errc::stale, 0, {}}});
  unknown_error.at(4 + 4 + 16) = static_cast<std::byte>(static_cast<int>(Errc::internal) + 1);
  EXPECT_EQ(decode_token_message(unknown_error).code(), Errc::invalid);
  EXPECT_EQ(
      decode_token_message(encode(3, routed::ChannelGone{1, 2, true, {Errc::ok, 0, {}}})).code(),
      Errc::invalid);
  routed::Execute longest{.operation = "name", .record = std::vector<std::byte>(kLongestRequest)};
  EXPECT_EQ(decode_token_message(encode(3, longest)).code(), Errc::invalid);
}

TEST(TokenMessage, GarbageIsRefusedOrHarmless) {
  std::mt19937 random(1);
  for (const auto& sent : one_of_each_kind()) {
    const auto sound = encode(3, sent);
    for (int i = 0; i < 2'000; ++i) {
      auto bytes = sound;
      for (int flips = 0; flips < 4; ++flips) bytes[random() % bytes.size()] = std::byte(random());
      const auto got = decode_token_message(bytes);
      if (got.ok()) {
        EXPECT_EQ(encode(got->from, got->message), bytes);
      }
    }
  }
}

TEST(RemoteRef, NamesARangeInBytes) {
  const GpuToken token{.rank = 6,
                       .device = 0,
                       .buffer = 4,
                       .generation = 2,
                       .dtype = static_cast<std::uint32_t>(DType::f64),
                       .offset = 10,
                       .length = 30};
  const RemoteRef<double> whole(token);
  EXPECT_EQ(whole.length(), 30);
  EXPECT_EQ(whole.rank(), Rank(6));
  const Operand operand = whole.slice(5, 20).operand();
  EXPECT_EQ(operand.region, kTokenRegion | 6u);
  EXPECT_EQ(operand.buffer, 4u);
  EXPECT_EQ(operand.generation, 2u);
  EXPECT_EQ(operand.reserved, static_cast<std::uint32_t>(DType::f64));
  EXPECT_EQ(operand.offset, 15u * 8);
  EXPECT_EQ(operand.bytes, 20u * 8);
}

TEST(RemoteRef, NumbersThatFitNothingNameNothing) {
  GpuToken token{.rank = 0, .offset = 0, .length = 1};
  token.length = UINT64_MAX / 4;
  EXPECT_FALSE(RemoteRef<double>(token).operand().present());
  token.length = 1;
  token.offset = UINT64_MAX / 4;
  EXPECT_FALSE(RemoteRef<double>(token).operand().present());
  token.offset = 0;
  token.rank = -1;
  EXPECT_FALSE(RemoteRef<double>(token).operand().present());
}

}  // namespace
}  // namespace troupe::rank_process
