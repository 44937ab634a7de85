// Descriptors from rank to rank: who gets one, and who does not. Both ranks are this process.
#include "rank/net/fd_exchange.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>

#include "common/ipc/shared_memory.hpp"

namespace troupe::rank_process {
namespace {

struct Pair {
  /// `spoil` changes what rank 0 and rank 1 are told of each other.
  explicit Pair(const std::function<void(std::vector<FdIdentity>& told_0,
                                         std::vector<FdIdentity>& told_1)>& spoil = {}) {
    first = FdExchange::open(0).take();
    second = FdExchange::open(0).take();
    std::vector<FdIdentity> told_0{first->identity(), second->identity()}, told_1 = told_0;
    if (spoil) spoil(told_0, told_1);
    first->set_peers(told_0, 0);
    second->set_peers(told_1, 1);
  }
  void offer(std::uint64_t number) {
    memory = ipc::SharedMemory::create("test", 4096).take();
    memory.data()[17] = std::byte{42};
    first->offer(number, std::make_shared<UniqueFd>(::dup(memory.fd())));
  }
  std::unique_ptr<FdExchange> first, second;
  ipc::SharedMemory memory;
};

TEST(FdExchange, HandsOverWhatIsOffered) {
  Pair pair;
  pair.offer(7);
  for (int i = 0; i < 100; ++i) {
    auto fd = pair.second->take(0, 7);
    ASSERT_TRUE(fd.ok()) << fd.error().to_string();
    const auto mapped = ipc::SharedMemory::map(std::move(*fd), 4096);
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(mapped->data()[17], std::byte{42});
  }
  EXPECT_EQ(pair.second->take(0, 8).code(), Errc::stale);
  pair.first->withdraw(7);
  EXPECT_EQ(pair.second->take(0, 7).code(), Errc::stale);
}

TEST(FdExchange, RanksOfOtherNodesAreNotReached) {
  Pair pair([](auto&, auto& told_1) { told_1[0].node = 1; });
  pair.offer(7);
  EXPECT_FALSE(pair.second->reaches(0));
  EXPECT_EQ(pair.second->take(0, 7).code(), Errc::invalid);
  EXPECT_EQ(pair.second->take(5, 7).code(), Errc::invalid);
  EXPECT_EQ(pair.second->take(-1, 7).code(), Errc::invalid);
}

TEST(FdExchange, AProcessThatIsNotTheRankIsRefusedByWhoAsks) {
  Pair pair([](auto&, auto& told_1) { told_1[0].pid += 1; });
  pair.offer(7);
  EXPECT_EQ(pair.second->take(0, 7).code(), Errc::invalid);
}

TEST(FdExchange, AProcessThatIsNotTheRankIsRefusedByWhoIsAsked) {
  Pair pair([](auto& told_0, auto&) { told_0[1].pid += 1; });
  pair.offer(7);
  EXPECT_FALSE(pair.second->take(0, 7).ok());
}

TEST(FdExchange, AnotherUserIsRefused) {
  Pair pair([](auto& told_0, auto&) { told_0[1].uid += 1; });
  pair.offer(7);
  EXPECT_FALSE(pair.second->take(0, 7).ok());
}

TEST(FdExchange, AWrongCookieIsRefused) {
  Pair asks([](auto&, auto& told_1) { told_1[0].cookie[1] ^= 1; });
  asks.offer(7);
  EXPECT_FALSE(asks.second->take(0, 7).ok());
  Pair own([](auto& told_0, auto&) { told_0[1].cookie[0] ^= 1; });
  own.offer(7);
  EXPECT_FALSE(own.second->take(0, 7).ok());
}

/// Whoever says nothing, or nonsense, does not keep the others from being served.
TEST(FdExchange, NonsenseIsAnsweredAndForgotten) {
  Pair pair;
  pair.offer(7);
  const auto& name = pair.first->identity().name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int written = std::snprintf(
      address.sun_path + 1, sizeof address.sun_path - 1, "troupe-%016llx%016llx",
      static_cast<unsigned long long>(name[0]), static_cast<unsigned long long>(name[1]));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                             static_cast<std::size_t>(written));
  for (const auto& text : {std::string("x"), std::string(1000, 'x'), std::string(48, '\0')}) {
    const UniqueFd stranger(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    ASSERT_EQ(::send(stranger.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    char answer[64];
    EXPECT_EQ(::recv(stranger.get(), answer, sizeof answer, 0), 8);
    EXPECT_NE(answer[0], 0) << "an error class";
  }
  {
    const UniqueFd silent(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  }
  EXPECT_TRUE(pair.second->take(0, 7).ok());
}

}  // namespace
}  // namespace troupe::rank_process
