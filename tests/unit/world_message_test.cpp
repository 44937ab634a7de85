// The world's messages as bytes: there and back, and what is no message refused.
#include "rank/world/message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>

namespace troupe::rank {
namespace {

using Kind = WorldMessage::Kind;

WorldMessage some_message(std::uint32_t kind, std::uint32_t phase) {
  WorldMessage m;
  m.kind = static_cast<Kind>(kind);
  m.phase = static_cast<Phase>(phase);
  m.round = 17;
  m.epoch = 0xffff'ffff;
  m.rank = -3;
  m.code = 9;
  m.native = -700;
  m.lost_buffers = 12;
  m.step = -1;
  m.repeated = std::int64_t{1} << 40;
  m.covered = 6;
  m.parts = {{3, 17, {std::byte{1}}}, {-1, -1, {}}};
  m.detect_us = -9;
  m.stopping = 1;
  m.text = std::string("kill\0x", 6);
  m.payload = {std::byte{0}, std::byte{255}, std::byte{7}};
  return m;
}

TEST(WorldMessage, EveryFieldComesBack) {
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(Kind::stop); ++kind) {
    for (std::uint32_t phase = 0; phase < kPhaseCount; ++phase) {
      const auto sent = some_message(kind, phase);
      const auto got = decode_world_message(encode(sent));
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(got->kind, sent.kind);
      EXPECT_EQ(got->phase, sent.phase);
      EXPECT_EQ(got->round, sent.round);
      EXPECT_EQ(got->epoch, sent.epoch);
      EXPECT_EQ(got->rank, sent.rank);
      EXPECT_EQ(got->code, sent.code);
      EXPECT_EQ(got->native, sent.native);
      EXPECT_EQ(got->lost_buffers, sent.lost_buffers);
      EXPECT_EQ(got->step, sent.step);
      EXPECT_EQ(got->repeated, sent.repeated);
      EXPECT_EQ(got->covered, sent.covered);
      ASSERT_EQ(got->parts.size(), sent.parts.size());
      for (std::size_t i = 0; i < sent.parts.size(); ++i) {
        EXPECT_EQ(got->parts[i].rank, sent.parts[i].rank);
        EXPECT_EQ(got->parts[i].iteration, sent.parts[i].iteration);
        EXPECT_EQ(got->parts[i].contribution, sent.parts[i].contribution);
      }
      EXPECT_EQ(got->detect_us, sent.detect_us);
      EXPECT_EQ(got->stopping, sent.stopping);
      EXPECT_EQ(got->text, sent.text);
      EXPECT_EQ(got->payload, sent.payload);
    }
  }
}

TEST(WorldMessage, UnknownKindsAndPhasesAreErrors) {
  const auto last = static_cast<std::uint32_t>(Kind::stop);
  EXPECT_EQ(decode_world_message(encode(some_message(last + 1, 0))).code(), Errc::invalid);
  EXPECT_EQ(decode_world_message(encode(some_message(~0u, 0))).code(), Errc::invalid);
  EXPECT_EQ(decode_world_message(encode(some_message(0, kPhaseCount))).code(), Errc::invalid);
}

template <class Decode>
void expect_truncations_refused(const std::vector<std::byte>& bytes, Decode decode) {
  ASSERT_TRUE(decode(bytes).ok());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(decode(std::span(bytes).first(length)).code(), Errc::invalid) << length;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode(longer).code(), Errc::invalid) << "something follows";
}

std::vector<RecoveryReport> some_reports() {
  return {{3, "kill", 17, 2, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 24, 9, 4},
          {-1, "", -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -5}};
}

TEST(WorldMessage, AnyOtherLengthIsAnError) {
  expect_truncations_refused(encode(some_message(0, 0)), decode_world_message);
  expect_truncations_refused(encode(some_reports()), decode_reports);
  expect_truncations_refused(
      encode(std::vector<std::vector<std::byte>>{{std::byte{1}}, {}, {std::byte{2}, std::byte{3}}}),
      decode_blobs);
}

TEST(Reports, ComeBack) {
  const auto sent = some_reports();
  const auto got = decode_reports(encode(sent));
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(got->size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const auto &a = (*got)[i], &b = sent[i];
    EXPECT_EQ(a.rank, b.rank);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.iteration, b.iteration);
    EXPECT_EQ(a.epoch, b.epoch);
    const double times_a[] = {a.detect_ms, a.quiesce_ms, a.replace_ms, a.form_ms,
                              a.verify_ms, a.restore_ms, a.total_ms};
    const double times_b[] = {b.detect_ms, b.quiesce_ms, b.replace_ms, b.form_ms,
                              b.verify_ms, b.restore_ms, b.total_ms};
    for (std::size_t t = 0; t < 7; ++t) EXPECT_EQ(times_a[t], times_b[t]);
    EXPECT_EQ(a.lost_buffers, b.lost_buffers);
    EXPECT_EQ(a.repeated, b.repeated);
  }
  EXPECT_TRUE(decode_reports(encode(std::vector<RecoveryReport>{}))->empty());
}

TEST(WorldBlobs, ComeBackInOrder) {
  std::mt19937 random(2);
  std::vector<std::vector<std::byte>> blobs(30);
  for (auto& blob : blobs) {
    blob.resize(random() % 4 == 0 ? 0 : random() % 500);
    for (auto& byte : blob) byte = static_cast<std::byte>(random());
  }
  const auto got = decode_blobs(encode(blobs));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, blobs);
  EXPECT_TRUE(decode_blobs(encode(std::vector<std::vector<std::byte>>{}))->empty());
}

TEST(WorldMessage, RandomBytesNeverCrash) {
  std::uint64_t refused = 0;
  for (std::uint32_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes;
    if (random() % 2 == 0) {
      bytes = encode(some_message(0, 0));
      for (auto left = 1 + random() % 6; left > 0; --left)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    } else {
      std::vector<std::uint64_t> words(random() % 20);
      for (auto& word : words) word = random() % 3 == 0 ? random() : random() % 12;
      bytes.resize(words.size() * 8 + random() % 8);
      if (!words.empty()) std::memcpy(bytes.data(), words.data(), words.size() * 8);
    }
    const auto message = decode_world_message(bytes);
    if (message.ok()) {
      EXPECT_LE(message->text.size() + message->payload.size(), bytes.size());
    } else {
      ++refused;
    }
    const auto reports = decode_reports(bytes);
    EXPECT_LE(reports.ok() ? reports->size() : 0, bytes.size());
    const auto blobs = decode_blobs(bytes);
    EXPECT_LE(blobs.ok() ? blobs->size() : 0, kMaxRanks);
  }
  EXPECT_GT(refused, 5000u);
}

TEST(Phase, NamesAreTheirOwn) {
  std::set<std::string_view> names;
  for (std::uint32_t phase = 0; phase < kPhaseCount; ++phase)
    names.insert(to_string(static_cast<Phase>(phase)));
  EXPECT_EQ(names.size(), kPhaseCount);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(static_cast<Phase>(99)), "unknown");
}

}  // namespace
}  // namespace troupe::rank
