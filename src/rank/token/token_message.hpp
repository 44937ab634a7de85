#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
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

/// At most so many bytes are the record of a command that is asked of another rank, with its name.
inline constexpr std::size_t kLongestRequest = 64 * 1024;

/// What token routers say to each other, one struct for each kind. The bytes on the network are the
/// sender's rank and the fields of the struct, in order.
namespace routed {

// Requests, to the rank that is asked. `behind`: the commit of the asking program behind which it
// asks, see commit_number(). `range`: as a token names it.

/// I want the contents of the range.
struct Fetch {
  TransferKey key{};
  std::uint64_t behind = 0;
  Operand range{};
};
/// What I offer shall go to the range.
struct Put {
  TransferKey key{};
  std::uint64_t behind = 0;
  Operand range{};
  Offer offer{};
};
/// Submit this command. Its name goes along because an opcode says nothing to a program that does
/// not know the operation.
struct Execute {
  TransferKey key{};
  std::uint64_t behind = 0;
  std::string operation{};
  std::vector<std::byte> record{};

  [[nodiscard]] bool sound() const {
    return operation.size() <= kLongestRequest &&
           record.size() <= kLongestRequest - operation.size();
  }
};
/// Keep the buffer of the range.
struct Hold {
  TransferKey key{};
  std::uint64_t behind = 0;
  Operand range{};
};
/// Keep the buffer of the range, and say where it lies: I am going to read it there.
struct Map {
  TransferKey key{};
  std::uint64_t behind = 0;
  Operand range{};
};
/// Keep the buffer that the Hold or the Map of this key named no longer. Nothing answers it.
struct Release {
  TransferKey key{};
};

/// From the rank that was asked to the one that asks: the request is done, or not.
struct Answer {
  TransferKey key{};
  Result<void> outcome{};
};

/// The same for a Map: the buffer is kept, and lies there.
struct Located {
  TransferKey key{};
  Offer offer{};
};

// From the source of a transfer to its destination.

/// The bytes are there: take them.
struct Offered {
  TransferKey key{};
  Offer offer{};
};
/// What was taken is right, or will never be.
struct Over {
  TransferKey key{};
  Result<void> outcome{};
};
/// The invitation to a channel, to be joined when something is to go over it.
struct Invited {
  std::uint32_t epoch = 0;
  std::uint64_t channel = 0;  ///< the source's number for it, as everywhere
  std::vector<std::byte> invitation{};
};

// From the destination of a transfer to its source.

/// Send the bytes over the network.
struct Stream {
  TransferKey key{};
  std::uint32_t stream = 0;  ///< the destination's number for it
  std::uint64_t piece_bytes = 0;
};
/// So many pieces more may come.
struct Credit {
  TransferKey key{};
  std::uint32_t pieces = 0;
};
/// The bytes are here, or cannot be had.
struct Taken {
  TransferKey key{};
  Result<void> outcome{};
  bool settled = false;  ///< and the destination knows by itself that they are right
};
/// The channel is being connected: connect it too.
struct Joins {
  std::uint64_t channel = 0;
};
/// The bytes are being received from the channel: send them.
struct Ready {
  TransferKey key{};
  std::uint64_t channel = 0;
};

/// Either end of a channel to the other: it is given up.
struct ChannelGone {
  std::uint32_t epoch = 0;
  std::uint64_t channel = 0;
  bool by_source = false;
  Error why{};

  [[nodiscard]] bool sound() const { return why.code != Errc::ok; }
};
/// The memory of a slab of mine shall be unmapped.
struct SlabGone {
  std::uint64_t serial = 0;
};

}  // namespace routed

using TokenMessage =
    std::variant<routed::Fetch, routed::Put, routed::Execute, routed::Hold, routed::Map,
                 routed::Release, routed::Answer, routed::Located, routed::Offered, routed::Over,
                 routed::Invited, routed::Stream, routed::Credit, routed::Taken, routed::Joins,
                 routed::Ready, routed::ChannelGone, routed::SlabGone>;

/// True for messages that ask the owner of a buffer for something.
template <class M>
inline constexpr bool kIsRequest = false;
template <>
inline constexpr bool kIsRequest<routed::Fetch> = true;
template <>
inline constexpr bool kIsRequest<routed::Put> = true;
template <>
inline constexpr bool kIsRequest<routed::Execute> = true;
template <>
inline constexpr bool kIsRequest<routed::Hold> = true;
template <>
inline constexpr bool kIsRequest<routed::Map> = true;
template <>
inline constexpr bool kIsRequest<routed::Release> = true;

struct TokenPacket {
  std::int32_t from = 0;  ///< who sends
  TokenMessage message{};
};

/// A commit of World::run as all ranks number it; greater than those before it. 0: none.
constexpr std::uint64_t commit_number(std::uint32_t run, std::int64_t step) noexcept {
  return ((std::uint64_t{run} + 1) << 40) + static_cast<std::uint64_t>(step) + 1;
}

std::vector<std::byte> encode(std::int32_t from, const TokenMessage& message);
/// A malformed message is Errc::invalid.
Result<TokenPacket> decode_token_message(std::span<const std::byte> bytes);

}  // namespace troupe::rank_process
