#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/lib/operation.hpp>
#include <troupe/lib/overlap.hpp>

/// Operations as data: what is known of each, whatever its type, and how it is found.
namespace troupe {

/// One operand of an operation, as its table has it.
struct OperandInfo {
  std::string_view name;
  std::uint32_t offset = 0;  ///< of its Operand, in the operation's bytes
  Access access{};           ///< as declared; OperationInfo::access may know better
};

/// What an operation is. Functions take the operation's bytes, aligned to 8.
struct OperationInfo {
  static constexpr std::size_t kMaxOperands = 8;  ///< beside those in the tail
  static constexpr std::size_t kMaxBytes = 1024;

  std::string_view name;  ///< "blas.gemm"
  std::uint32_t opcode = 0;
  std::uint32_t bytes = 0;
  DTypes dtypes;  ///< on the engines together; see dtypes_on()
  Traits traits;
  std::string_view tail;       ///< what a TailOperand is to it, as "message"; empty: it has none
  std::uint32_t max_data = 0;  ///< inline bytes that a record of it may have
  std::span<const OperandInfo> operands;
  std::span<const InPlace> in_place;
  /// Which of its words of 8 bytes are neither operands, scalars nor kPlaces: a bit each.
  std::array<std::uint64_t, kMaxBytes / 8 / 64> kind_words{};
  Result<void> (*check)(const std::byte* op) = nullptr;
  Result<void> (*check_parts)(const std::byte* op, const Parts& parts) = nullptr;
  Lane (*lane)(const std::byte* op) = nullptr;  ///< nullptr: that of its library
  Access (*access)(const std::byte* op, const OperandInfo& operand) = nullptr;
  std::uint64_t (*written)(const std::byte* op, const OperandInfo& operand) = nullptr;
  std::uint64_t (*tail_written)(const std::byte* op, const TailOperand& operand) = nullptr;
  /// Which operand is its result cell, a few bytes of pinned memory; nullptr: it has none.
  const OperandInfo* cell = nullptr;
  /// Whether the contents of the cell of a command that has ended mean that it has failed; nullptr:
  /// they never do.
  Result<void> (*verdict)(const std::byte* op, const std::byte* cell) = nullptr;
  /// nullptr: the ranks need not say anything alike.
  Agreement (*agreement)(const std::byte* op) = nullptr;
  /// Any agreement, also one that no rank can have meant, in words: "64 f32, sum"; there is one
  /// where there is an agreement.
  std::string (*describe)(const Agreement& agreement) = nullptr;
  /// What only the communicator can judge: ranks that exist, room for the parts of all of them;
  /// nullptr: nothing.
  Result<void> (*check_world)(const std::byte* op, int rank, int size) = nullptr;
  std::span<const Lacking> lacking;  ///< dtypes that only other engines compute in

