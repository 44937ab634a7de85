#include "keeper/place.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "common/core/mix.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::keeper {
namespace {

constexpr int kWaiting =
    4096;  ///< connections that are not accepted yet; the system may allow fewer

/// The network namespace that this process is in, the boot of the host, and the host.
std::array<std::uint64_t, 3> network_of_process() {
  std::array<std::uint64_t, 3> which{};
  struct stat about {};
  if (::stat("/proc/self/ns/net", &about) == 0) which[0] = static_cast<std::uint64_t>(about.st_ino);
  char boot[64] = {};
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (file && ::read(file.get(), boot, sizeof boot) > 0) {
    Mix mix;
    mix.add(std::as_bytes(std::span(boot)));
    which[1] = mix.value();
  }
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  Mix mix;
  mix.add(std::as_bytes(std::span(host)));
  which[2] = mix.value();
  return which;
}

}  // namespace

Result<UniqueFd> listen_anywhere() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ipc::system_error("socket");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
    return ipc::system_error("bind");
  if (::listen(fd.get(), kWaiting) != 0) return ipc::system_error("listen");
  return fd;
}

Result<Card> describe_place(int listener, int own) {
  Card card;
  ::gethostname(card.host.data(), card.host.size() - 1);
  card.network = network_of_process();
  for (const auto& [socket, port] :
       {std::pair(listener, &card.port), std::pair(own, &card.keeper_port)}) {
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0)
      return ipc::system_error("getsockname");
    *port = bound.sin_port;
  }
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return ipc::system_error("getifaddrs");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  for (const bool loopback : {false, true}) {
    for (const auto* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
          (one->ifa_flags & IFF_UP) == 0 || ((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback ||
          card.address_count == Card::kAddresses)
        continue;
      sockaddr_in address{}, mask{};
      std::memcpy(&address, one->ifa_addr, sizeof address);
      if (one->ifa_netmask != nullptr) std::memcpy(&mask, one->ifa_netmask, sizeof mask);
      card.addresses[card.address_count++] = {address.sin_addr.s_addr, mask.sin_addr.s_addr};
    }
  }
  if (card.address_count == 0)
    return Error{Errc::io, 0, "this host has no address of IPv4, by which ranks would speak"};
  return card;
}

}  // namespace troupe::keeper
