// Messages between a rank and its device host, sound and malformed.
#include "common/wire/control.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "common/wire/wire_fields.hpp"

namespace troupe::wire {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The fields of a message, to compare it by.
template <class Message>
std::vector<std::byte> fields_of(const Message& message) {
  FieldWriter writer;
  writer.put(static_cast<std::uint64_t>(message.index()));
  std::visit([&](const auto& kind) { writer.put(kind); }, message);
  return writer.take();
}

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = ipc::Socket::make_pair();
    ASSERT_TRUE(pair.ok());
    near_ = std::move(pair->first);
    far_ = std::move(pair->second);
  }
  void crosses(const ToHost& message) {
    ASSERT_TRUE(send_control(near_, message, 7).ok());
    const auto got = receive_from_rank(far_);
    ASSERT_TRUE(got.ok() && got->has_value());
    EXPECT_EQ((*got)->request, 7u);
    EXPECT_TRUE((*got)->whole.ok());
    EXPECT_EQ(fields_of((*got)->message), fields_of(message));
  }
  void crosses(const FromHost& message) {
    ASSERT_TRUE(send_control(near_, message, 8).ok());
    const auto got = receive_from_host(far_);
    ASSERT_TRUE(got.ok() && got->has_value());
    EXPECT_EQ((*got)->request, 8u);
    EXPECT_TRUE((*got)->whole.ok());
    EXPECT_EQ(fields_of((*got)->message), fields_of(message));
  }
  /// A packet of these words, then these bytes: request, kind and whether it is in a file.
  Errc verdict(std::uint64_t request, std::uint32_t kind, std::uint32_t in_file,
               const std::vector<std::byte>& fields) {
    std::vector<std::byte> packet(16);
    std::memcpy(packet.data(), &request, 8);
    std::memcpy(packet.data() + 8, &kind, 4);
    std::memcpy(packet.data() + 12, &in_file, 4);
    packet.insert(packet.end(), fields.begin(), fields.end());
    EXPECT_TRUE(near_.send(packet).ok());
    return receive_from_rank(far_).code();
  }
  ipc::Socket near_, far_;
  UniqueFd file_{::memfd_create("there", MFD_CLOEXEC)};
};

TEST_F(ControlTest, EveryKindComesAsItWasSent) {
  const auto memory = [this] { return Descriptor::lent(file_.get()); };
  const std::vector<FormingGroup> groups{{3, GroupState::held, {2, 0}},
                                         {1, GroupState::dropped, {0, 1, 2}},
                                         {7, GroupState::forming, {}}};
  std::vector<ToHost> to;
  to.emplace_back(to_host::MakeSlab{1, std::uint64_t{1} << 40});
  to.emplace_back(to_host::MapSlab{2, 5, memory()});
  to.emplace_back(to_host::MapPinned{3, 6, memory()});
  to.emplace_back(to_host::MapForeign{4, 7, memory()});
  to.emplace_back(to_host::DropRegion{5});
  to.emplace_back(to_host::Promote{6});
  to.emplace_back(to_host::Contribute{1, 4, groups});
  to.emplace_back(to_host::Connect{1, 2, {bytes_of("mine"), {}}, groups});
  to.emplace_back(to_host::ContributeGroup{9, 1, 2});
  to.emplace_back(to_host::ConnectGroup{9, 1, 2, {bytes_of("a"), bytes_of("b")}});
  to.emplace_back(to_host::DropGroup{9});
  to.emplace_back(to_host::Quiesce{});
  to.emplace_back(to_host::Resume{11});
  to.emplace_back(to_host::Suffer{memory::FaultKind::misaligned});
  to.emplace_back(to_host::OpenLibrary{"blas"});
  to.emplace_back(to_host::AdoptPlans{{{"dnn", bytes_of("a plan")}, {"fft", {}}}});
  to.emplace_back(to_host::Prepare{{bytes_of("a record"), {}}});
  to.emplace_back(to_host::TellLibraries{});
  to.emplace_back(to_host::TellMemoryUse{});
  to.emplace_back(to_host::Probe{});
  to.emplace_back(to_host::ShutDown{});
  ASSERT_EQ(to.size(), std::variant_size_v<ToHost>);
  for (std::size_t kind = 0; kind < to.size(); ++kind) {
    ASSERT_EQ(to[kind].index(), kind);
    crosses(to[kind]);
  }
  const Error error{Errc::device_lost, -700, "what happened"};
  std::vector<FromHost> from;
  from.emplace_back(from_host::Ready{"{}"});
  from.emplace_back(from_host::LibraryOpened{{"dnn", {{"oneDNN", "2.6.0", "/opt/some where"}}}});
  from.emplace_back(from_host::KindRecurs{~std::uint64_t{0}, bytes_of("a record")});
  from.emplace_back(from_host::PlansMade{"dnn", {bytes_of("a plan"), {}}});
  from.emplace_back(from_host::Fatal{error, true});
  from.emplace_back(from_host::CommunicatorBroken{"what happened"});
  from.emplace_back(from_host::Done{});
  from.emplace_back(from_host::Failed{error});
  from.emplace_back(from_host::SlabMade{memory()});
  from.emplace_back(from_host::Contributed{bytes_of("mine")});
  from.emplace_back(from_host::MemoryUse{{{"slabs", 5}, {"blas", 6}}, 7});
  ASSERT_EQ(from.size(), std::variant_size_v<FromHost>);
  for (std::size_t kind = 0; kind < from.size(); ++kind) {
    ASSERT_EQ(from[kind].index(), kind);
    crosses(from[kind]);
  }
  EXPECT_FALSE(receive_from_rank(far_)->has_value());
}

