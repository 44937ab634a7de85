// Whatever the bytes, a message between a rank and its device host is refused or keeps its
// promises; and so is what ranks contribute to communicators.
#include <algorithm>
#include <cstring>
#include <span>

#include <troupe/error.hpp>

#include "common/wire/control.hpp"
#include "common/wire/formation.hpp"
#include "fuzz.hpp"

using namespace troupe;
using namespace troupe::wire;

namespace {

std::pair<ipc::Socket, ipc::Socket>& sockets() {
  static auto pair = ipc::Socket::make_pair();
  check(pair.ok(), "socketpair");
  return *pair;
}

/// Sends the bytes, and what was made of them once more: it is the same.
template <class Receive>
void cross(std::span<const std::byte> bytes, Receive receive) {
  auto& [near, far] = sockets();
  check(near.send(bytes).ok(), "send");
  const auto got = receive(far);
  check(got.ok() || got.code() == Errc::internal, "a malformed message is Errc::internal");
  if (!got.ok()) return;
  check(got->has_value(), "the message is there");
  if (!(*got)->whole.ok()) return;  // its descriptor is missing
  check(send_control(near, (*got)->message, (*got)->request).ok(), "it can be sent");
  const auto again = far.receive();
  check(again.ok() && again->has_value(), "it comes");
  check(std::equal(bytes.begin(), bytes.end(), (*again)->bytes.begin(), (*again)->bytes.end()),
        "nothing is added or lost");
}

/// The packet of a message of this kind, with these bytes as its fields.
std::vector<std::byte> packet_of(std::uint32_t kind, std::span<const std::byte> fields) {
  std::vector<std::byte> packet(16);
  packet[0] = std::byte{9};  // the request
  std::memcpy(packet.data() + 8, &kind, sizeof kind);
  packet.insert(packet.end(), fields.begin(), fields.end());
  return packet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (size > 0 && size <= ipc::Socket::kMaxPacket) {  // an empty packet says the peer has left
    cross(bytes, receive_from_rank);
    cross(bytes, receive_from_host);
  }
  if (const auto contribution = decode_contribution(bytes); contribution.ok())
    check(encode_contribution(*contribution).size() == size, "a contribution is what it was");
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  std::vector<std::vector<std::byte>> seeds;
  const std::vector<std::byte> some(24);
  constexpr auto kKinds = static_cast<std::uint32_t>(
      std::max(std::variant_size_v<ToHost>, std::variant_size_v<FromHost>));
  for (std::uint32_t kind = 0; kind <= kKinds; ++kind) {
    for (const std::size_t length : {0u, 4u, 8u, 12u, 16u, 24u})
      seeds.push_back(packet_of(kind, std::span(some).first(length)));
  }
  auto& [near, far] = sockets();
  const auto add = [&](const auto& message) {
    check(send_control(near, message, 3).ok(), "send");
    seeds.push_back((*far.receive())->bytes);
  };
  const std::vector<FormingGroup> groups{{3, GroupState::held, {2, 0}}, {4, {}, {1}}};
  add(ToHost(to_host::Contribute{1, 4, groups}));
  add(ToHost(to_host::Connect{1, 2, {some, {}}, groups}));
  add(ToHost(to_host::AdoptPlans{{{"dnn", some}, {"fft", {}}}}));
  add(FromHost(from_host::LibraryOpened{{"dnn", {{"oneDNN", "2.6.0", "/opt/some where"}}}}));
  add(FromHost(from_host::Fatal{{Errc::device_lost, -700, "what happened"}, true}));
  add(FromHost(from_host::MemoryUse{{{"slabs", 5}, {"blas", 6}}, 7}));
  seeds.push_back(
      encode_contribution(Contribution{{kWorld, GroupState::held, seeds.front()}, {2, {}, {}}}));
  return seeds;
}
