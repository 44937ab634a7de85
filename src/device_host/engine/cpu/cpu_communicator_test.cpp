#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "common/ipc/descriptors.hpp"
#include "cpu_engine_rig.hpp"

namespace troupe::host {
namespace {

using namespace std::chrono_literals;

void expect_sum_works(World& world) {
  world.on_all([&](int, Rig& rig) {
    const auto x = rig.put(std::vector<std::int32_t>{1});
    ASSERT_TRUE(rig.execute(collective::AllReduce{DType::i32, ReduceOp::sum, 0, 1, x, x}));
    EXPECT_EQ(rig.get<std::int32_t>(x)[0], world.size());
  });
}

TEST(CommunicatorEnd, AbortUnblocksAllReduceWithASilentPeer) {
  World world(3);
  world.connect();
  auto& rig = world[0];
  const auto x = rig.put(std::vector<float>(1 << 20));
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(rig.queue(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1 << 20, x, x}));
  const auto mark = rig.engine->mark(Lane::collective).take();
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(rig.engine->reached(mark).take());
  rig.engine->collectives().abort();
  ASSERT_TRUE(rig.engine->synchronize(Lane::collective));
  EXPECT_TRUE(rig.engine->reached(mark).take());
  EXPECT_EQ(rig.queue(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1, x, x}).code(),
            Errc::world_reformed);
  // The others notice, and all can form a new one.
  world.on_all([&](int rank, Rig& other) {
    if (rank == 0) return;
    const auto y = other.put(std::vector<float>(1 << 20));
    EXPECT_EQ(
        other.execute(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1 << 20, y, y}).code(),
        Errc::peer_lost);
  });
  for (int i = 0; i < 3; ++i) {
    for (int rank = 0; rank < 3; ++rank) world[rank].engine->collectives().abort();
    world.connect();
    expect_sum_works(world);
  }
}

// Groups beside the world: each call runs on its own communicator, and one abort ends all.
TEST(CommunicatorEnd, SeveralLiveSideBySideAndEndTogether) {
  World world(3);
  world.connect();
  const std::vector<int> members{2, 0};
  Contributions contributions;
  const auto place_of = [&](int rank) { return Place{rank == 2 ? 0 : 1, 2, 5}; };
  for (const int rank : members)
    contributions.push_back(world[rank].engine->collectives().contribute(place_of(rank)).take());
  world.on_all([&](int rank, Rig& rig) {
    if (rank == 1) return;
    EXPECT_TRUE(rig.engine->collectives().connect(place_of(rank), contributions).ok());
  });
  const auto sum = [](Rig& rig, std::uint32_t communicator, float value) -> Result<float> {
    const auto x = rig.put(std::vector<float>{value});
    const collective::AllReduce op{DType::f32, ReduceOp::sum, 0, 1, x, x};
    const Call call(Lane::collective, rig.addresses, {}, communicator);
    if (auto queued = rig.engine->run(op, call); !queued) return queued.error();
    if (auto ended = rig.engine->synchronize(Lane::collective); !ended) return ended.error();
    return rig.get<float>(x)[0];
  };
  world.on_all([&](int rank, Rig& rig) {
    const auto mine = static_cast<float>(rank + 1);
    for (int i = 0; i < 3; ++i) {
      if (rank != 1) {
        EXPECT_EQ(sum(rig, 5, mine).take(), 4.0f);
      }
      EXPECT_EQ(sum(rig, 0, mine).take(), 6.0f);
    }
    if (rank == 1) {
      EXPECT_EQ(sum(rig, 5, mine).code(), Errc::world_reformed);
    }
  });
  world.on_all([&](int rank, Rig& rig) {
    rig.engine->collectives().drop(rank == 1 ? 0 : 5);
    const auto gone = sum(rig, rank == 1 ? 0 : 5, 1);
    EXPECT_EQ(gone.code(), Errc::world_reformed);
  });
  auto& rig = world[0];
  rig.engine->collectives().abort();
  EXPECT_EQ(sum(rig, 0, 1).code(), Errc::world_reformed);
}

