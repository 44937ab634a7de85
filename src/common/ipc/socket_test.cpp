// The control socket: message boundaries, descriptors, and how the end of the peer is seen.
#include "common/ipc/socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>

#include "common/ipc/descriptors.hpp"

namespace troupe::ipc {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(const Packet& packet) {
  return {reinterpret_cast<const char*>(packet.bytes.data()), packet.bytes.size()};
}

class SocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = Socket::make_pair();
    ASSERT_TRUE(pair.ok());
    left_ = std::move(pair->first);
    right_ = std::move(pair->second);
  }
  Socket left_, right_;
};

TEST_F(SocketTest, NothingThereIsAnAnswerAtOnce) {
  const auto packet = left_.receive();
  ASSERT_TRUE(packet.ok());
  EXPECT_FALSE(packet->has_value());
}

TEST_F(SocketTest, KeepsMessageBoundariesAndOrder) {
  const std::string large(Socket::kMaxPacket, 'x');
  ASSERT_TRUE(left_.send(bytes_of("one")).ok());
  ASSERT_TRUE(left_.send(bytes_of("2")).ok());
  ASSERT_TRUE(left_.send(bytes_of(large)).ok());
  for (const auto& expected : {std::string("one"), std::string("2"), large}) {
    auto packet = right_.receive();
    ASSERT_TRUE(packet.ok() && packet->has_value());
    EXPECT_EQ(text_of(**packet), expected);
    EXPECT_FALSE((*packet)->fd);
  }
  EXPECT_FALSE(right_.receive()->has_value());
}

TEST_F(SocketTest, PassesADescriptorThatDoesNotLeakIntoChildren) {
  UniqueFd memory(::memfd_create("passed", MFD_CLOEXEC));
  ASSERT_EQ(::write(memory.get(), "slab", 4), 4);
  ASSERT_TRUE(left_.send(bytes_of("take this"), memory.get()).ok());
  ASSERT_TRUE(left_.send(bytes_of("and no more")).ok());
  memory.reset();  // the message keeps it alive
  auto packet = right_.receive();
  ASSERT_TRUE(packet.ok() && packet->has_value());
  ASSERT_TRUE((*packet)->fd);
  char text[4] = {};
  EXPECT_EQ(::pread((*packet)->fd.get(), text, 4, 0), 4);
  EXPECT_EQ(std::string_view(text, 4), "slab");
  EXPECT_NE(::fcntl((*packet)->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE((*right_.receive())->fd);
}

/// The soft limit of descriptors, for as long as this lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{limit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(SocketTest, ADescriptorThatDoesNotFitIsTold) {
  const UniqueFd memory(::memfd_create("passed", MFD_CLOEXEC));
  ASSERT_TRUE(left_.send(bytes_of("take this"), memory.get()).ok());
  ASSERT_TRUE(left_.send(bytes_of("and this"), memory.get()).ok());
  {
    const DescriptorLimit none(0);
    auto packet = right_.receive();
    ASSERT_TRUE(packet.ok() && packet->has_value());
    EXPECT_EQ(text_of(**packet), "take this");
    EXPECT_FALSE((*packet)->fd);
    EXPECT_TRUE((*packet)->fd_lost);
  }
  auto packet = right_.receive();
  ASSERT_TRUE(packet.ok() && packet->has_value());
  EXPECT_TRUE((*packet)->fd);
  EXPECT_FALSE((*packet)->fd_lost);
}

TEST_F(SocketTest, DescriptorsAreKeptForWhatMustNotFail) {
  EXPECT_TRUE(keep_descriptors(8).ok());
  const DescriptorLimit few(static_cast<rlim_t>(left_.fd()) + 4);
  const auto refused = keep_descriptors(8);
  ASSERT_EQ(refused.code(), Errc::out_of_memory);
  for (const auto* word : {"RLIMIT_NOFILE", "ulimit", "--slab-size"})
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
}

TEST_F(SocketTest, TheLimitOfDescriptorsIsRaisedToTheHardOne) {
  const DescriptorLimit few(static_cast<rlim_t>(left_.fd()) + 4);
  raise_descriptor_limit();
  rlimit now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, std::min<rlim_t>(now.rlim_max, 1u << 20));
}

