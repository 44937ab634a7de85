#include "rank/net/fd_exchange.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "common/core/log.hpp"
#include "common/ipc/descriptors.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::rank_process {

struct FdExchange::Request {
  std::int32_t rank = 0;
  std::uint32_t reserved = 0;
  std::array<std::uint64_t, 2> cookie{};  ///< of the rank that is asked …
  std::array<std::uint64_t, 2> own{};     ///< … and of the one that asks
  std::uint64_t number = 0;
};
struct FdExchange::Answer {
  std::uint32_t code = 0;  ///< Errc
  std::uint32_t reserved = 0;
};

namespace {

struct Address {
  sockaddr_un socket{};
  socklen_t length = 0;
};

/// An abstract name: the first byte is 0.
Address address_of(const FdIdentity& identity) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  const int written =
      std::snprintf(address.socket.sun_path + 1, sizeof address.socket.sun_path - 1,
                    "troupe-%016llx%016llx", static_cast<unsigned long long>(identity.name[0]),
                    static_cast<unsigned long long>(identity.name[1]));
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                          static_cast<std::size_t>(written));
  return address;
}

Result<UniqueFd> make_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return ipc::system_error("socket");
  const timeval patience{.tv_sec = FdExchange::kPatience.count(), .tv_usec = 0};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
    return ipc::system_error("setsockopt");
  return fd;
}

/// The process that made the other end of the connection; none if the kernel does not say.
ucred credentials(int socket) {
  ucred who{.pid = -1, .uid = UINT32_MAX, .gid = UINT32_MAX};
  socklen_t length = sizeof who;
  (void)::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length);
  return who;
}

/// The next message of exactly that size.
template <class Message>
Result<ipc::Packet> await(const ipc::Socket& socket, Message& message) {
  pollfd readable{socket.fd(), POLLIN, 0};
  const auto patience =
      std::chrono::duration_cast<std::chrono::milliseconds>(FdExchange::kPatience).count();
  if (::poll(&readable, 1, static_cast<int>(patience)) == 0)
    return Error{Errc::timeout, 0, "the other rank does not answer"};
  auto packet = socket.receive();
  if (!packet) return packet.error();
  if (!*packet || (*packet)->bytes.size() != sizeof message)
    return Error{Errc::invalid, 0, "a malformed message on the socket between ranks"};
  std::memcpy(&message, (*packet)->bytes.data(), sizeof message);
  return std::move(**packet);
}

}  // namespace

Result<std::unique_ptr<FdExchange>> FdExchange::open(
    int node, const std::optional<std::array<std::uint64_t, 4>>& secret) {
  std::unique_ptr<FdExchange> made(new FdExchange);
  auto& identity = made->identity_;
  identity.pid = secret ? 0 : ::getpid();
  identity.uid = ::geteuid();
  identity.node = node;
  std::array<std::uint64_t, 4> random = secret.value_or(std::array<std::uint64_t, 4>{});
  if (!secret && ::getrandom(random.data(), sizeof random, 0) != sizeof random)
    return ipc::system_error("getrandom");
  identity.name = {random[0], random[1]};
  identity.cookie = {random[2], random[3]};
  auto listener = make_socket();
  if (!listener) return listener.error();
  const auto address = address_of(identity);
  if (::bind(listener->get(), reinterpret_cast<const sockaddr*>(&address.socket), address.length) !=
      0)
    return ipc::system_error("bind");
  if (::listen(listener->get(), 128) != 0) return ipc::system_error("listen");
  made->listener_ = std::move(*listener);
  auto bell = ipc::Doorbell::create();
  if (!bell) return bell.error();
  made->stop_ = std::move(*bell);
  identity.listening = 1;
  return made;
}

FdExchange::~FdExchange() {
  if (!thread_.joinable()) return;
  stop_.ring();
  thread_.join();
}

