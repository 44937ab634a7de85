#pragma once

#include <span>
#include <string>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/lib/collective.hpp>

/// What of a collective only the communicator can judge: ranks that exist, and room for the parts
/// of all of them. check() has looked at everything else, but does not know the size of the world.
/// Both engines ask before they queue: a record that was corrupted must not lead out of its
/// operands. Errors: invalid.
namespace troupe::host {

inline Result<void> check_rank(const char* what, std::uint32_t rank, int size) {
  if (rank < static_cast<std::uint32_t>(size)) return {};
  return Error{Errc::invalid, 0,
               std::string("no such ") + what + ": rank " + std::to_string(rank) + " of " +
                   std::to_string(size)};
}

/// `operand` holds `count` elements for each of `ranks`.
inline Result<void> check_room(const char* name, const Operand& operand, DType dtype,
                               std::uint64_t count, int ranks) {
  std::uint64_t bytes = 0;
  const bool overflows =
      __builtin_mul_overflow(count, size_of(dtype) * static_cast<std::size_t>(ranks), &bytes);
  if (operand.present() && !overflows && bytes <= operand.bytes) return {};
  return Error{Errc::invalid, 0,
               std::string(name) + " needs " + std::to_string(count) + " elements for each of " +
                   std::to_string(ranks) + " ranks, has " + std::to_string(operand.bytes) +
                   " bytes"};
}

/// In place `part` is this rank's of the parts that `whole` holds.
inline Result<void> check_part(const Operand& part, const Operand& whole, DType dtype,
                               std::uint64_t count, int rank) {
  const auto own = whole.offset + static_cast<std::uint64_t>(rank) * count * size_of(dtype);
  if (!troupe::detail::overlap(part, whole) || part.offset == own) return {};
  return Error{Errc::invalid, 0,
               "source and destination overlap, and the shorter is not the part of rank " +
                   std::to_string(rank) + " of the longer"};
}

inline Result<void> check_world(const collective::AllReduce&, int, int) {
  return {};
}
inline Result<void> check_world(const collective::Reduce& op, int rank, int size) {
  if (auto known = check_rank("root", op.root, size); !known) return known;
  if (op.root != static_cast<std::uint32_t>(rank)) return {};
  return check_room("the root's destination", op.destination, op.dtype, op.count, 1);
}
inline Result<void> check_world(const collective::Broadcast& op, int, int size) {
  return check_rank("root", op.root, size);
}
inline Result<void> check_world(const collective::AllGather& op, int rank, int size) {
  auto room = check_room("destination", op.destination, op.dtype, op.count, size);
  return room.ok() ? check_part(op.source, op.destination, op.dtype, op.count, rank) : room;
}
inline Result<void> check_world(const collective::ReduceScatter& op, int rank, int size) {
  auto room = check_room("source", op.source, op.dtype, op.count, size);
  return room.ok() ? check_part(op.destination, op.source, op.dtype, op.count, rank) : room;
}
inline Result<void> check_world(const collective::AllToAll& op, int, int size) {
  if (auto room = check_room("source", op.source, op.dtype, op.count, size); !room) return room;
  return check_room("destination", op.destination, op.dtype, op.count, size);
}
/// The messages of an exchange; those of a rank to itself must agree in number and lengths.
inline Result<void> check_world(std::span<const PeerTransfer> tail, int rank, int size) {
  std::vector<std::uint64_t> sent, received;
  for (const auto& part : tail) {
    if (auto known = check_rank("peer", part.peer, size); !known) return known;
    if (part.peer != static_cast<std::uint32_t>(rank)) continue;
    (part.receive != 0 ? received : sent).push_back(part.data.bytes);
  }
  if (sent == received) return {};
  return Error{Errc::invalid, 0, "an exchange whose messages to its own rank do not match"};
}

}  // namespace troupe::host
