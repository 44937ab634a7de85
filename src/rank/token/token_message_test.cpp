// The token routers' messages as bytes: there and back, and what is no message refused.
#include "rank/token/token_message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include <troupe/remote_device.hpp>

namespace troupe::rank_process {
namespace {

using Kind = TokenMessage::Kind;

TokenMessage some_message(Kind kind) {
  return {.kind = kind,
          .from = 3,
          .key = {.requester = 7, .epoch = 21, .number = 0xffff'ffff'ffff},
          .range = {.region = kTokenRegion | 5,
                    .buffer = 9,
                    .generation = 11,
                    .reserved = 3,
                    .offset = 1u << 20,
                    .bytes = 64},
          .offer = {.slab = 12,
                    .slab_bytes = 1u << 26,
                    .offset = 512,
                    .bytes = 64,
                    .place = 13,
                    .version = 14},
          .count = 99,
          .behind = commit_number(3, 70),
          .value = 17,
          .code = 5,
          .native = -700};
}

bool same(const TokenMessage& a, const TokenMessage& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(TokenMessage, CommitsAreNumberedInTheOrderInWhichTheyAreMade) {
  EXPECT_GT(commit_number(0, 0), 0u);
  EXPECT_GT(commit_number(0, 1), commit_number(0, 0));
  EXPECT_GT(commit_number(1, 0), commit_number(0, 1'000'000'000));
}

TEST(TokenMessage, EveryFieldComesBack) {
  const std::string text = "why\0not";
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(Kind::slab_gone); ++kind) {
    auto sent = some_message(static_cast<Kind>(kind));
    const auto got = decode_token_message(encode(sent, std::as_bytes(std::span(text))));
    ASSERT_TRUE(got.ok());
    sent.payload_bytes = static_cast<std::uint32_t>(text.size());
    EXPECT_TRUE(same(got->head, sent)) << kind;
    EXPECT_EQ(std::memcmp(got->payload.data(), text.data(), text.size()), 0);
  }
}

TEST(TokenMessage, CarriesAnOutcome) {
  const auto head = some_message(Kind::answer);
  const auto bad =
      decode_token_message(encode(head, Result<void>(Error{Errc::stale, 42, "it is gone"})));
  ASSERT_TRUE(bad.ok());
  ASSERT_FALSE(bad->outcome().ok());
  EXPECT_EQ(bad->outcome().error().to_string(), (Error{Errc::stale, 42, "it is gone"}).to_string());
  const auto good = decode_token_message(encode(head, Result<void>()));
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(good->outcome().ok());
}

TEST(TokenMessage, AnErrorWithALongTextIsCut) {
  const Error error{Errc::library, 1, std::string(kMaxTokenPayload + 100, 'x')};
  const auto got = decode_token_message(encode(some_message(Kind::over), Result<void>(error)));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->payload.size(), kMaxTokenPayload);
}

TEST(TokenMessage, EveryTruncationAndEveryExcessIsRefused) {
  const auto bytes = encode(some_message(Kind::fetch), std::as_bytes(std::span("payload")));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(decode_token_message(std::span(bytes).first(length)).code(), Errc::invalid) << length;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_token_message(longer).code(), Errc::invalid);
}

TEST(TokenMessage, UnknownKindsAndErrorClassesAreRefused) {
  auto message = some_message(Kind::slab_gone);
  message.kind = static_cast<Kind>(static_cast<std::uint32_t>(Kind::slab_gone) + 1);
  EXPECT_EQ(decode_token_message(encode(message)).code(), Errc::invalid);
  message = some_message(Kind::answer);
  message.code = static_cast<std::uint32_t>(Errc::internal) + 1;
  EXPECT_EQ(decode_token_message(encode(message)).code(), Errc::invalid);
}

TEST(TokenMessage, GarbageIsRefusedOrHarmless) {
  std::mt19937 random(1);
  const auto sound = encode(some_message(Kind::put), std::as_bytes(std::span("payload")));
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = sound;
    for (int flips = 0; flips < 4; ++flips) bytes[random() % bytes.size()] = std::byte(random());
    const auto got = decode_token_message(bytes);
    if (got.ok()) {
      EXPECT_EQ(got->payload.size(), got->head.payload_bytes);
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