  /// "blas", of "blas.gemm".
  [[nodiscard]] constexpr std::string_view library() const noexcept {
    return name.substr(0, name.find('.'));
  }
  /// What an engine, "cpu" or "cuda", computes it in; empty: that engine answers unsupported.
  [[nodiscard]] constexpr DTypes dtypes_on(std::string_view engine) const noexcept {
    DTypes set = dtypes;
    for (const auto& lack : lacking) {
      if (lack.engine == engine) set.bits &= ~lack.dtypes.bits;
    }
    return set;
  }
  [[nodiscard]] const Operand& operand(const std::byte* op, const OperandInfo& which) const {
    return *reinterpret_cast<const Operand*>(op + which.offset);
  }
  [[nodiscard]] Operand& operand(std::byte* op, const OperandInfo& which) const {
    return *reinterpret_cast<Operand*>(op + which.offset);
  }
};

namespace detail {

template <class Op>
const Op& as(const std::byte* op) noexcept {
  return *reinterpret_cast<const Op*>(op);
}

/// Where an operand stands in its operation: at the first byte that differs if only its first field
/// does.
template <class Op, class Member>
constexpr std::uint32_t offset_of(Member Op::*member) {
  using Bytes = std::array<std::byte, sizeof(Op)>;
  Op without{}, with{};
  operand_of(without.*member).region = 0;
  operand_of(with.*member).region = ~0u;
  const auto a = std::bit_cast<Bytes>(without), b = std::bit_cast<Bytes>(with);
  std::uint32_t at = 0;
  while (a[at] == b[at]) ++at;
  return at;
}
static_assert(offsetof(Operand, region) == 0 && offsetof(Scalar, device) == 0);

template <Operation Op>
inline constexpr auto operand_table = std::apply(
    [](const auto&... use) {
      return std::array<OperandInfo, sizeof...(use)>{
          OperandInfo{use.name, offset_of(use.member), use.access}...};
    },
    Op::kOperands);

/// Where a field of 8 bytes stands.
template <class Op, class Member>
constexpr std::uint32_t offset_of_number(Member Op::*member) {
  static_assert(sizeof(Member) == 8 && std::is_arithmetic_v<Member>);
  using Bytes = std::array<std::byte, sizeof(Op)>;
  Op without{}, with{};
  without.*member = std::bit_cast<Member>(std::uint64_t{0});
  with.*member = std::bit_cast<Member>(~std::uint64_t{0});
  const auto a = std::bit_cast<Bytes>(without), b = std::bit_cast<Bytes>(with);
  std::uint32_t at = 0;
  while (a[at] == b[at]) ++at;
  return at;
}

/// See OperationInfo::kind_words.
template <Operation Op>
constexpr auto kind_words() {
  std::array<std::uint64_t, OperationInfo::kMaxBytes / 8 / 64> words{};
  for (std::size_t i = 0; i < sizeof(Op) / 8; ++i) words[i / 64] |= std::uint64_t{1} << i % 64;
  const auto leave_out = [&words](std::size_t offset, std::size_t bytes) {
    for (auto i = offset / 8; i < (offset + bytes) / 8; ++i)
      words[i / 64] &= ~(std::uint64_t{1} << i % 64);
  };
  std::apply(
      [&](const auto&... use) {
        (leave_out(offset_of(use.member), sizeof(std::declval<Op>().*use.member)), ...);
      },
      Op::kOperands);
  if constexpr (requires { Op::kPlaces; }) {
    std::apply([&](const auto&... place) { (leave_out(offset_of_number(place), 8), ...); },
               Op::kPlaces);
  }
  return words;
}

/// Which of its operands is an operation's result cell.
template <Operation Op>
constexpr std::size_t cell_index() {
  std::size_t i = 0;
  while (i < operand_table<Op>.size() && operand_table<Op>[i].offset != offset_of(Op::kCell)) ++i;
  return i;
}

template <Operation Op>
constexpr OperationInfo make_info() {
  static_assert(operand_table<Op>.size() <= OperationInfo::kMaxOperands);
  static_assert(sizeof(Op) <= OperationInfo::kMaxBytes);
  OperationInfo info;
  info.name = Op::kName;
  info.opcode = opcode_of<Op>;
  info.bytes = sizeof(Op);
  info.dtypes = Op::kDTypes;
  if constexpr (requires { Op::kLacking; }) info.lacking = Op::kLacking;
  if constexpr (requires { Op::kTail; }) info.tail = Op::kTail;
  if constexpr (requires { Op::kData; }) info.max_data = Op::kData;
  info.operands = operand_table<Op>;
  if constexpr (requires { Op::kCell; }) {
    static_assert(cell_index<Op>() < operand_table<Op>.size(),
                  "the result cell is one of kOperands");
    info.cell = &operand_table<Op>[cell_index<Op>()];
  }
  if constexpr (requires { Op::kTraits; }) info.traits = Op::kTraits;
  if constexpr (requires { Op::kInPlace; }) info.in_place = Op::kInPlace;
  info.kind_words = kind_words<Op>();
  info.check = [](const std::byte* op) { return as<Op>(op).check(); };
  if constexpr (requires(const Op& op) { op.check_parts(Parts{}); }) {
    info.check_parts = [](const std::byte* op, const Parts& parts) {
      return as<Op>(op).check_parts(parts);
    };
  }
  if constexpr (requires(const Op& op, const std::byte* cell) { op.verdict(cell); }) {
    info.verdict = [](const std::byte* op, const std::byte* cell) {
      return as<Op>(op).verdict(cell);
    };
  }
  if constexpr (requires(const Op& op) { op.lane(); }) {
    info.lane = [](const std::byte* op) { return as<Op>(op).lane(); };
  } else if constexpr (requires { Op::kLane; }) {
    info.lane = [](const std::byte*) { return Op::kLane; };
  }
  info.access = [](const std::byte* op, const OperandInfo& operand) {
    if constexpr (requires(const Operand& range) { as<Op>(op).access(range, Access::read); }) {
      return as<Op>(op).access(as<Operand>(op + operand.offset), operand.access);
    } else {
      return operand.access;
    }
  };
  info.written = [](const std::byte* op, const OperandInfo& operand) -> std::uint64_t {
    if constexpr (requires(const Operand& range) { as<Op>(op).written(range); }) {
      return as<Op>(op).written(as<Operand>(op + operand.offset));
    } else {
      return 0;
    }
  };
  info.tail_written = [](const std::byte* op, const TailOperand& operand) -> std::uint64_t {
    if constexpr (requires { as<Op>(op).tail_written(operand); }) {
      return as<Op>(op).tail_written(operand);
    } else {
      return 0;
    }
  };
  if constexpr (requires(const Op& op) { op.agreement(); }) {
    info.agreement = [](const std::byte* op) { return as<Op>(op).agreement(); };
    info.describe = [](const Agreement& agreement) { return Op::describe(agreement); };
  }
  if constexpr (requires(const Op& op) { op.check_world(0, 1); }) {
    info.check_world = [](const std::byte* op, int rank, int size) {
      return as<Op>(op).check_world(rank, size);
    };
  }
  return info;
}

}  // namespace detail

/// The table of one operation.
template <Operation Op>
inline constexpr OperationInfo info_of = detail::make_info<Op>();

/// An operation of this process.
struct KnownOperation {
  const OperationInfo* info = nullptr;
  Lane library_lane{};