TEST(CommunicatorEnd, AFailureStaysUntilTheNextCommunicator) {
  World world(2);
  world.connect();
  world[1].engine->collectives().abort();
  auto& rig = world[0];
  const auto x = rig.put(std::vector<float>{1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.execute(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1, x, x}).code(),
              Errc::peer_lost);
    EXPECT_EQ(rig.engine->synchronize(Lane::collective).code(), Errc::peer_lost);
  }
  EXPECT_TRUE(rig.engine->synchronize(library_lane("blas")).ok());
  world.connect();
  EXPECT_TRUE(rig.engine->synchronize(Lane::collective).ok());
  expect_sum_works(world);
}

TEST(CommunicatorEnd, AbortUnblocksConnect) {
  World world(3);
  Contributions contributions;
  for (int i = 0; i < 3; ++i)
    contributions.push_back(world[i].engine->collectives().contribute({i, 3}).take());
  for (const int rank :
       {0, 1, 2}) {  // one waits for callers, one for an answer, and one in between
    std::jthread aborter([&] {
      std::this_thread::sleep_for(30ms);
      world[rank].engine->collectives().abort();
    });
    EXPECT_EQ(world[rank].engine->collectives().connect({rank, 3}, contributions).code(),
              Errc::peer_lost);
  }
  world.connect();
  expect_sum_works(world);
}

TEST(CommunicatorEnd, AContributionThatComesTooLateIsRefused) {
  Rig rig;
  auto& collectives = rig.engine->collectives();
  const auto descriptors = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const auto before = descriptors();
  const Place place{0, 2, 5, collectives.aborts()};
  collectives.abort();
  EXPECT_EQ(collectives.contribute(place).code(), Errc::peer_lost);
  EXPECT_EQ(descriptors(), before) << "nobody would ever close what it has left";
  EXPECT_TRUE(collectives.contribute({0, 2, 5, collectives.aborts()}).ok());
}

TEST(CommunicatorEnd, StrangersAtThePortDoNoHarm) {
  World world(2);
  Contributions contributions;
  for (int i = 0; i < 2; ++i)
    contributions.push_back(world[i].engine->collectives().contribute({i, 2}).take());
  // A caller with another world's token: rank 1's introduction to a rank 0 that has been replaced
  // meanwhile.
  auto stale = contributions;
  stale[0].back() ^= std::byte{1};
  World other(2);
  other[1].engine->collectives().contribute({1, 2}).take();
  std::jthread stranger([&] { (void)other[1].engine->collectives().connect({1, 2}, stale); });
  std::this_thread::sleep_for(20ms);
  world.on_all([&](int rank, Rig& rig) {
    EXPECT_TRUE(rig.engine->collectives().connect({rank, 2}, contributions).ok());
  });
  expect_sum_works(world);
  other[1].engine->collectives().abort();
}

/// The port on which this process listens.
sockaddr_in listening_address() {
  sockaddr_in address{};
  for (int fd = 3; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0)
      continue;
    length = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
        address.sin_family == AF_INET)
      break;
  }
  if (address.sin_addr.s_addr == INADDR_ANY) address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

TEST(CommunicatorEnd, CallersThatSayNothingKeepNobodyOut) {
  constexpr int kCallers = 1026;  // two more than are waited for at once
  ipc::raise_descriptor_limit();
  if (!ipc::keep_descriptors(2 * kCallers + 200).ok()) GTEST_SKIP() << "too few descriptors";
  World world(2);
  Contributions contributions{world[0].engine->collectives().contribute({0, 2}).take()};
  const auto address = listening_address();
  ASSERT_NE(address.sin_port, 0);
  contributions.push_back(world[1].engine->collectives().contribute({1, 2}).take());
  std::atomic<bool> formed{false};
  std::jthread waiting([&] {
    formed = world[0].engine->collectives().connect({0, 2}, contributions).ok();
  });
  std::vector<UniqueFd> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(callers.back().get(), reinterpret_cast<const sockaddr*>(&address),
                        sizeof address),
              0)
        << i;
  }
  EXPECT_TRUE(world[1].engine->collectives().connect({1, 2}, contributions).ok());
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!formed && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(formed) << "the other rank is not let in";
  if (!formed) world[0].engine->collectives().abort();
  waiting.join();
  if (formed) expect_sum_works(world);
}