TEST_F(ControlTest, ADescriptorComesAlong) {
  ASSERT_EQ(::write(file_.get(), "here", 4), 4);
  ASSERT_TRUE(send_control(near_, to_host::MapSlab{2, 5, Descriptor::lent(file_.get())}).ok());
  auto got = receive_from_rank(far_);
  ASSERT_TRUE(got.ok() && got->has_value());
  const auto fd = std::get<to_host::MapSlab>((*got)->message).memory.take();
  EXPECT_NE(fd.get(), file_.get());
  char text[4] = {};
  EXPECT_EQ(::pread(fd.get(), text, 4, 0), 4);
  EXPECT_EQ(std::string_view(text, 4), "here");
}

TEST_F(ControlTest, AMissingDescriptorIsAnErrorOfTheMessage) {
  ASSERT_TRUE(send_control(near_, to_host::MapSlab{2, 5, {}}, 3).ok());
  const auto got = receive_from_rank(far_);
  ASSERT_TRUE(got.ok() && got->has_value());
  EXPECT_EQ((*got)->request, 3u) << "it can be answered";
  EXPECT_EQ((*got)->whole.code(), Errc::internal);
  EXPECT_EQ(std::get<to_host::MapSlab>((*got)->message).region, 2u);
  // A message that was to come in a file is empty without it.
  EXPECT_EQ(verdict(4, 7, 1, {}), Errc::ok);
  ASSERT_TRUE(
      near_.send(std::vector<std::byte>(16, std::byte{0})).ok());  // MakeSlab without fields
  EXPECT_EQ(receive_from_rank(far_).code(), Errc::internal);
}

TEST_F(ControlTest, ALongMessageComesWhole) {
  const std::string text(3 * ipc::Socket::kMaxPacket, 'x');
  crosses(from_host::Fatal{{Errc::device_lost, 1, text}, false});
  crosses(to_host::Prepare{{bytes_of(text), bytes_of(text), {}}});
}

TEST_F(ControlTest, MalformedOnesAreErrors) {
  FieldWriter region;
  region.put(std::uint32_t{5});
  const auto fields = region.take();
  EXPECT_EQ(verdict(0, 4, 0, fields), Errc::ok);
  EXPECT_EQ(verdict(0, 4, 0, {}), Errc::internal) << "it is cut off";
  EXPECT_EQ(verdict(0, 4, 0, std::vector<std::byte>(5)), Errc::internal) << "there is more";
  EXPECT_EQ(verdict(0, 4, 1, fields), Errc::internal) << "in the packet and in a file";
  EXPECT_EQ(verdict(0, 4, 2, fields), Errc::internal);
  EXPECT_EQ(verdict(0, std::variant_size_v<ToHost>, 0, {}), Errc::internal);
  EXPECT_EQ(verdict(0, ~0u, 0, {}), Errc::internal);
  FieldWriter kind;
  kind.put(std::uint32_t{9});  // no such fault
  EXPECT_EQ(verdict(0, 13, 0, kind.take()), Errc::internal);
  ASSERT_TRUE(near_.send(std::vector<std::byte>(15)).ok());
  EXPECT_EQ(receive_from_rank(far_).code(), Errc::internal);
  near_.close();
  EXPECT_EQ(receive_from_rank(far_).code(), Errc::stopped);
}

// A file that comes in place of a packet is as little to be trusted.
TEST_F(ControlTest, ALongMessageThatIsMalformedIsAnError) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes(random() % 400);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    const UniqueFd file(::memfd_create("message", MFD_CLOEXEC));
    ASSERT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    std::vector<std::byte> packet(16);
    const std::uint32_t kind = static_cast<std::uint32_t>(random() % 23), in_file = 1;
    std::memcpy(packet.data() + 8, &kind, 4);
    std::memcpy(packet.data() + 12, &in_file, 4);
    ASSERT_TRUE(near_.send(packet, file.get()).ok());
    const auto got = receive_from_rank(far_);
    EXPECT_TRUE(got.ok() || got.code() == Errc::internal) << round;
  }
}

}  // namespace
}  // namespace troupe::wire