  /// The lane that runs it.
  [[nodiscard]] Lane lane(const std::byte* op) const {
    return info->lane != nullptr ? info->lane(op) : library_lane;
  }
};
/// The operation of this opcode; its info is nullptr if no library of this process has it. One
/// step, however many there are. Any thread.
KnownOperation find_operation(std::uint32_t opcode) noexcept;
/// The lane of a library; nothing if no operation of it is known.
std::optional<Lane> known_library_lane(std::string_view library) noexcept;
/// The lane that runs an operation of this process.
template <Operation Op>
Lane lane_of(const Op& op) {
  return find_operation(opcode_of<Op>).lane(reinterpret_cast<const std::byte*>(&op));
}
/// troupe's own lanes and those of the libraries of this process are all below that number.
std::size_t lanes_in_use() noexcept;
/// Whether an operation is sound by itself: check(), its parts, its result cell. Nothing else may
/// be asked of an operation before. Errors: invalid, unsupported.
Result<void> check_operation(const OperationInfo& info, const std::byte* op, const Parts& parts);
/// All operations of this process, by name.
std::vector<const OperationInfo*> all_operations();
/// The name of an opcode, or "unknown".
std::string_view operation_name(std::uint32_t opcode) noexcept;

/// What a library's operations look like: their names, layouts, dtypes and traits.
struct LibraryFingerprint {
  std::string_view library;
  std::uint64_t value = 0;
};
/// The fingerprints of all libraries of this process, by name. Two processes that exchange commands
/// compare them: a record means the same to both only if they are equal.
std::vector<LibraryFingerprint> library_fingerprints();

/// Makes operations known to the process. A library's header has one behind its operations, so that
/// whoever includes it knows them:
///
///     inline const Library kLibrary{&info_of<Axpy>, &info_of<Dot>};
class Library {
 public:
  /// Throws troupe::Exception (invalid) if another operation has an opcode of theirs, or if there
  /// are more than kMaxLibraries libraries.
  Library(std::initializer_list<const OperationInfo*> operations);
};

}  // namespace troupe
