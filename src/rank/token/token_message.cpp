#include "rank/token/token_message.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace troupe::rank_process {

std::vector<std::byte> encode(const TokenMessage& head, std::span<const std::byte> payload) {
  auto full = head;
  payload = payload.first(std::min(payload.size(), kMaxTokenPayload));
  full.payload_bytes = static_cast<std::uint32_t>(payload.size());
  std::vector<std::byte> bytes(sizeof full + payload.size());
  std::memcpy(bytes.data(), &full, sizeof full);
  if (!payload.empty()) std::memcpy(bytes.data() + sizeof full, payload.data(), payload.size());
  return bytes;
}

std::vector<std::byte> encode(TokenMessage head, const Result<void>& outcome) {
  head.code = static_cast<std::uint32_t>(outcome.code());
  if (outcome.ok()) return encode(head);
  head.native = outcome.error().native;
  return encode(head, std::as_bytes(std::span(outcome.error().message)));
}

Result<TokenPacket> decode_token_message(std::span<const std::byte> bytes) {
  const auto malformed = [](const char* what) {
    return Error{Errc::invalid, 0, std::string("malformed token message: ") + what};
  };
  TokenPacket packet;
  if (bytes.size() < sizeof packet.head) return malformed("too short");
  std::memcpy(&packet.head, bytes.data(), sizeof packet.head);
  const auto payload = bytes.subspan(sizeof packet.head);
  if (packet.head.kind > TokenMessage::Kind::slab_gone) return malformed("unknown kind");
  if (packet.head.code > static_cast<std::uint32_t>(Errc::internal))
    return malformed("unknown error class");
  if (packet.head.payload_bytes != payload.size() || payload.size() > kMaxTokenPayload)
    return malformed("wrong length");
  packet.payload.assign(payload.begin(), payload.end());
  return packet;
}

Result<void> TokenPacket::outcome() const {
  if (head.code == 0) return {};
  return Error{static_cast<Errc>(head.code), head.native,
               std::string(reinterpret_cast<const char*>(payload.data()), payload.size())};
}

}  // namespace troupe::rank_process
