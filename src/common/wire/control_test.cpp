// Control messages and packed contributions, sound and malformed.
#include "common/wire/control.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace troupe::wire {
namespace {

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = ipc::Socket::make_pair();
    ASSERT_TRUE(pair.ok());
    near_ = std::move(pair->first);
    far_ = std::move(pair->second);
  }
  /// What the far side makes of these bytes.
  Errc verdict(const Control& head, std::string_view text) {
    std::vector<std::byte> packet(sizeof head + text.size());
    std::memcpy(packet.data(), &head, sizeof head);
    if (!text.empty()) std::memcpy(packet.data() + sizeof head, text.data(), text.size());
    EXPECT_TRUE(near_.send(packet).ok());
    return receive_control(far_).code();
  }
  ipc::Socket near_, far_;
};

TEST_F(ControlTest, EveryKindComesAsItWasSent) {
  for (auto kind = ControlKind::make_slab; kind <= ControlKind::communicator_broken;
       kind = static_cast<ControlKind>(static_cast<std::uint32_t>(kind) + 1)) {
    const Control sent{kind, 7,  1u << 20, std::uint64_t{1} << 40,
                       -1,   64, 5,        static_cast<std::uint32_t>(Errc::device_lost),
                       -700, 0};
    ASSERT_TRUE(send_control(near_, sent, "what happened").ok());
    auto got = receive_control(far_);
    ASSERT_TRUE(got.ok() && got->has_value());
    auto expected = sent;
    expected.text_bytes = 13;
    EXPECT_EQ(std::memcmp(&(*got)->head, &expected, sizeof expected), 0);
    EXPECT_EQ((*got)->text, "what happened");
    EXPECT_FALSE((*got)->fd);
    EXPECT_EQ((*got)->error().code, Errc::device_lost);
    EXPECT_EQ((*got)->error().native, -700);
  }
  EXPECT_FALSE(receive_control(far_)->has_value());
}

TEST_F(ControlTest, AMissingDescriptorIsAnError) {
  for (const auto kind :
       {ControlKind::map_slab, ControlKind::map_pinned, ControlKind::map_foreign,
        ControlKind::connect, ControlKind::slab_made, ControlKind::contribution}) {
    ControlMessage message;
    message.head.kind = kind;
    EXPECT_EQ(message.check_descriptor().code(), Errc::internal);
    message.fd_lost = true;
    EXPECT_EQ(message.check_descriptor().code(), Errc::out_of_memory);
    message.fd_lost = false;
    message.fd.reset(::memfd_create("there", MFD_CLOEXEC));
    EXPECT_TRUE(message.check_descriptor().ok());
  }
  ControlMessage without;
  without.head.kind = ControlKind::promote;
  EXPECT_TRUE(without.check_descriptor().ok());
}

TEST_F(ControlTest, ADescriptorComesAlong) {
  auto blobs = pack_blobs({std::vector<std::byte>(3, std::byte{9})});
  ASSERT_TRUE(blobs.ok());
  ASSERT_TRUE(send_control(near_, {.kind = ControlKind::contribution}, {}, blobs->get()).ok());
  auto got = receive_control(far_);
  ASSERT_TRUE(got.ok() && got->has_value() && (*got)->fd);
  EXPECT_EQ(unpack_blobs((*got)->fd.get())->size(), 1u);
}

TEST_F(ControlTest, ALongTextIsCut) {
  const std::string text(kMaxControlText + 5, 'x');
  ASSERT_TRUE(send_control(near_, {.kind = ControlKind::fatal}, text).ok());
  auto got = receive_control(far_);
  ASSERT_TRUE(got.ok() && got->has_value());
  EXPECT_EQ((*got)->text.size(), kMaxControlText);
}

TEST_F(ControlTest, MalformedOnesAreErrors) {
  EXPECT_EQ(verdict({.kind = ControlKind::done}, ""), Errc::ok);
  EXPECT_EQ(verdict({.kind = ControlKind::done, .text_bytes = 1}, ""), Errc::internal);
  EXPECT_EQ(verdict({.kind = ControlKind::done, .text_bytes = 2}, "abc"), Errc::internal);
  EXPECT_EQ(verdict({.kind = ControlKind::done, .text_bytes = ~0u}, "abc"), Errc::internal);
  EXPECT_EQ(verdict({.kind = static_cast<ControlKind>(
                         static_cast<std::uint32_t>(ControlKind::communicator_broken) + 1)},
                    ""),
            Errc::internal);
  EXPECT_EQ(verdict({.kind = static_cast<ControlKind>(~0u)}, ""), Errc::internal);
  ASSERT_TRUE(near_.send(std::vector<std::byte>(sizeof(Control) - 1)).ok());
  EXPECT_EQ(receive_control(far_).code(), Errc::internal);
  near_.close();
  EXPECT_EQ(receive_control(far_).code(), Errc::stopped);
}

UniqueFd memfd_of(std::span<const std::byte> bytes) {
  UniqueFd fd(::memfd_create("blobs", MFD_CLOEXEC));
  check(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "write");
  return fd;
}

TEST(Blobs, ComeBackInOrder) {
  std::mt19937 random(3);
  std::vector<std::vector<std::byte>> blobs(40);
  for (auto& blob : blobs) {
    blob.resize(random() % 5 == 0 ? 0 : random() % 3000);
    for (auto& byte : blob) byte = static_cast<std::byte>(random());
  }
  auto packed = pack_blobs(blobs);
  ASSERT_TRUE(packed.ok());
  auto unpacked = unpack_blobs(packed->get());
  ASSERT_TRUE(unpacked.ok());
  EXPECT_EQ(*unpacked, blobs);
  EXPECT_TRUE(unpack_blobs(pack_blobs({})->get())->empty());
}

TEST(Blobs, TruncatedAtAnyLengthIsAnError) {
  auto packed = pack_blobs({std::vector<std::byte>(5), {}, std::vector<std::byte>(9)});
  ASSERT_TRUE(packed.ok());
  for (off_t length = 8 + 8 + 5 + 8 + 8 + 9; length-- > 0;) {
    ASSERT_EQ(::ftruncate(packed->get(), length), 0);
    EXPECT_EQ(unpack_blobs(packed->get()).code(), Errc::internal) << length;
  }
  EXPECT_EQ(unpack_blobs(-1).code(), Errc::io);
}

TEST(Blobs, RandomBytesNeverCrash) {
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> words(random() % 12);
    for (auto& word : words) word = random() % 4 == 0 ? random() : random() % 10;
    const auto unpacked = unpack_blobs(memfd_of(std::as_bytes(std::span(words))).get());
    std::size_t total = 0;
    if (unpacked.ok()) {
      for (const auto& blob : *unpacked) total += 8 + blob.size();
    }
    EXPECT_LE(total, words.size() * 8);
  }
}

}  // namespace
}  // namespace troupe::wire
