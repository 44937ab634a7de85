#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <troupe/lib/operation_info.hpp>

/// Channels between device hosts, over which the bytes of tokens travel with `--token-path nccl`.
/// Only troupe's own transfers use them.
///
/// A channel leads from one rank to another. Each of the two device hosts has an end of it, under a
/// number of its rank's own. The sending end invites, the invitation travels by way of the ranks,
/// and the receiving end joins while the sending one connects; after that each Send meets the
/// Receive that has the same place in the order of its end. An end has one of them under way at a
/// time.
///
/// All of these wait for the other rank, so the device host carries out each on a thread of its
/// own, beside its queues: they are in no order with other commands. A Receive is submitted once
/// Settle has ended, and a Send once what it sends is there. They end with world_reformed when the
/// device host gives its communicators up, and with peer_lost when the connection breaks.
namespace troupe::channel {

/// The most bytes of an invitation.
inline constexpr std::size_t kMaxInvitation = 1016;

/// Where an invitation is written.
struct Invitation {
  std::uint64_t length = 0;
  std::array<std::byte, kMaxInvitation> bytes{};
};

/// Makes a sending end and writes an invitation to it.
struct Invite {
  static constexpr std::string_view kName = "channel.invite";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  std::uint64_t number = 0;
  Operand invitation;  ///< an Invitation, in pinned memory

  static constexpr std::array kOperands{write("invitation", &Invite::invitation)};
  Result<void> check() const;
};

/// Connects a sending end; completes when the receiving one has joined.
struct Connect {
  static constexpr std::string_view kName = "channel.connect";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  std::uint64_t number = 0;

  static constexpr std::array<DeclaredOperand<Connect>, 0> kOperands{};
  Result<void> check() const;
};

/// Makes a receiving end and connects it by an invitation, which stands in the inline bytes.
struct Join {
  static constexpr std::string_view kName = "channel.join";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr std::uint32_t kData = kMaxInvitation;

  OpDType dtype;
  std::uint64_t number = 0;

  static constexpr std::array<DeclaredOperand<Join>, 0> kOperands{};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
};

/// Moves nothing: completes once every earlier command that names the range has.
struct Settle {
  static constexpr std::string_view kName = "channel.settle";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  Operand range;

  static constexpr std::array kOperands{update("range", &Settle::range)};
  Result<void> check() const;
};

/// Sends the bytes of a range.
struct Send {
  static constexpr std::string_view kName = "channel.send";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  std::uint64_t number = 0;
  Operand source;

  static constexpr std::array kOperands{read("source", &Send::source)};
  Result<void> check() const;
};

/// Receives as many bytes as the range has, which the other end sends as one.
struct Receive {
  static constexpr std::string_view kName = "channel.receive";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  std::uint64_t number = 0;
  Operand destination;

  static constexpr std::array kOperands{write("destination", &Receive::destination)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return destination.bytes; }
};

/// Gives an end up, and ends what waits there. Without one of that number it does nothing.
struct Drop {
  static constexpr std::string_view kName = "channel.drop";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  std::uint64_t number = 0;

  static constexpr std::array<DeclaredOperand<Drop>, 0> kOperands{};
  Result<void> check() const;
};

/// All of them; whoever includes this header knows them.
using Operations = List<Invite, Connect, Join, Settle, Send, Receive, Drop>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::channel