#if !defined(__SANITIZE_THREAD__)  // fork and that sanitizer do not go together

/// A rank in a process of its own that takes part in all-reduces without end.
class ForkedRank {
 public:
  ForkedRank(int rank, int size, std::size_t count) : rank_(rank), size_(size), count_(count) {
    check(::pipe(up_.data()) == 0 && ::pipe(down_.data()) == 0, "pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      run();
      ::_exit(0);
    }
  }
  ~ForkedRank() {
    kill();
    for (const int fd : {up_[0], up_[1], down_[0], down_[1]}) ::close(fd);
  }
  ForkedRank(const ForkedRank&) = delete;
  ForkedRank& operator=(const ForkedRank&) = delete;

  std::vector<std::byte> contribution() const { return receive(up_[0]); }
  void begin(const Contributions& contributions) const {
    for (const auto& contribution : contributions) send(down_[1], contribution);
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  static void send(int fd, const std::vector<std::byte>& bytes) {
    const auto size = bytes.size();
    check(::write(fd, &size, sizeof size) == sizeof size &&
              ::write(fd, bytes.data(), size) == static_cast<::ssize_t>(size),
          "write");
  }
  static std::vector<std::byte> receive(int fd) {
    std::size_t size = 0;
    check(::read(fd, &size, sizeof size) == sizeof size, "read");
    std::vector<std::byte> bytes(size);
    check(::read(fd, bytes.data(), size) == static_cast<::ssize_t>(size), "read");
    return bytes;
  }
  void run() const {
    Rig rig(std::uint64_t{64} << 20);
    send(up_[1], rig.engine->collectives().contribute({rank_, size_}).take());
    Contributions contributions;
    for (int i = 0; i < size_; ++i) contributions.push_back(receive(down_[0]));
    rig.engine->collectives().connect({rank_, size_}, contributions).take();
    const auto x = rig.put(std::vector<float>(count_));
    while (rig.execute(collective::AllReduce{DType::f32, ReduceOp::max, 0, count_, x, x}).ok()) {
    }
    for (;;) ::pause();  // until killed
  }

  int rank_, size_;
  std::size_t count_;
  std::array<int, 2> up_{}, down_{};
  ::pid_t pid_ = -1;
};

TEST(CommunicatorEnd, AKilledPeerIsLostToAllOthers) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{4'000'000}}) {
    for (int round = 0; round < 5; ++round) {
      // Rank 2 is not next to rank 0 on the ring: that one learns it through the others.
      ForkedRank victim(2, 4, count);
      World survivors(3, std::uint64_t{64} << 20);
      const std::array<int, 3> ranks = {0, 1, 3};
      Contributions contributions(4);
      contributions[2] = victim.contribution();
      for (int i = 0; i < 3; ++i) {
        const auto rank = ranks[static_cast<std::size_t>(i)];
        contributions[static_cast<std::size_t>(rank)] =
            survivors[i].engine->collectives().contribute({rank, 4}).take();
      }
      victim.begin(contributions);
      const int last = count == 1 ? 5 + 7 * round : 1 + round;  // before its death
      std::atomic<int> reductions{0};
      std::atomic<bool> killed{false};
      std::jthread killer([&](const std::stop_token& stop) {
        while (reductions < last && !stop.stop_requested()) std::this_thread::sleep_for(100us);
        killed = true;
        victim.kill();
      });
      survivors.on_all([&](int i, Rig& rig) {
        const auto rank = ranks[static_cast<std::size_t>(i)];
        ASSERT_TRUE(rig.engine->collectives().connect({rank, 4}, contributions));
        const auto x = rig.put(std::vector<float>(count));
        Result<void> outcome;
        for (; outcome.ok(); reductions += i == 0)
          outcome = rig.execute(collective::AllReduce{DType::f32, ReduceOp::max, 0, count, x, x});
        EXPECT_EQ(outcome.code(), Errc::peer_lost) << outcome.error().to_string();
        EXPECT_TRUE(killed) << "it was lost while it lived";
      });
    }
  }
}

#endif

}  // namespace
}  // namespace troupe::host
