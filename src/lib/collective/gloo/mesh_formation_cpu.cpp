#include "lib/collective/gloo/mesh_formation_cpu.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

namespace troupe::host::cpu {
namespace {

/// What a rank tells the others beforehand.
struct Invitation {
  std::array<Address, kMaxOffered> addresses{};
  std::uint32_t offered = 0;
  std::uint32_t port = 0;
  std::uint64_t token = 0;
};
static_assert(std::has_unique_object_representations_v<Invitation>);

/// The first bytes of a connection.
struct Hello {
  std::uint64_t token = 0;  ///< of the rank that is called
  std::int64_t rank = 0;    ///< of the caller
};

Error failed(Errc code, const std::string& what) {
  return {code, errno, what + ": " + std::strerror(errno)};
}

void set_no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // without it only slower
}

}  // namespace

Result<void> MeshFormation::listen(const std::string& interface) {
  auto interfaces = list_interfaces();
  if (!interfaces) return interfaces.error();
  auto offers = choose_offers(*interfaces, resolve_own_name(), interface);
  if (!offers) return offers.error();
  offers_ = std::move(*offers);
  // Where there is one address, strangers on other networks need not see the port.
  const auto address =
      socket_address(offers_.size() == 1 ? offers_.front() : any_address(offers_.front()), 0);
  listener_.reset(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_ ||
      ::bind(listener_.get(), reinterpret_cast<const ::sockaddr*>(&address.storage),
             address.length) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    return failed(Errc::io, "listening for the other ranks");
  }
  if (::getrandom(&token_, sizeof token_, 0) != sizeof token_) return failed(Errc::io, "getrandom");
  return {};
}

std::vector<std::byte> MeshFormation::contribution() const {
  Invitation invitation;
  invitation.token = token_;
  invitation.offered = static_cast<std::uint32_t>(offers_.size());
  std::copy(offers_.begin(), offers_.end(), invitation.addresses.begin());
  SocketAddress bound;
  bound.length = sizeof bound.storage;
  const int named =
      ::getsockname(listener_.get(), reinterpret_cast<::sockaddr*>(&bound.storage), &bound.length);
  check(named == 0, "a contribution before listen");
  // The port lies at the same place for both families.
  invitation.port = ntohs(reinterpret_cast<const ::sockaddr_in&>(bound.storage).sin_port);
  const auto bytes = std::as_bytes(std::span(&invitation, 1));
  return {bytes.begin(), bytes.end()};
}

/// connect() in progress.
class MeshFormation::Connecting {
 public:
  explicit Connecting(MeshFormation& formation)
      : formation_(formation),
        parts_(formation.parts_),
        there_(static_cast<std::size_t>(parts_.size)),
        missing_(parts_.size - 1) {}

  Result<void> run(const std::vector<std::vector<std::byte>>& contributions) {
    auto interfaces = list_interfaces();
    if (!interfaces) return interfaces.error();
    interfaces_ = std::move(*interfaces);
    for (int peer = 0; peer < parts_.rank; ++peer) {
      if (auto called = call(peer, contributions[static_cast<std::size_t>(peer)]); !called)
        return called;
    }
    while (missing_ > 0) {
      if (auto stepped = step(); !stepped) return stepped;
    }
    return {};
  }

 private:
  /// A connection that is not yet a peer's: a call that is going out, or a caller who has not said
  /// who it is.
  struct Pending {
    UniqueFd socket;
    int peer = -1;       ///< -1: a caller
    std::string called;  ///< what is being done, for an error
    Hello hello;         ///< to be sent, or what came so far
    std::size_t done = 0;
  };
  /// Strangers may call too, and say nothing. A rank that calls introduces itself at once, so
  /// beyond so many connections the one that has waited longest makes way.
  static constexpr std::size_t kMaxPending = 1024;

  Result<void> call(int peer, const std::vector<std::byte>& contribution) {
    Invitation invitation;
    if (contribution.size() == sizeof invitation)
      std::memcpy(&invitation, contribution.data(), sizeof invitation);
    if (invitation.offered == 0 || invitation.offered > kMaxOffered)
      return Error{Errc::invalid, 0, "not a contribution of a cpu engine"};
    const auto address = socket_address(
        choose_route(interfaces_, std::span(invitation.addresses).first(invitation.offered)),
        static_cast<std::uint16_t>(invitation.port));
    Pending pending;
    pending.socket.reset(
        ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!pending.socket) return failed(Errc::io, "socket");
    pending.peer = peer;
    pending.hello = {invitation.token, parts_.rank};
    pending.called = "connecting to rank " + std::to_string(peer) + " at " + to_string(address);
    if (::connect(pending.socket.get(), reinterpret_cast<const ::sockaddr*>(&address.storage),
                  address.length) != 0 &&
        errno != EINPROGRESS) {
      return failed(Errc::peer_lost, pending.called);
    }
    pending_.push_back(std::move(pending));
    return {};
  }

