#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/error.hpp>

/// Which of a host's addresses its peers on other hosts use.
///
/// No rank knows beforehand what the others can reach: a host's name may resolve to loopback, and
/// bridges for containers and virtual machines have the same address on every host. So each rank
/// offers all addresses that might do, and the caller chooses by what its own interfaces say.
namespace troupe::host::cpu {

/// An IPv6 address, or an IPv4 one mapped into it (RFC 4291, 2.5.5.2), in network order.
using Address = std::array<std::uint8_t, 16>;

/// One address of a network interface of this host.
struct Interface {
  std::string name;
  Address address{};
  int prefix = 128;  ///< bits of the subnet; 96 more than usually written for IPv4
  bool loopback = false;
};

struct SocketAddress {
  ::sockaddr_storage storage{};
  ::socklen_t length = 0;
};

/// More addresses than these are not offered.
inline constexpr std::size_t kMaxOffered = 8;

/// The addresses of all interfaces that are up, link-local ones left out. Errors: io.
Result<std::vector<Interface>> list_interfaces();

/// What this host's name resolves to; empty if it does not. May block on name resolution.
std::vector<Address> resolve_own_name();

/// The addresses to offer to peers, best first and of one family, at most kMaxOffered: those of the
/// interface `name`; with no name those of all interfaces but loopback, IPv4 rather than IPv6, what
/// the host's name resolves to in front; loopback if there are no others. Errors: invalid for an
/// interface that is not there, is down or has no address.
Result<std::vector<Address>> choose_offers(std::span<const Interface> interfaces,
                                           std::span<const Address> resolved,
                                           const std::string& name);

/// The one of a peer's offers to call, from a host with these interfaces. An address that this host
/// has itself leads to the peer only if the peer is on this host, and then all its offers are this
/// host's: so the first offer that is not, within a subnet of this host rather than beyond a
/// router; else the first of all. Not to be called without offers.
const Address& choose_route(std::span<const Interface> interfaces, std::span<const Address> offers);

/// "10.0.0.1 port 4711"
std::string to_string(const SocketAddress& socket);
SocketAddress socket_address(const Address& address, std::uint16_t port);
bool is_loopback(const Address& address);
/// The unspecified address of the same family: to listen on all interfaces.
Address any_address(const Address& like);

}  // namespace troupe::host::cpu
