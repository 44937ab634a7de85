#include "common/links/addresses.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <span>

namespace troupe::net {
namespace {

std::span<const keeper::NetworkAddress> addresses(const keeper::Card& card) {
  return {card.addresses.data(),
          std::min<std::size_t>(card.address_count, keeper::Card::kAddresses)};
}

bool share_a_network(const keeper::NetworkAddress& a, const keeper::NetworkAddress& b) {
  return a.mask != 0 && a.mask == b.mask && (a.address & a.mask) == (b.address & b.mask);
}

}  // namespace

sockaddr_in address_of(const keeper::Card& to, const keeper::Card& from) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = to.port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (to.network == from.network) return address;
  const auto theirs = addresses(to);
  for (const auto& one : theirs) {
    const bool near =
        std::any_of(addresses(from).begin(), addresses(from).end(),
                    [&](const keeper::NetworkAddress& own) { return share_a_network(one, own); });
    // All hosts have that of the loopback.
    if (!near || (ntohl(one.address) >> 24) == IN_LOOPBACKNET) continue;
    address.sin_addr.s_addr = one.address;
    return address;
  }
  if (!theirs.empty()) address.sin_addr.s_addr = theirs.front().address;
  return address;
}

}  // namespace troupe::net