TEST_F(SocketTest, AMessageLeftUnreadGivesItsDescriptorBack) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  ASSERT_TRUE(left_.send(bytes_of("x"), writing.get()).ok());
  writing.reset();
  left_.close();
  right_.close();
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0) << "somebody still holds the writing end";
}

TEST_F(SocketTest, AClosedPeerIsStopped) {
  right_.close();
  EXPECT_EQ(left_.receive().code(), Errc::stopped);
  EXPECT_EQ(left_.send(bytes_of("hello?")).code(), Errc::stopped);
}

TEST_F(SocketTest, LastWordsComeBeforeTheEnd) {
  ASSERT_TRUE(right_.send(bytes_of("farewell")).ok());
  right_.close();
  auto packet = left_.receive();
  ASSERT_TRUE(packet.ok() && packet->has_value());
  EXPECT_EQ(text_of(**packet), "farewell");
  EXPECT_EQ(left_.receive().code(), Errc::stopped);
}

TEST_F(SocketTest, LastWordsComeBeforeTheEndOfAPeerThatDidNotListen) {
  ASSERT_TRUE(left_.send(bytes_of("never read")).ok());
  ASSERT_TRUE(right_.send(bytes_of("fatal: illegal address")).ok());
  right_.close();
  auto packet = left_.receive();
  ASSERT_TRUE(packet.ok() && packet->has_value()) << "the end of the peer hides what it said";
  EXPECT_EQ(text_of(**packet), "fatal: illegal address");
  EXPECT_EQ(left_.receive().code(), Errc::stopped);
}

TEST_F(SocketTest, AKilledProcessIsStopped) {
  const pid_t child = ::fork();
  if (child == 0) {
    left_.close();
    (void)right_.send(bytes_of("alive"));
    for (;;) ::pause();
  }
  right_.close();
  pollfd incoming{left_.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&incoming, 1, 20'000), 1);
  EXPECT_EQ(text_of(**left_.receive()), "alive");
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::poll(&incoming, 1, 20'000), 1) << "the end of the peer makes the descriptor readable";
  EXPECT_EQ(left_.receive().code(), Errc::stopped);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(SocketTest, SendWaitsWhileTheSocketIsFull) {
  constexpr int kMessages = 400;  // far more than fits
  const std::string text(Socket::kMaxPacket, 'y');
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(left_.send(bytes_of(text)).ok());
    left_.close();
  });
  int got = 0;
  for (;;) {
    pollfd incoming{right_.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&incoming, 1, 20'000), 1);
    auto packet = right_.receive();
    if (!packet.ok()) break;
    if (packet->has_value() && (*packet)->bytes.size() == text.size()) ++got;
  }
  sender.join();
  EXPECT_EQ(got, kMessages);
}

TEST_F(SocketTest, TooLongAMessageFromAStrangerIsCutNotOverrun) {
  const std::string huge(Socket::kMaxPacket + 1000, 'z');
  ASSERT_GT(::send(left_.fd(), huge.data(), huge.size(), 0), 0);
  auto packet = right_.receive();
  ASSERT_TRUE(packet.ok() && packet->has_value());
  EXPECT_EQ((*packet)->bytes.size(), Socket::kMaxPacket);
}

TEST(SocketDeathTest, TooLongAMessageIsTheSendersMistake) {
  auto pair = Socket::make_pair();
  ASSERT_TRUE(pair.ok());
  const std::string huge(Socket::kMaxPacket + 1, 'z');
  EXPECT_DEATH((void)pair->first.send(bytes_of(huge)), "too long");
}

}  // namespace
}  // namespace troupe::ipc
