#include "rank/token/token_message.hpp"

#include "common/core/field_bytes.hpp"

namespace troupe::rank_process {

namespace {

constexpr std::size_t kMostMessages = 160;  ///< have no more bytes

}  // namespace

std::vector<std::byte> encode(std::int32_t from, const TokenMessage& message) {
  FieldWriter writer(kMostMessages);
  writer.put(from);
  writer.put(static_cast<std::uint32_t>(message.index()));
  std::visit([&writer](const auto& said) { writer.put(said); }, message);
  return writer.take();
}

Result<TokenPacket> decode_token_message(std::span<const std::byte> bytes) {
  FieldReader reader(bytes);
  TokenPacket packet;
  reader.get(packet.from);
  std::uint32_t kind = 0;
  reader.get(kind);
  const bool known =
      emplace_alternative(kind, packet.message, [&reader](auto& said) { reader.get(said); });
  if (!known || !reader.complete())
    return Error{Errc::invalid, 0, "malformed message between token routers"};
  return packet;
}

}  // namespace troupe::rank_process
