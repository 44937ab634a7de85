// The world's messages as bytes: there and back, and what is no message refused.
#include "rank/protocol/message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace troupe::rank_process {
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
  m.formation = 21;
  m.step = 77;
  m.repeated = std::int64_t{1} << 40;
  m.covered = 6;
  m.parts = {{3, 17, {std::byte{1}}}, {-1, -1, {}}};
  m.detect_us = -9;
  m.end_us = 55;
  m.stopping = 1;
  m.text = std::string("kill\0x", 6);
  m.payload = {std::byte{0}, std::byte{255}, std::byte{7}};
  m.excluded = {0, 5};
  return m;
}

/// All fields of a message but kind and phase. A field that is new does not compile until it stands
/// here.
auto fields(const WorldMessage& m) {
  const auto& [kind, phase, round, epoch, rank, covered, code, native, lost_buffers, formation,
               step, repeated, detect_us, end_us, stopping, text, payload, parts, excluded] = m;
  return std::tie(round, epoch, rank, covered, code, native, lost_buffers, formation, step,
                  repeated, detect_us, end_us, stopping, text, payload, parts, excluded);
}

/// Calls f(name of the field's place, value in a, value in b) for each field.
template <class F>
void for_each_field(const WorldMessage& a, const WorldMessage& b, const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(I, std::get<I>(fields(a)), std::get<I>(fields(b))), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(fields(a))>>{});
}

TEST(WorldMessage, EveryFieldComesBack) {
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(Kind::stop); ++kind) {
    for (std::uint32_t phase = 0; phase < kPhaseCount; ++phase) {
      const auto sent = some_message(kind, phase);
      const auto got = decode_world_message(encode(sent));
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(got->kind, sent.kind);
      EXPECT_EQ(got->phase, sent.phase);
      for_each_field(*got, sent, [](std::size_t field, const auto& came, const auto& went) {
        EXPECT_TRUE(came == went) << "field " << field;
      });
      // A field that holds what an empty message holds would come back without being sent.
      for_each_field(WorldMessage{}, sent,
                     [](std::size_t field, const auto& empty, const auto& went) {
                       EXPECT_FALSE(empty == went) << "field " << field << " is not set";
                     });
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

std::vector<Recovery> some_reports() {
  return {{3, "kill", 17, 2, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 24, 25, 9, 4},
          {-1, "", -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -5}};
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
    const double times_a[] = {a.detect_ms, a.quiesce_ms, a.replace_ms, a.end_ms,
                              a.form_ms,   a.verify_ms,  a.restore_ms, a.total_ms};
    const double times_b[] = {b.detect_ms, b.quiesce_ms, b.replace_ms, b.end_ms,
                              b.form_ms,   b.verify_ms,  b.restore_ms, b.total_ms};
    for (std::size_t t = 0; t < 7; ++t) EXPECT_EQ(times_a[t], times_b[t]);
    EXPECT_EQ(a.lost_buffers, b.lost_buffers);
    EXPECT_EQ(a.repeated_iterations, b.repeated_iterations);
  }
  EXPECT_TRUE(decode_reports(encode(std::vector<Recovery>{}))->empty());
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
}  // namespace troupe::rank_process