  Result<void> step() {
    std::vector<::pollfd> polled;
    for (const auto& pending : pending_) {
      polled.push_back(
          {pending.socket.get(), static_cast<short>(pending.peer >= 0 ? POLLOUT : POLLIN), 0});
    }
    polled.push_back({formation_.listener_.get(), POLLIN, 0});
    polled.push_back({parts_.wake, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR)
      return failed(Errc::io, "poll");
    if (parts_.aborted()) return Error{Errc::peer_lost, 0, "the communicator was aborted"};
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (auto advanced = pending_[i].peer >= 0 ? introduce(pending_[i]) : identify(pending_[i]);
          !advanced) {
        return advanced;
      }
    }
    std::erase_if(pending_, [](const Pending& pending) { return !pending.socket; });
    return polled[polled.size() - 2].revents != 0 ? accept_callers() : Result<void>();
  }

  Result<void> accept_callers() {
    for (std::size_t i = 0; i < kMaxPending; ++i) {  // then those who have spoken have a turn
      Pending caller;
      caller.socket.reset(
          ::accept4(formation_.listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!caller.socket) {
        const bool full = errno == EMFILE || errno == ENFILE;
        if (full && drop_oldest_caller()) continue;
        return full ? failed(Errc::io, "accepting a rank") : Result<void>();  // none is left
      }
      if (auto heard = identify(caller); !heard) return heard;
      if (!caller.socket) continue;
      if (pending_.size() >= kMaxPending) drop_oldest_caller();
      pending_.push_back(std::move(caller));
    }
    return {};
  }

  /// False if nobody is waited for but ranks that are called.
  bool drop_oldest_caller() {
    const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                     [](const Pending& pending) { return pending.peer < 0; });
    if (oldest == pending_.end()) return false;
    pending_.erase(oldest);
    return true;
  }

  Result<void> introduce(Pending& pending) {
    const auto sent =
        ::send(pending.socket.get(), reinterpret_cast<const char*>(&pending.hello) + pending.done,
               sizeof(Hello) - pending.done, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) return {};
      return failed(Errc::peer_lost, pending.called);
    }
    pending.done += static_cast<std::size_t>(sent);
    if (pending.done == sizeof(Hello)) adopt(pending, pending.peer);
    return {};
  }

  /// A caller that hangs up or is none of ours is dropped.
  Result<void> identify(Pending& pending) {
    const auto received =
        ::recv(pending.socket.get(), reinterpret_cast<char*>(&pending.hello) + pending.done,
               sizeof(Hello) - pending.done, 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (received <= 0) {
      pending.socket.reset();
      return {};
    }
    pending.done += static_cast<std::size_t>(received);
    if (pending.done < sizeof(Hello)) return {};
    const auto peer = pending.hello.rank;
    if (pending.hello.token != formation_.token_ || peer <= parts_.rank || peer >= parts_.size ||
        there_[static_cast<std::size_t>(peer)]) {
      pending.socket.reset();
      return {};
    }
    adopt(pending, static_cast<int>(peer));
    return {};
  }

  void adopt(Pending& pending, int peer) {
    set_no_delay(pending.socket.get());
    parts_.adopt(peer, std::move(pending.socket));
    there_[static_cast<std::size_t>(peer)] = true;
    --missing_;
  }

  MeshFormation& formation_;
  const Parts& parts_;
  std::vector<bool> there_;  ///< peers that are connected
  int missing_;
  std::vector<Interface> interfaces_;
  std::vector<Pending> pending_;
};

Result<void> MeshFormation::connect(const std::vector<std::vector<std::byte>>& contributions) {
  if (contributions.size() != static_cast<std::size_t>(parts_.size)) {
    return Error{Errc::invalid, 0, "a contribution of every rank is needed"};
  }
  auto formed = Connecting(*this).run(contributions);
  listener_.reset();
  return formed;
}

}  // namespace troupe::host::cpu
