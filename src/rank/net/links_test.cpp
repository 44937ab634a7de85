// Links between ranks that are all in this process: order, size, and ranks that die and come back.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "rank/net/links/link_exchange.hpp"
#include "rank/net/links/link_messages.hpp"
#include "rank/net/links/start_log.hpp"

namespace troupe::rank_process {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}
std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The sockets of a job's ranks, as their keepers hold them.
struct Places {
  explicit Places(int size) {
    job.cookie = {1, 2};
    for (int rank = 0; rank < size; ++rank) {
      UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      check(
          ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          "bind");
      check(::listen(listener.get(), 64) == 0, "listen");
      socklen_t length = sizeof address;
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
      job.cards.push_back({.port = address.sin_port});
      listeners.push_back(std::move(listener));
    }
  }
  /// A process of a rank.
  std::unique_ptr<LinkHub> start(int rank, std::uint32_t incarnation = 0) const {
    auto its = job;
    its.rank = rank;
    its.incarnation = incarnation;
    const auto& listener = listeners[static_cast<std::size_t>(rank)];
    return std::make_unique<LinkHub>(its, UniqueFd(::dup(listener.get())));
  }
  keeper::Job job;
  std::vector<UniqueFd> listeners;
};

/// Calls f until it is true.
template <class F>
bool eventually(const F& f) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!f()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

/// One that receives, and keeps what has come.
struct Receiver {
  Receiver(LinkHub& hub, LinkChannel channel) : messages(hub, channel) {}
  bool look() {
    return messages.receive([this](int rank, int tag, Bytes bytes) {
      come.push_back(std::to_string(rank) + ":" + std::to_string(tag) + ":" + text_of(bytes));
    });
  }
  LinkMessages messages;
  std::vector<std::string> come;
};

