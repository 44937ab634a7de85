#pragma once

#include <array>
#include <string>

#include <troupe/lib/operation_info.hpp>

/// Recorded sequences of commands as they stand on the wire; <troupe/sequence.hpp> is what a
/// program uses.
namespace troupe::sequence {

inline constexpr std::uint32_t kMaxCommands = 8192;
/// The most commands of a sequence with collectives: it has to fit what a stream takes while they
/// wait for other ranks.
inline constexpr std::uint32_t kMaxCollectiveCommands = 400;

/// Bytes that replace others in the record of one of the sequence's commands, for one run.
struct Patch {
  std::uint32_t command = 0;  ///< its place in the list, from 0
  std::uint32_t offset = 0;   ///< bytes from the start of its record
  std::uint32_t bytes = 0;
  std::uint32_t reserved = 0;
  std::array<std::byte, 16> value{};
};
static_assert(sizeof(Patch) == 32);

/// Runs the commands of a list, one after another. Tail: all that they name, each byte once, with
/// what they do to it together. Inline: patches.
struct Run {
  static constexpr std::string_view kName = "sequence.run";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr std::string_view kTail = "operand";
  static constexpr std::uint32_t kData = 256 * sizeof(Patch);
  /// The tag of an operand of which every byte is surely overwritten.
  static constexpr std::uint32_t kOverwritten = 1;

  OpDType dtype;
  std::uint64_t number = 0;    ///< of the sequence: another one never has it
  std::uint64_t agreed = 0;    ///< a hash of its collectives, as the ranks compare them; 0: none
  std::uint64_t commands = 0;  ///< in the list
  Operand list;                ///< their records, in pinned memory

  static constexpr std::array kOperands{read("list", &Run::list)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t tail_written(const TailOperand& operand) const noexcept {
    return operand.tag == kOverwritten ? operand.range.bytes : 0;
  }
};

/// The same of commands that may all run again after a fault.
struct RepeatableRun : Run {
  static constexpr std::string_view kName = "sequence.run_repeatable";
  static constexpr Traits kTraits = {.repeatable = true};
};

/// The same with collectives or exchanges among them: all ranks run it together, as one collective.
struct CollectiveRun : Run {
  static constexpr std::string_view kName = "sequence.run_collective";
  static constexpr Lane kLane = Lane::collective;
  static constexpr Traits kTraits = {.collective = true};

  [[nodiscard]] Agreement agreement() const noexcept { return {.count = agreed}; }
  static std::string describe(const Agreement& agreed);
};

/// Between the commands of a list: without a flag, or if it is 0, the command that comes next is
/// the one `by` further on; else the one behind this.
struct Branch {
  static constexpr std::string_view kName = "sequence.branch";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  std::int64_t by = 0;
  Operand flag;  ///< a std::int32_t in pinned memory, where a command of the list has copied it

  static constexpr std::array kOperands{read("flag", &Branch::flag)};
  Result<void> check() const;
};

/// All of them; whoever includes this header knows them.
using Operations = List<Run, RepeatableRun, CollectiveRun, Branch>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::sequence
