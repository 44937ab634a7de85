#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/collective/gloo/network_cpu.hpp"

namespace troupe::host::cpu {
namespace {

Address address(const std::string& text) {
  Address parsed{};
  const bool ipv6 = text.find(':') != std::string::npos;
  check(::inet_pton(AF_INET6, ipv6 ? text.c_str() : ("::ffff:" + text).c_str(), parsed.data()) == 1,
        "not an address");
  return parsed;
}

Interface interface(const std::string& name, const std::string& text, int prefix) {
  const bool ipv6 = text.find(':') != std::string::npos;
  return {name, address(text), ipv6 ? prefix : 96 + prefix, is_loopback(address(text))};
}

std::vector<Address> addresses(std::initializer_list<std::string> texts) {
  std::vector<Address> list;
  for (const auto& text : texts) list.push_back(address(text));
  return list;
}

const Interface kLoopback = interface("lo", "127.0.0.1", 8);
const Interface kLoopback6 = interface("lo", "::1", 128);
const Interface kDocker = interface("docker0", "172.17.0.1", 16);

TEST(NetworkOffers, AllButLoopbackWithTheNameOfTheHostInFront) {
  const std::vector<Interface> host = {kLoopback, kDocker, interface("eth0", "10.1.0.5", 24),
                                       interface("ib0", "10.2.0.5", 24),
                                       interface("eth0", "fd00::5", 64)};
  EXPECT_EQ(choose_offers(host, addresses({"10.2.0.5"}), "").take(),
            addresses({"10.2.0.5", "172.17.0.1", "10.1.0.5"}));
  // A name that means loopback, as Debian's installer writes it, or nothing at all.
  const auto by_order = addresses({"172.17.0.1", "10.1.0.5", "10.2.0.5"});
  EXPECT_EQ(choose_offers(host, addresses({"127.0.1.1"}), "").take(), by_order);
  EXPECT_EQ(choose_offers(host, {}, "").take(), by_order);
}

TEST(NetworkOffers, OnlyTheInterfaceThatIsNamed) {
  const std::vector<Interface> host = {kLoopback, kDocker, interface("ib0", "10.2.0.5", 24)};
  EXPECT_EQ(choose_offers(host, addresses({"172.17.0.1"}), "ib0").take(), addresses({"10.2.0.5"}));
  EXPECT_EQ(choose_offers(host, {}, "lo").take(), addresses({"127.0.0.1"}));
  EXPECT_EQ(choose_offers(host, {}, "ib1").code(), Errc::invalid);
}

TEST(NetworkOffers, LoopbackAndIPv6WhereThereIsNothingElse) {
  EXPECT_EQ(choose_offers(std::vector{kLoopback, kLoopback6}, {}, "").take(),
            addresses({"127.0.0.1"}));
  EXPECT_EQ(choose_offers(std::vector{kLoopback, interface("eth0", "fd00::5", 64)}, {}, "").take(),
            addresses({"fd00::5"}));
  EXPECT_EQ(choose_offers(std::vector{kLoopback6}, {}, "").take(), addresses({"::1"}));
  EXPECT_FALSE(choose_offers({}, {}, "").ok());
}

TEST(NetworkOffers, AreBounded) {
  std::vector<Interface> host;
  for (int i = 0; i < 20; ++i)
    host.push_back(interface("eth" + std::to_string(i), "10.0.0." + std::to_string(i), 24));
  EXPECT_EQ(choose_offers(host, {}, "").take().size(), kMaxOffered);
}

TEST(NetworkRoute, AnAddressThatBothHostsHaveLeadsNowhere) {
  const std::vector<Interface> caller = {kLoopback, kDocker, interface("eth0", "10.1.0.5", 24)};
  EXPECT_EQ(choose_route(caller, addresses({"172.17.0.1", "10.1.0.6"})), address("10.1.0.6"));
}

TEST(NetworkRoute, ASubnetOfOursRatherThanBeyondARouter) {
  const std::vector<Interface> caller = {kLoopback, interface("eth0", "10.1.0.5", 22),
                                         interface("eth0", "fd00:0:0:8000::5", 49)};
  EXPECT_EQ(choose_route(caller, addresses({"192.168.7.1", "10.1.3.6"})), address("10.1.3.6"));
  EXPECT_EQ(choose_route(caller, addresses({"192.168.7.1", "10.1.4.6"})), address("192.168.7.1"));
  EXPECT_EQ(choose_route(caller, addresses({"fd00::6", "fd00:0:0:8001::6"})),
            address("fd00:0:0:8001::6"));
}

TEST(NetworkRoute, ThePeerOnThisHostAnswersAtItsFirstOffer) {
  const std::vector<Interface> host = {kLoopback, kDocker, interface("eth0", "10.1.0.5", 24)};
  const auto offers = choose_offers(host, {}, "").take();
  EXPECT_EQ(choose_route(host, offers), offers.front());
  EXPECT_EQ(choose_route(std::vector{kLoopback}, addresses({"127.0.0.1"})), address("127.0.0.1"));
}

TEST(NetworkAddress, IsWrittenWithItsPort) {
  EXPECT_EQ(to_string(socket_address(address("10.1.0.5"), 4711)), "10.1.0.5 port 4711");
  EXPECT_EQ(to_string(socket_address(address("fd00::5"), 80)), "fd00::5 port 80");
  EXPECT_EQ(to_string(socket_address(any_address(address("10.1.0.5")), 1)), "0.0.0.0 port 1");
  EXPECT_EQ(to_string(socket_address(any_address(address("fd00::5")), 1)), ":: port 1");
}

TEST(NetworkInterfaces, OfThisMachineHaveLoopbackAmongThem) {
  const auto interfaces = list_interfaces().take();
  EXPECT_TRUE(std::any_of(interfaces.begin(), interfaces.end(),
                          [](const Interface& entry) { return entry.loopback; }));
}

}  // namespace
}  // namespace troupe::host::cpu
