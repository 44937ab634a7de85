#include "rank/post/actor_message.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace troupe::rank_process {

std::vector<std::byte> encode(ActorMessage head, std::span<const std::byte> payload) {
  payload = payload.first(std::min(payload.size(), kMaxActorPayload));
  head.payload_bytes = static_cast<std::uint32_t>(payload.size());
  std::vector<std::byte> bytes(sizeof head + payload.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!payload.empty()) std::memcpy(bytes.data() + sizeof head, payload.data(), payload.size());
  return bytes;
}

std::vector<std::byte> encode(ActorMessage head, const Error& error) {
  head.code = static_cast<std::uint32_t>(error.code);
  head.native = error.native;
  return encode(head, std::as_bytes(std::span(error.message)));
}

Result<ActorPacket> take_actor_message(std::span<const std::byte>& bytes) {
  const auto malformed = [](const char* what) {
    return Error{Errc::invalid, 0, std::string("malformed message between actors: ") + what};
  };
  ActorPacket packet;
  if (bytes.size() < sizeof packet.head) return malformed("too short");
  std::memcpy(&packet.head, bytes.data(), sizeof packet.head);
  const auto& head = packet.head;
  if (head.kind > ActorMessage::Kind::answer) return malformed("unknown kind");
  if (head.code > static_cast<std::uint32_t>(Errc::internal))
    return malformed("unknown error class");
  if (head.within_ns < 0) return malformed("a time below zero");
  if (head.payload_bytes > kMaxActorPayload ||
      head.payload_bytes > bytes.size() - sizeof packet.head)
    return malformed("wrong length");
  packet.payload = bytes.subspan(sizeof packet.head, head.payload_bytes);
  bytes = bytes.subspan(sizeof packet.head + head.payload_bytes);
  return packet;
}

Result<std::span<const std::byte>> ActorPacket::outcome() const {
  if (head.code == 0) return payload;
  return Error{static_cast<Errc>(head.code), head.native,
               std::string(reinterpret_cast<const char*>(payload.data()), payload.size())};
}

}  // namespace troupe::rank_process