TEST(Links, MessagesComeInOrderAndAsAWhole) {
  const Places places(2);
  const auto one = places.start(0), other = places.start(1);
  Receiver from(*one, LinkChannel::world), to(*other, LinkChannel::world);
  std::vector<std::string> expected;
  for (int i = 0; i < 200; ++i) {
    const std::string text(static_cast<std::size_t>(i % 7 == 0 ? 300'000 : i),
                           static_cast<char>('a' + i % 26));
    from.messages.send(1, i, bytes_of(text));
    expected.push_back("0:" + std::to_string(i) + ":" + text);
  }
  ASSERT_TRUE(eventually([&] {
    (void)from.look();
    (void)to.look();
    return to.come.size() == expected.size();
  }));
  EXPECT_EQ(to.come, expected);
  EXPECT_TRUE(from.come.empty());
}

/// The other end of a Links' connection, byte by byte.
struct Wire {
  explicit Wire(UniqueFd made) : socket(std::move(made)) {
    (void)::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  }
  template <class T>
  void put(const T& value) const {
    put_all(std::as_bytes(std::span(&value, 1)));
  }
  void put_all(std::span<const std::byte> bytes) const {
    ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] Bytes get_all(std::size_t size) const {
    Bytes bytes(size);
    EXPECT_EQ(::recv(socket.get(), bytes.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return bytes;
  }
  template <class T>
  [[nodiscard]] T get() const {
    T value{};
    const auto bytes = get_all(sizeof value);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&value));
    return value;
  }
  UniqueFd socket;
};
constexpr std::uint64_t kOffered = std::uint64_t{1} << 63;
constexpr std::byte kTaken{1}, kRefused{2};

Bytes large(char fill) {
  return Bytes(std::size_t{3} << 20, static_cast<std::byte>(fill));
}

/// A large message lies where the sender has it, and its receiver reads it there.
TEST(Links, ALargeMessageOnTheSameHostIsReadWhereItLies) {
  const Places places(2);
  const auto one = places.start(0);
  Links from(*one, LinkChannel::world);
  const auto first = large('a'), second = large('b');
  int sent = 0;
  from.send(1, {.tag = 1}, first, [&] { ++sent; });
  from.send(1, {.tag = 2}, second, [&] { ++sent; });
  UniqueFd accepted;
  ASSERT_TRUE(eventually([&] {
    accepted.reset(::accept(places.listeners[1].get(), nullptr, nullptr));
    return static_cast<bool>(accepted);
  }));
  const Wire wire(std::move(accepted));
  const auto look = [&](int wanted) {
    return eventually([&] {
      (void)from.look({.arrived = [](int, const Links::Head&, const Bytes&, std::byte*) {}});
      return sent == wanted;
    });
  };
  (void)look(0);
  (void)wire.get_all(one->connect(1, LinkChannel::world)->introduction.size());
  EXPECT_EQ(wire.get<Links::Head>().bytes, kOffered | first.size());
  Bytes read(first.size());
  EXPECT_TRUE(net::read(wire.get<net::NearMemory>(), read));
  EXPECT_EQ(read, first);
  EXPECT_EQ(sent, 0) << "it has not answered";
  wire.put(kTaken);
  ASSERT_TRUE(look(1));
  EXPECT_EQ(wire.get<std::byte>(), kTaken) << "it is confirmed";
  // A receiver that cannot read it there gets it, and all later ones, through the connection.
  EXPECT_EQ(wire.get<Links::Head>().tag, 2u);
  (void)wire.get<net::NearMemory>();
  wire.put(kRefused);
  std::thread reading([&] { EXPECT_EQ(wire.get_all(second.size()), second); });
  EXPECT_TRUE(look(2));
  reading.join();
  from.send(1, {.tag = 3}, first, [&] { ++sent; });
  std::thread rest([&] {
    EXPECT_EQ(wire.get<Links::Head>().bytes, first.size());
    EXPECT_EQ(wire.get_all(first.size()), first);
  });
  EXPECT_TRUE(look(3));
  rest.join();
}

TEST(Links, WhatIsNotTheSendersMemoryIsRefused) {
  const Places places(2);
  const auto one = places.start(0), other = places.start(1);
  Receiver to(*other, LinkChannel::world);
  auto made = one->connect(1, LinkChannel::world).take();
  pollfd connected{made.socket.get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&connected, 1, 10'000), 1);
  const Wire wire(std::move(made.socket));
  const auto message = large('a'), wrong = large('b');
  auto place = *net::offer(wrong);
  place.proof[1] ^= 1;
  Bytes nothing(16);
  EXPECT_FALSE(net::read(place, nothing));
  wire.put_all(made.introduction);
  wire.put(Links::Head{.tag = 0, .key = 0, .bytes = kOffered | message.size()});
  wire.put(place);
  std::thread sender([&] {
    EXPECT_EQ(wire.get<std::byte>(), kRefused);
    wire.put_all(message);
  });
  EXPECT_TRUE(eventually([&] {
    (void)to.look();
    return !to.come.empty();
  }));
  sender.join();
  EXPECT_EQ(to.come, std::vector<std::string>{"0:0:" + text_of(message)});
}

/// Until it is confirmed the sender may have given the memory up.
TEST(Links, WhatTheSenderHasGivenUpDoesNotArrive) {
  const Places places(2);
  const auto one = places.start(0), other = places.start(1);
  Links from(*one, LinkChannel::world), to(*other, LinkChannel::world);
  std::vector<std::uint32_t> come;
  const Links::Taker taker{.arrived = [&](int, const Links::Head& head, const Bytes&, std::byte*) {
    come.push_back(head.tag);
  }};
  const auto message = large('a');
  bool sent = false;
  from.send(1, {.tag = 1}, message, [&] { sent = true; });
  const auto look_at = [&](Links& links) {
    for (int i = 0; i < 20; ++i) {
      (void)links.look(taker);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  look_at(from);  // it is offered
  look_at(to);    // and read
  EXPECT_FALSE(sent);
  from.forget(1);
  EXPECT_TRUE(sent);
  from.send(1, {.tag = 2}, bytes_of("small"));
  ASSERT_TRUE(eventually([&] {
    (void)from.look(taker);
    (void)to.look(taker);
    return !come.empty();
  }));
  EXPECT_EQ(come, std::vector<std::uint32_t>{2});
}

TEST(Links, WhoHasNoCookieIsNotHeard) {
  const Places places(2);
  auto stranger = Places(2);
  stranger.job.cards = places.job.cards;
  stranger.job.cookie = {1, 3};
  const auto hub = places.start(0);
  Receiver to(*hub, LinkChannel::world);
  auto job = stranger.job;
  job.rank = 1;
  const LinkHub other(job, UniqueFd(::dup(stranger.listeners[1].get())));
  LinkMessages from(const_cast<LinkHub&>(other), LinkChannel::world);
  from.send(0, 1, bytes_of("let me in"));
  for (int i = 0; i < 200; ++i) {
    (void)from.receive([](int, int, const Bytes&) {});
    (void)to.look();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_TRUE(to.come.empty());
}

TEST(Links, AllLeaveTogether) {
  const Places places(3);
  std::vector<std::unique_ptr<LinkHub>> hubs;
  std::vector<std::unique_ptr<Receiver>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    hubs.push_back(places.start(rank));
    ranks.push_back(std::make_unique<Receiver>(*hubs.back(), LinkChannel::tokens));
  }
  ranks[0]->messages.send(2, 5, bytes_of("last words"));
  EXPECT_FALSE(ranks[0]->messages.all_leave());
  EXPECT_FALSE(ranks[1]->messages.all_leave());
  std::vector<bool> left(3);
  ASSERT_TRUE(eventually([&] {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      (void)ranks[rank]->look();
      if (!left[rank]) left[rank] = ranks[rank]->messages.all_leave();
    }
    return left == std::vector<bool>(3, true);
  }));
  (void)ranks[2]->look();
  EXPECT_EQ(ranks[2]->come, std::vector<std::string>{"0:5:last words"});
}

/// A message on its way to a dead process does not reach its successor, and what the dead one has
/// said is not heard once the successor is known.
TEST(Links, NothingPassesFromOneIncarnationToTheNext) {
  const Places places(2);
  const auto one = places.start(0);
  Receiver living(*one, LinkChannel::world);
  auto dying = places.start(1);
  {
    Receiver dead(*dying, LinkChannel::world);
    living.messages.send(1, 1, bytes_of("hello"));
    ASSERT_TRUE(eventually([&] {
      (void)living.look();
      (void)dead.look();
      return dead.come.size() == 1;
    }));
  }
  dying.reset();
  living.messages.send(1, 2, bytes_of("for the dead"));
  for (int i = 0; i < 20; ++i) (void)living.look();

  const auto reborn = places.start(1, 1);
  Receiver successor(*reborn, LinkChannel::world);
  successor.messages.send(0, 3, bytes_of("I am back"));
  ASSERT_TRUE(eventually([&] {
    (void)successor.look();
    (void)living.look();
    return living.come.size() == 1;
  }));
  EXPECT_TRUE(one->peers().learn(1, 1));
  EXPECT_FALSE(one->peers().learn(1, 1)) << "it is known";
  EXPECT_EQ(one->peers().deaths(), 1u);
  living.messages.send(1, 4, bytes_of("welcome"));
  ASSERT_TRUE(eventually([&] {
    (void)living.look();
    (void)successor.look();
    return !successor.come.empty();
  }));
  EXPECT_EQ(successor.come, std::vector<std::string>{"0:4:welcome"});
}

/// A rank goes to another place: whoever hears of that sends there, also what was to be sent before
/// it was known where that is.
TEST(Links, AMoveIsFollowed) {
  const Places places(3);
  const auto one = places.start(0);
  auto dying = places.start(1);
  Receiver living(*one, LinkChannel::world);
  living.messages.send(1, 1, bytes_of("for the dead"));
  for (int i = 0; i < 20; ++i) (void)living.look();
  dying.reset();
  const auto incarnation = keeper::incarnation_of(1, 0);
  EXPECT_TRUE(one->peers().learn(1, incarnation));
  living.messages.send(1, 2, bytes_of("welcome"));
  for (int i = 0; i < 20; ++i) (void)living.look();
  EXPECT_TRUE(living.messages.sending());
  // Its process listens where place 2 is.
  auto job = places.job;
  job.rank = 1;
  job.incarnation = incarnation;
  job.cards[1] = job.cards[2];
  job.cards[1].moves = 1;
  const auto reborn = std::make_unique<LinkHub>(job, UniqueFd(::dup(places.listeners[2].get())));
  Receiver successor(*reborn, LinkChannel::world);
  one->move(1, job.cards[1]);
  ASSERT_TRUE(eventually([&] {
    (void)living.look();
    (void)successor.look();
    return !successor.come.empty();
  }));
  EXPECT_EQ(successor.come, std::vector<std::string>{"0:2:welcome"});
  one->move(1, places.job.cards[1]);
  EXPECT_EQ(one->card_of(1).port, places.job.cards[2].port) << "that is known";
}

/// A rank's start log serves other ranks, too, where it is the same for all.
TEST(LinkExchange, ARankAtAnotherPlaceHearsWhatOthersHave) {
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  const Places places(2);
  std::vector<std::unique_ptr<LinkHub>> hubs;
  for (int rank = 0; rank < 2; ++rank) hubs.push_back(places.start(rank));
  std::vector<std::thread> threads;
  const auto speak = [](LinkHub& hub, StartLog& log, int own) {
    Eras eras(hub.peers());
    const auto post = std::make_shared<LinkPost>(hub, eras, LinkChannel::hosts, false);
    using Renewal = LinkExchange::Renewal;
    LinkExchange all(post, {0, 1}, own, 7, Renewal::at_once, {&log, 0});
    LinkExchange node(post, {0, 1}, own, 8, Renewal::at_once, {&log, 3});
    const auto name = std::to_string(own);
    EXPECT_EQ(all.gather_text(name), (std::vector<std::string>{"0", "1"}));
    const auto near = node.gather_text(name);
    EXPECT_EQ(near, log.are_others() ? std::vector<std::string>(3, name)
                                     : (std::vector<std::string>{"0", "1"}));
    const auto incoming = all.all_to_all({bytes_of(name + " to 0"), bytes_of(name + " to 1")});
    EXPECT_EQ(text_of(incoming[0]), "0 to " + name);
    EXPECT_EQ(text_of(incoming[1]), "1 to " + name);
  };
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      StartLog log(UniqueFd(rank == 0 ? ::dup(file.get()) : ::memfd_create("other", 0)),
                   StartLog::Replay::nothing);
      speak(*hubs[static_cast<std::size_t>(rank)], log, rank);
    });
  }
  for (auto& thread : threads) thread.join();
  StartLog log(UniqueFd(::dup(file.get())), StartLog::Replay::others);
  speak(*hubs[1], log, 1);
  EXPECT_FALSE(log.replays());
}

