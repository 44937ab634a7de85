#include "lib/collective/gloo/network_cpu.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <optional>

namespace troupe::host::cpu {
namespace {

constexpr Address kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};  // 0.0.0.0
constexpr std::size_t kMappedBytes = 12;

bool is_ipv4(const Address& address) {
  return std::equal(address.begin(), address.begin() + kMappedBytes, kMapped.begin());
}

/// The address in an IPv4 or IPv6 socket address; nothing for other families.
std::optional<Address> address_of(const ::sockaddr* socket) {
  if (socket == nullptr) return std::nullopt;
  Address address = kMapped;
  if (socket->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const ::sockaddr_in*>(socket);
    std::memcpy(address.data() + kMappedBytes, &in->sin_addr, sizeof in->sin_addr);
    return address;
  }
  if (socket->sa_family == AF_INET6) {
    const auto* in = reinterpret_cast<const ::sockaddr_in6*>(socket);
    std::memcpy(address.data(), &in->sin6_addr, address.size());
    return address;
  }
  return std::nullopt;
}

/// Its own host knows such an address by itself only on one link: 169.254/16 and fe80::/10.
bool is_link_local(const Address& address) {
  if (is_ipv4(address)) return address[12] == 169 && address[13] == 254;
  return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

int prefix_of(const ::ifaddrs& entry) {
  const auto mask = address_of(entry.ifa_netmask);
  if (!mask) return 128;
  const std::size_t skipped = entry.ifa_addr->sa_family == AF_INET ? kMappedBytes : 0;
  int bits = static_cast<int>(8 * skipped);
  for (std::size_t i = skipped; i < mask->size(); ++i) bits += std::popcount((*mask)[i]);
  return bits;
}

bool in_subnet(const Address& address, const Interface& interface) {
  const auto whole = static_cast<std::size_t>(interface.prefix) / 8;
  if (!std::equal(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(whole),
                  interface.address.begin())) {
    return false;
  }
  const int rest = interface.prefix % 8;
  return rest == 0 || (address[whole] ^ interface.address[whole]) >> (8 - rest) == 0;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ::ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Error{Errc::io, errno, "getifaddrs"};
  const std::unique_ptr<::ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<Interface> interfaces;
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const auto address = address_of(entry->ifa_addr);
    if (!address || (entry->ifa_flags & IFF_UP) == 0 || is_link_local(*address)) continue;
    interfaces.push_back({entry->ifa_name, *address, prefix_of(*entry),
                          (entry->ifa_flags & IFF_LOOPBACK) != 0 || is_loopback(*address)});
  }
  return interfaces;
}

std::vector<Address> resolve_own_name() {
  char host[HOST_NAME_MAX + 1] = {};
  ::gethostname(host, HOST_NAME_MAX);
  ::addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  ::addrinfo* list = nullptr;
  if (::getaddrinfo(host, nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<Address> resolved;
  for (const auto* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (const auto address = address_of(entry->ai_addr)) resolved.push_back(*address);
  }
  return resolved;
}

Result<std::vector<Address>> choose_offers(std::span<const Interface> interfaces,
                                           std::span<const Address> resolved,
                                           const std::string& name) {
  std::vector<Address> offers;
  const auto collect = [&](bool ipv4, bool loopback) {
    for (const auto& interface : interfaces) {
      const bool wanted =
          name.empty() ? interface.loopback == loopback : interface.name == name && !loopback;
      if (wanted && is_ipv4(interface.address) == ipv4) offers.push_back(interface.address);
    }
    return !offers.empty();
  };
  if (!collect(true, false) && !collect(false, false) && !collect(true, true)) collect(false, true);
  if (offers.empty()) {
    if (name.empty()) return Error{Errc::io, 0, "this host has no network interface that is up"};
    return Error{Errc::invalid, 0, "gloo-interface: no address on a network interface " + name};
  }
  std::stable_partition(offers.begin(), offers.end(), [&](const Address& offer) {
    return std::find(resolved.begin(), resolved.end(), offer) != resolved.end();
  });
  if (offers.size() > kMaxOffered) offers.resize(kMaxOffered);
  return offers;
}

const Address& choose_route(std::span<const Interface> interfaces,
                            std::span<const Address> offers) {
  check(!offers.empty(), "choose_route: no offers");
  const Address* routed = nullptr;
  for (const auto& offer : offers) {
    const auto own = [&](const Interface& interface) { return interface.address == offer; };
    if (std::any_of(interfaces.begin(), interfaces.end(), own)) continue;
    const auto near = [&](const Interface& interface) { return in_subnet(offer, interface); };
    if (std::any_of(interfaces.begin(), interfaces.end(), near)) return offer;
    if (routed == nullptr) routed = &offer;
  }
  return routed == nullptr ? offers.front() : *routed;
}

SocketAddress socket_address(const Address& address, std::uint16_t port) {
  SocketAddress socket;
  if (is_ipv4(address)) {
    ::sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, address.data() + kMappedBytes, sizeof in.sin_addr);
    std::memcpy(&socket.storage, &in, socket.length = sizeof in);
  } else {
    ::sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.data(), address.size());
    std::memcpy(&socket.storage, &in, socket.length = sizeof in);
  }
  return socket;
}

std::string to_string(const SocketAddress& socket) {
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  ::getnameinfo(reinterpret_cast<const ::sockaddr*>(&socket.storage), socket.length, host,
                sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  return std::string(host) + " port " + port;
}

bool is_loopback(const Address& address) {
  if (is_ipv4(address)) return address[kMappedBytes] == 127;
  Address one{};
  one.back() = 1;
  return address == one;
}

Address any_address(const Address& like) {
  return is_ipv4(like) ? kMapped : Address{};
}

}  // namespace troupe::host::cpu
