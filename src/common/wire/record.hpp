#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/lib/operation_info.hpp>
#include <troupe/lib/submit.hpp>

/// Command and reply records as they stand in the rings, and how untrusted ones are read.
namespace troupe::wire {

/// Flags of a command.
inline constexpr std::uint32_t kCancelled = 1;  ///< the rank has answered it already; to be skipped
/// To be issued when nothing else is in flight, and nothing else until it is done: if the device
/// host dies meanwhile, it is known of what.
inline constexpr std::uint32_t kAlone = 2;

/// A command: this header, the operation's struct, tail_count TailOperands, then the inline bytes.
struct CommandHeader {
  std::uint64_t ticket = 0;
  std::uint32_t opcode = 0;
  std::uint32_t epoch = 0;
  std::uint16_t op_bytes = 0;
  std::uint16_t tail_count = 0;
  std::uint32_t flags = 0;
  std::uint32_t data_bytes = 0;
  std::uint32_t communicator = 0;  ///< collectives: the number of the group; 0: the world's
};
static_assert(sizeof(CommandHeader) == 32);

/// At most this many messages in one grouped point-to-point operation.
inline constexpr std::uint32_t kMaxTail = 4096;

/// Flag of a reply: the command failed after it had begun, and what it was to write is spoilt.
inline constexpr std::uint16_t kSpoilt = 1;

/// Outcome of the tickets [first_ticket, first_ticket + count), all alike; error text follows.
struct ReplyHeader {
  std::uint64_t first_ticket = 0;
  std::uint32_t count = 0;
  std::uint32_t code = 0;  ///< Errc
  std::int32_t native = 0;
  std::uint16_t text_bytes = 0;
  std::uint16_t flags = 0;
};
static_assert(sizeof(ReplyHeader) == 24);
inline constexpr std::uint32_t kMaxReplyText = 512;

/// Bytes of the record that a command makes.
inline std::size_t record_bytes(const troupe::detail::CommandView& command) noexcept {
  return sizeof(CommandHeader) + command.op.size() + command.tail.size_bytes() +
         command.data.size();
}

/// Writes the record; `out` must have record_bytes(command) bytes and be aligned to 8.
void encode(const troupe::detail::CommandView& command, std::uint64_t ticket,
            std::span<std::byte> out) noexcept;

/// A command that has been copied out of shared memory and found sound: known opcode, right sizes,
/// check() holds. Whether its operands lie in mapped regions is for the reader to see. Reusable:
/// keeps its storage.
class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;  // operands() points into it
  Command& operator=(const Command&) = delete;

  /// Reads a record. Errors name what is wrong with it; the object is then not to be used.
  Result<void> decode(std::span<const std::byte> record);

  [[nodiscard]] const CommandHeader& header() const noexcept { return header_; }
  [[nodiscard]] const OperationInfo& info() const noexcept { return *operation_.info; }
  [[nodiscard]] std::string_view name() const noexcept { return info().name; }
  /// The lane that runs it.
  [[nodiscard]] Lane lane() const { return operation_.lane(op()); }
  /// The operation's bytes.
  [[nodiscard]] const std::byte* op() const noexcept { return storage_.data(); }
  [[nodiscard]] std::span<const TailOperand> tail() const noexcept { return tail_; }
  [[nodiscard]] Parts parts() const noexcept { return {tail_, data_}; }
  /// All operands that are present, those of the tail last.
  [[nodiscard]] std::span<const OperandUse> operands() const noexcept { return operands_; }

  /// The operation, if it is an Op; nullptr: it is another.
  template <Operation Op>
  [[nodiscard]] const Op* as() const noexcept {
    return header_.opcode == opcode_of<Op> ? reinterpret_cast<const Op*>(op()) : nullptr;
  }

 private:
  /// Looks the operation up, unless it was one of the last.
  [[nodiscard]] KnownOperation known(std::uint32_t opcode) noexcept;

  CommandHeader header_;
  KnownOperation operation_;
  std::array<KnownOperation, 16> recent_{};  ///< by their opcodes' last bits
  alignas(8) std::array<std::byte, OperationInfo::kMaxBytes> storage_;
  std::vector<TailOperand> tail_;
  std::vector<std::byte> data_;
  std::vector<OperandUse> operands_;
};

}  // namespace troupe::wire
