#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::rank_process {

/// What the ranks' actor posts say to each other. One struct for all kinds; a name, a text or the
/// bytes of an actor's message follow. A route, numbered by its sender, leads from one rank to one
/// actor of another.
struct ActorMessage {
  enum class Kind : std::uint32_t {
    // sender to receiver
    open,  ///< route: leads to the actor of that name (payload), whose messages are `set`
    tell,  ///< message `number` of the route, of that `type`
    ask,   ///< as tell; it is to be answered within that time
    // receiver to sender
    accepted,  ///< `count` places more of the route's window are free
    refused,   ///< told message `number` was not handed over: code, native, text
    answer     ///< of question `number`: its bytes; or code, native, text
  };

  Kind kind{};
  std::int32_t from = 0;  ///< who sends
  std::uint32_t route = 0;
  std::uint32_t type = 0;
  std::uint64_t number = 0;
  std::int64_t within_ns = 0;
  std::uint64_t set = 0;
  std::uint32_t code = 0;  ///< Errc
  std::int32_t native = 0;
  std::uint32_t count = 0;
  std::uint32_t payload_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<ActorMessage> &&
              std::has_unique_object_representations_v<ActorMessage>);

/// A message in the bytes that it was read from.
struct ActorPacket {
  ActorMessage head;
  std::span<const std::byte> payload;

  /// What code, native and text say.
  [[nodiscard]] Result<std::span<const std::byte>> outcome() const;
};

/// At most this much follows a message.
inline constexpr std::size_t kMaxActorPayload = 64 * 1024;

/// What may be on its way on a route: so many places. A message takes one for each kPlaceBytes that
/// it begins, so this bounds the bytes, too.
inline constexpr std::uint32_t kActorWindow = 1024;
inline constexpr std::size_t kPlaceBytes = 256;
static_assert(kMaxActorPayload / kPlaceBytes <= kActorWindow / 2, "half a window lets any pass");
constexpr std::uint32_t places_of(std::size_t payload_bytes) noexcept {
  return payload_bytes <= kPlaceBytes
             ? 1
             : static_cast<std::uint32_t>((payload_bytes + kPlaceBytes - 1) / kPlaceBytes);
}

std::vector<std::byte> encode(ActorMessage head, std::span<const std::byte> payload = {});
/// With the error in it; a long text is cut.
std::vector<std::byte> encode(ActorMessage head, const Error& error);
/// Takes the first message off `bytes`, of which several may come as one. A malformed one is
/// Errc::invalid, and nothing behind it can be read.
Result<ActorPacket> take_actor_message(std::span<const std::byte>& bytes);

}  // namespace troupe::rank_process
