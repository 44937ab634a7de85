#include <troupe/lib/collective.hpp>
#include <troupe/lib/operation_table.hpp>

#include <vector>

#include "common/wire/checker.hpp"

namespace troupe::collective {

using wire::checker;

namespace {

constexpr std::uint32_t kMaxRanks = 1u << 24;
bool known(ReduceOp op) {
  return static_cast<std::size_t>(op) < kReduceOpCount;
}

Result<void> check_rank(const char* what, std::uint32_t rank, int size) {
  if (rank < static_cast<std::uint32_t>(size)) return {};
  return Error{Errc::invalid, 0,
               std::string("no such ") + what + ": rank " +
                   std::to_string(static_cast<std::int32_t>(rank)) + " of " + std::to_string(size)};
}

/// `operand` holds `count` elements for each of `ranks`.
Result<void> check_room(const char* name, const Operand& operand, DType dtype, std::uint64_t count,
                        int ranks) {
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
Result<void> check_part(const Operand& part, const Operand& whole, DType dtype, std::uint64_t count,
                        int rank) {
  const auto own = whole.offset + static_cast<std::uint64_t>(rank) * count * size_of(dtype);
  if (!troupe::detail::overlap(part, whole) || part.offset == own) return {};
  return Error{Errc::invalid, 0,
               "source and destination overlap, and the shorter is not the part of rank " +
                   std::to_string(rank) + " of the longer"};
}

}  // namespace

std::string in_words(const Agreement& agreed) {
  std::string text = std::to_string(agreed.count);
  if (agreed.dtype < kDTypeCount)
    text += " " + std::string(troupe::to_string(static_cast<DType>(agreed.dtype)));
  if (agreed.reduction < kReduceOpCount)
    text += ", " + std::string(to_string(static_cast<ReduceOp>(agreed.reduction)));
  if (agreed.root != Agreement::kNone)
    text += ", root " + std::to_string(static_cast<std::int32_t>(agreed.root));
  return text;
}

Result<void> AllReduce::check() const {
  return checker(*this)
      .require(known(op), "unknown reduction")
      .scalar("scalar", scalar)
      .holds("source", source, count)
      .holds("destination", destination, count)
      .result();
}

Result<void> Reduce::check() const {
  auto checks = checker(*this);
  checks.require(known(op), "unknown reduction").require(root < kMaxRanks, "root out of range");
  checks.scalar("scalar", scalar);
  checks.holds("source", source, count);
  return (destination.present() ? checks.holds("destination", destination, count) : checks)
      .result();
}

Result<void> Broadcast::check() const {
  auto checks = checker(*this);
  checks.require(root < kMaxRanks, "root out of range").holds("data", data, count);
  return (source.present() ? checks.holds("source", source, count) : checks).result();
}

Result<void> Gather::check() const {
  auto checks = checker(*this);
  checks.require(root < kMaxRanks, "root out of range").holds("source", source, count);
  return (destination.present() ? checks.parts("destination", destination, count) : checks)
      .result();
}

Result<void> Scatter::check() const {
  auto checks = checker(*this);
  checks.require(root < kMaxRanks, "root out of range").holds("destination", destination, count);
  return (source.present() ? checks.parts("source", source, count) : checks).result();
}

Result<void> AllGather::check() const {
  return checker(*this)
      .holds("source", source, count)
      .parts("destination", destination, count)
      .result();
}

Result<void> ReduceScatter::check() const {
  return checker(*this)
      .require(known(op), "unknown reduction")
      .scalar("scalar", scalar)
      .holds("destination", destination, count)
      .parts("source", source, count)
      .result();
}

Result<void> AllToAll::check() const {
  return checker(*this)
      .parts("source", source, count)
      .parts("destination", destination, count)
      .require(source.bytes == destination.bytes, "source and destination differ in length")
      .result();
}

// Against the world: a record that was corrupted must not lead out of its operands.

Result<void> AllReduce::check_world(int, int) const {
  return {};
}

Result<void> Reduce::check_world(int rank, int size) const {
  if (auto exists = check_rank("root", root, size); !exists) return exists;
  if (root != static_cast<std::uint32_t>(rank)) return {};
  return check_room("the root's destination", destination, dtype, count, 1);
}

Result<void> Broadcast::check_world(int, int size) const {
  return check_rank("root", root, size);
}

Result<void> Gather::check_world(int rank, int size) const {
  if (auto exists = check_rank("root", root, size); !exists) return exists;
  if (root != static_cast<std::uint32_t>(rank)) return {};
  auto room = check_room("the root's destination", destination, dtype, count, size);
  return room.ok() ? check_part(source, destination, dtype, count, rank) : room;
}

Result<void> Scatter::check_world(int rank, int size) const {
  if (auto exists = check_rank("root", root, size); !exists) return exists;
  if (root != static_cast<std::uint32_t>(rank)) return {};
  auto room = check_room("the root's source", source, dtype, count, size);
  return room.ok() ? check_part(destination, source, dtype, count, rank) : room;
}

Result<void> AllGather::check_world(int rank, int size) const {
  auto room = check_room("destination", destination, dtype, count, size);
  return room.ok() ? check_part(source, destination, dtype, count, rank) : room;
}

Result<void> ReduceScatter::check_world(int rank, int size) const {
  auto room = check_room("source", source, dtype, count, size);
  return room.ok() ? check_part(destination, source, dtype, count, rank) : room;
}

Result<void> AllToAll::check_world(int, int size) const {
  if (auto room = check_room("source", source, dtype, count, size); !room) return room;
  return check_room("destination", destination, dtype, count, size);
}

Result<void> check_world(std::span<const TailOperand> messages, int rank, int size) {
  std::vector<std::uint64_t> sent, received;
  for (const auto& part : messages) {
    if (auto exists = check_rank("peer", part.tag, size); !exists) return exists;
    if (part.tag != static_cast<std::uint32_t>(rank)) continue;
    (part.written() ? received : sent).push_back(part.range.bytes);
  }
  if (sent == received) return {};
  return Error{Errc::invalid, 0, "an exchange whose messages to its own rank do not match"};
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::collective