UniqueFd log_file() {
  return UniqueFd(::memfd_create("test", MFD_CLOEXEC));
}

/// Calls f(exchange, rank) for each rank of a job, each on a thread.
template <class F>
void on_all(const Places& places, int size, const F& f) {
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::unique_ptr<LinkHub>> hubs;
  for (int rank = 0; rank < size; ++rank) hubs.push_back(places.start(rank));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto& hub = *hubs[static_cast<std::size_t>(rank)];
      Eras eras(hub.peers());
      const auto post = std::make_shared<LinkPost>(hub, eras, LinkChannel::hosts, false);
      LinkExchange exchange(post, all, rank, 7, LinkExchange::Renewal::at_once);
      f(exchange, rank);
      exchange.barrier();
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(LinkExchange, GivesEachWhatAllHaveGiven) {
  for (const int size : {1, 2, 3, 5, 8}) {
    const Places places(size);
    on_all(places, size, [&](LinkExchange& exchange, int rank) {
      std::vector<std::string> expected;
      for (int other = 0; other < size; ++other)
        expected.emplace_back(static_cast<std::size_t>(other * 3), 'x');
      EXPECT_EQ(exchange.gather_text(expected[static_cast<std::size_t>(rank)]), expected);
      std::vector<Bytes> outgoing;
      for (int other = 0; other < size; ++other)
        outgoing.push_back(bytes_of(std::to_string(rank) + " to " + std::to_string(other)));
      const auto incoming = exchange.all_to_all(outgoing);
      for (int other = 0; other < size; ++other)
        EXPECT_EQ(text_of(incoming[static_cast<std::size_t>(other)]),
                  std::to_string(other) + " to " + std::to_string(rank));
      const Bytes part(3'000'000, static_cast<std::byte>(rank));
      const int next = (rank + 1) % size, before = (rank + size - 1) % size;
      for (Bytes room : {Bytes(), Bytes(4'000'000)}) {
        const auto shifted = exchange.shift(part, next, before, std::move(room));
        EXPECT_EQ(shifted, Bytes(3'000'000, static_cast<std::byte>(before)));
      }
    });
  }
}

TEST(LinkExchange, EndsWhereARankHasDied) {
  const Places places(2);
  const auto hub = places.start(0);
  auto other = places.start(1);
  Eras eras(hub->peers());
  const auto post = std::make_shared<LinkPost>(*hub, eras, LinkChannel::hosts, false);
  LinkExchange exchange(post, {0, 1}, 0, 7, LinkExchange::Renewal::at_once);
  LinkExchange group(post, {0, 1}, 0, 8, LinkExchange::Renewal::never);
  std::thread news([&] {
    hub->peers().learn(1, 1);
    hub->wake_all();
  });
  EXPECT_THROW(exchange.barrier(), Exception);
  news.join();
  other.reset();
  // In the next era it goes on with the successor; a group that the program has made does not.
  eras.begin({5, 1});
  EXPECT_THROW(group.barrier(), Exception);
  const auto reborn = places.start(1, 1);
  reborn->peers().learn(0, 0);
  Eras its_eras(reborn->peers());
  its_eras.begin({5, 0});
  std::thread successor([&] {
    LinkExchange its(std::make_shared<LinkPost>(*reborn, its_eras, LinkChannel::hosts, false),
                     {0, 1}, 1, 7, LinkExchange::Renewal::at_once);
    its.barrier();
  });
  exchange.barrier();
  successor.join();
}

TEST(StartLog, ASuccessorHearsWhatItsPredecessorHas) {
  const auto file = log_file();
  const StartLog::Parts first{bytes_of("a"), bytes_of(""), bytes_of("ccc")}, second{bytes_of("d")};
  StartLog predecessor(UniqueFd(::dup(file.get())), StartLog::Replay::nothing);
  EXPECT_FALSE(predecessor.replays());
  predecessor.write(first);
  predecessor.write(second);
  StartLog successor(UniqueFd(::dup(file.get())), StartLog::Replay::own);
  EXPECT_TRUE(successor.replays());
  EXPECT_EQ(successor.read(), first);
  EXPECT_EQ(successor.read(), second);
  EXPECT_FALSE(successor.replays()) << "from here on it speaks with the others";
  EXPECT_TRUE(successor.is_open());
  successor.close();
  EXPECT_FALSE(successor.is_open());
}

}  // namespace
}  // namespace troupe::rank_process
