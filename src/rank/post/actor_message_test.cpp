// The messages between actor posts as bytes: there and back, and what is no message refused.
#include "rank/post/actor_message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

namespace troupe::rank_process {
namespace {

using Kind = ActorMessage::Kind;

ActorMessage some_message(Kind kind) {
  return {.kind = kind,
          .from = 3,
          .route = 7,
          .type = 2,
          .number = 0xffff'ffff'ffff,
          .within_ns = 1'000'000,
          .set = 0x1234'5678'9abc'def0,
          .code = 5,
          .native = -700,
          .count = 128};
}

Result<ActorPacket> only(std::span<const std::byte> bytes) {
  auto packet = take_actor_message(bytes);
  if (packet.ok() && !bytes.empty()) return Error{Errc::internal, 0, "something is left"};
  return packet;
}

TEST(ActorMessage, EveryFieldComesBackAlsoFromSeveralInOne) {
  const std::string text = "payload";
  std::vector<std::byte> joined;
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(Kind::answer); ++kind) {
    const auto bytes =
        encode(some_message(static_cast<Kind>(kind)), std::as_bytes(std::span(text)));
    joined.insert(joined.end(), bytes.begin(), bytes.end());
  }
  std::span<const std::byte> rest = joined;
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(Kind::answer); ++kind) {
    auto sent = some_message(static_cast<Kind>(kind));
    sent.payload_bytes = static_cast<std::uint32_t>(text.size());
    const auto got = take_actor_message(rest);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(std::memcmp(&got->head, &sent, sizeof sent), 0) << kind;
    EXPECT_EQ(std::memcmp(got->payload.data(), text.data(), text.size()), 0);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(ActorMessage, CarriesAnErrorWhoseTextIsCut) {
  const Error error{Errc::stale, 42, std::string(kMaxActorPayload + 100, 'x')};
  const auto bytes = encode(some_message(Kind::answer), error);
  const auto got = only(bytes);
  ASSERT_TRUE(got.ok());
  ASSERT_FALSE(got->outcome().ok());
  EXPECT_EQ(got->outcome().code(), Errc::stale);
  EXPECT_EQ(got->outcome().error().native, 42);
  EXPECT_EQ(got->payload.size(), kMaxActorPayload);
}

TEST(ActorMessage, EveryTruncationIsRefused) {
  const auto bytes = encode(some_message(Kind::tell), std::as_bytes(std::span("payload")));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(only(std::span(bytes).first(length)).code(), Errc::invalid) << length;
}

TEST(ActorMessage, WhatNoPostSendsIsRefused) {
  auto message = some_message(static_cast<Kind>(static_cast<std::uint32_t>(Kind::answer) + 1));
  EXPECT_EQ(only(encode(message)).code(), Errc::invalid);
  message = some_message(Kind::answer);
  message.code = static_cast<std::uint32_t>(Errc::internal) + 1;
  EXPECT_EQ(only(encode(message)).code(), Errc::invalid);
  message = some_message(Kind::ask);
  message.within_ns = -1;
  EXPECT_EQ(only(encode(message)).code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::rank_process