void FdExchange::set_peers(std::vector<FdIdentity> peers, int own_rank,
                           std::function<std::optional<int>(int)> node_of) {
  peers_ = std::move(peers);
  node_of_ = std::move(node_of);
  own_rank_ = own_rank;
  thread_ = std::thread([this] { serve(); });
}

bool FdExchange::reaches(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= peers_.size() || peers_[index].listening == 0) return false;
  const auto moved = node_of_ ? node_of_(rank) : std::nullopt;
  return moved.value_or(peers_[index].node) == identity_.node;
}

void FdExchange::offer(std::uint64_t number, std::shared_ptr<UniqueFd> fd) {
  const std::lock_guard lock(mutex_);
  offered_[number] = std::move(fd);
}

void FdExchange::withdraw(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  offered_.erase(number);
}

Result<void> FdExchange::known(const ipc::Socket& socket, int rank) const {
  const auto who = credentials(socket.fd());
  if (rank >= 0 && reaches(rank)) {
    const auto& peer = peers_[static_cast<std::size_t>(rank)];
    if ((peer.pid == 0 || who.pid == peer.pid) && who.uid == peer.uid) return {};
  }
  return Error{Errc::invalid, 0,
               "process " + std::to_string(who.pid) + " of user " + std::to_string(who.uid) +
                   " is not rank " + std::to_string(rank)};
}

Result<UniqueFd> FdExchange::take(int rank, std::uint64_t number) const {
  if (!reaches(rank)) return Error{Errc::invalid, 0, "not a rank of this node"};
  const auto& peer = peers_[static_cast<std::size_t>(rank)];
  auto made = make_socket();
  if (!made) return made.error();
  const ipc::Socket socket(std::move(*made));
  const auto address = address_of(peer);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address.socket), address.length) !=
      0)
    return ipc::system_error("connect");
  if (auto checked = known(socket, rank); !checked) return checked.error();
  const Request request{.rank = own_rank_,
                        .reserved = 0,
                        .cookie = peer.cookie,
                        .own = identity_.cookie,
                        .number = number};
  if (auto sent = socket.send(std::as_bytes(std::span(&request, 1))); !sent) return sent.error();
  Answer answer;
  auto packet = await(socket, answer);
  if (!packet) return packet.error();
  if (packet->fd_lost) return ipc::no_descriptor_left("memory of another rank");
  if (answer.code != 0 || !packet->fd)
    return Error{Errc::stale, 0, "the other rank does not give its memory away"};
  return std::move(packet->fd);
}

void FdExchange::serve() {
  for (;;) {
    pollfd fds[] = {{listener_.get(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}};
    if (::poll(fds, std::size(fds), -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    if (fds[0].revents == 0) continue;
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    // Other users are not even listened to: their silence would cost time.
    if (connection && credentials(connection.get()).uid == identity_.uid)
      answer(std::move(connection));
  }
}

void FdExchange::answer(UniqueFd connection) {
  const ipc::Socket socket(std::move(connection));
  Request request;
  const auto refuse = [&](const Error& why) {
    log::warn("net", "a request for memory is refused: {}", why.to_string());
    const Answer refusal{static_cast<std::uint32_t>(Errc::invalid), 0};
    (void)socket.send(std::as_bytes(std::span(&refusal, 1)));
  };
  if (auto asked = await(socket, request); !asked) return refuse(asked.error());
  if (auto checked = known(socket, request.rank); !checked) return refuse(checked.error());
  if (request.cookie != identity_.cookie ||
      request.own != peers_[static_cast<std::size_t>(request.rank)].cookie) {
    return refuse({Errc::invalid, 0, "a wrong cookie"});
  }
  std::shared_ptr<UniqueFd> fd;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = offered_.find(request.number); it != offered_.end()) fd = it->second;
  }
  const Answer reply{static_cast<std::uint32_t>(fd ? Errc::ok : Errc::stale), 0};
  (void)socket.send(std::as_bytes(std::span(&reply, 1)), fd ? fd->get() : -1);
}

}  // namespace troupe::rank_process
