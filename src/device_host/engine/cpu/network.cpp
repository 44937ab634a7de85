#include "device_host/engine/cpu/network.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace troupe::host::cpu {
namespace {

using Interfaces = std::unique_ptr<::ifaddrs, decltype(&::freeifaddrs)>;
using Addresses = std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)>;

SocketAddress copy_of(const ::sockaddr* address) {
  SocketAddress copy;
  copy.length = address->sa_family == AF_INET ? sizeof(::sockaddr_in) : sizeof(::sockaddr_in6);
  std::memcpy(&copy.storage, address, copy.length);
  return copy;
}

bool same_host(const ::sockaddr* a, const ::sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const ::sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const ::sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const ::sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const ::sockaddr_in6*>(b)->sin6_addr,
                     sizeof(::in6_addr)) == 0;
}

/// Calls accept(interface) for each that is up and has an address of the family; true if one was
/// accepted.
template <class Accept>
bool any_interface(const Interfaces& interfaces, int family, Accept&& accept) {
  for (const auto* entry = interfaces.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
    if ((entry->ifa_flags & IFF_UP) != 0 && accept(*entry)) return true;
  }
  return false;
}

}  // namespace

Result<SocketAddress> local_address() {
  ::ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Error{Errc::io, errno, "getifaddrs"};
  const Interfaces interfaces(list, &::freeifaddrs);
  SocketAddress found;
  if (const char* name = std::getenv("TROUPE_GLOO_INTERFACE"); name != nullptr && *name != '\0') {
    for (const int family : {AF_INET, AF_INET6}) {
      if (any_interface(interfaces, family, [&](const ::ifaddrs& entry) {
            if (std::strcmp(entry.ifa_name, name) != 0) return false;
            found = copy_of(entry.ifa_addr);
            return true;
          })) {
        return found;
      }
    }
    return Error{Errc::invalid, 0,
                 std::string("TROUPE_GLOO_INTERFACE: no address on interface ") + name};
  }
  char host[HOST_NAME_MAX + 1] = {};
  ::gethostname(host, HOST_NAME_MAX);
  for (const int family : {AF_INET, AF_INET6}) {
    ::addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    ::addrinfo* resolved = nullptr;
    if (::getaddrinfo(host, nullptr, &hints, &resolved) != 0) continue;
    const Addresses addresses(resolved, &::freeaddrinfo);
    for (const auto* candidate = resolved; candidate != nullptr; candidate = candidate->ai_next) {
      if (any_interface(interfaces, family, [&](const ::ifaddrs& entry) {
            return (entry.ifa_flags & IFF_LOOPBACK) == 0 &&
                   same_host(entry.ifa_addr, candidate->ai_addr);
          })) {
        return copy_of(candidate->ai_addr);
      }
    }
  }
  ::sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return copy_of(reinterpret_cast<const ::sockaddr*>(&loopback));
}

}  // namespace troupe::host::cpu
