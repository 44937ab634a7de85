#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/lib/operation.hpp>

namespace troupe::rank_process {

/// A request of one rank to another, and all that is said about it: numbered by whoever asks, and
/// of the epoch that the asking program had acknowledged.
struct TransferKey {
  std::int32_t requester = 0;
  std::uint32_t epoch = 0;
  std::uint64_t number = 0;

  friend constexpr auto operator<=>(const TransferKey&, const TransferKey&) = default;
};

/// Where a source's bytes are to be had.
struct Offer {
  std::uint64_t slab = 0;  ///< its serial, or 0: over the network, or by a channel
  std::uint64_t slab_bytes = 0;
  std::uint64_t offset = 0;  ///< in the slab
  std::uint64_t bytes = 0;
  /// In a slab: what the owner's LoanBoard says as long as the bytes are right; `place` 0: nothing.
  std::uint64_t place = 0;
  std::uint64_t version = 0;
  std::uint64_t channel = 0;  ///< the source's number for it; 0: not by a channel

  friend constexpr bool operator==(const Offer&, const Offer&) = default;
};

/// What token routers say to each other. One struct for all kinds; text or a command record
/// follows.
struct TokenMessage {
  enum class Kind : std::uint32_t {
    // who asks to whom is asked
    fetch,    ///< I want `range`
    put,      ///< what I offer shall go to `range`
    execute,  ///< payload: a command record, then the `value` characters of the operation's name
    hold,     ///< keep the buffer of `range`
    release,  ///< hold it no longer
    // whom is asked to who asks
    answer,  ///< the request is done, or not: code, native, text
    // source to destination
    offer,    ///< the bytes are there: take them
    over,     ///< what was taken is right, or will never be: code, native, text
    channel,  ///< payload: the invitation to channel `count`
    // destination to source
    stream,  ///< send them over the network, on stream `value`, in pieces of `count` bytes
    credit,  ///< `value` pieces more may come
    taken,   ///< they are here, or cannot be had: code, native, text; `value` 1: and they are right
    joins,   ///< channel `count` is being connected: connect it too
    ready,   ///< they are being received from channel `count`: send them
    // anyone
    channel_gone,  ///< channel `count` is given up, by its source if `value` is 1
    slab_gone      ///< `count`: the serial of a slab whose memory shall be unmapped
  };

  Kind kind{};
  std::int32_t from = 0;  ///< who sends
  TransferKey key{};
  Operand range{};  ///< as a token names it
  Offer offer{};
  std::uint64_t count = 0;
  /// A request: the commit of the asking program behind which it was made, see commit_number().
  std::uint64_t behind = 0;
  std::uint32_t value = 0;
  std::uint32_t code = 0;  ///< Errc
  std::int32_t native = 0;
  std::uint32_t payload_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<TokenMessage> &&
              std::has_unique_object_representations_v<TokenMessage>);

struct TokenPacket {
  TokenMessage head;
  std::vector<std::byte> payload;

  /// What code, native and text say.
  [[nodiscard]] Result<void> outcome() const;
};

/// A commit of World::run as all ranks number it; greater than those before it. 0: none.
constexpr std::uint64_t commit_number(std::uint32_t run, std::int64_t step) noexcept {
  return ((std::uint64_t{run} + 1) << 40) + static_cast<std::uint64_t>(step) + 1;
}

/// At most this much follows a message.
inline constexpr std::size_t kMaxTokenPayload = 64 * 1024;

std::vector<std::byte> encode(const TokenMessage& head, std::span<const std::byte> payload = {});
/// With the outcome in it.
std::vector<std::byte> encode(TokenMessage head, const Result<void>& outcome);
/// A malformed message is Errc::invalid.
Result<TokenPacket> decode_token_message(std::span<const std::byte> bytes);

}  // namespace troupe::rank_process
