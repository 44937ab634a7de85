#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include <troupe/lib/operation_info.hpp>

/// How the tables of operations are made: for the source file that defines them, not for those that
/// use them, which are compiled in a fraction of the time without it.
namespace troupe {

namespace detail {

template <class Op>
const Op& as(const std::byte* op) noexcept {
  return *reinterpret_cast<const Op*>(op);
}

/// The name of a type, as the compiler writes it.
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with T = troupe::blas::Gemm; ...]"
  text.remove_prefix(text.find("T = ") + 4);
  return text.substr(0, text.find_first_of(";]"));
}

/// Reads all bytes of an operation: no constant where some of them belong to no field.
template <class Op>
constexpr bool reads_all_bytes() {
  unsigned sum = 0;
  for (const auto byte : std::bit_cast<std::array<std::byte, sizeof(Op)>>(Op{}))
    sum += std::to_integer<unsigned>(byte);
  return sum != 0;
}
/// True if the fields of an operation fill it.
template <class Op>
concept WithoutHoles = requires {
  typename std::bool_constant<reads_all_bytes<Op>()>;
};

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

template <class Op>
constexpr std::uint32_t offset_of(const DeclaredOperand<Op>& use) {
  return use.operand != nullptr ? offset_of(use.operand) : offset_of(use.scalar);
}
template <class Op>
constexpr std::size_t bytes_of(const DeclaredOperand<Op>& use) {
  return use.operand != nullptr ? sizeof(Operand) : sizeof(Scalar);
}

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

template <Operation Op>
inline constexpr auto operand_table = [] {
  std::array<OperandInfo, Op::kOperands.size()> table;
  std::size_t i = 0;
  for (const auto& use : Op::kOperands) table[i++] = {use.name, offset_of(use), use.access};
  return table;
}();

/// See OperationInfo::kind_words.
template <Operation Op>
constexpr auto kind_words() {
  std::array<std::uint64_t, OperationInfo::kMaxBytes / 8 / 64> words{};
  for (std::size_t i = 0; i < sizeof(Op) / 8; ++i) words[i / 64] |= std::uint64_t{1} << i % 64;
  const auto leave_out = [&words](std::size_t offset, std::size_t bytes) {
    for (auto i = offset / 8; i < (offset + bytes) / 8; ++i)
      words[i / 64] &= ~(std::uint64_t{1} << i % 64);
  };
  for (const auto& use : Op::kOperands) leave_out(offset_of(use), bytes_of(use));
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
constexpr OperationInfo info_of_fields() {
  static_assert(operand_table<Op>.size() <= OperationInfo::kMaxOperands);
  static_assert(sizeof(Op) <= OperationInfo::kMaxBytes);
  OperationInfo info;
  info.name = Op::kName;
  info.type = type_name<Op>();
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
  if constexpr (requires(const Op& op) { op.index_rules(); }) {
    info.index_rules = [](const std::byte* op) { return as<Op>(op).index_rules(); };
  }
  return info;
}

template <Operation Op>
constexpr OperationInfo make_info() {
  static_assert(
      WithoutHoles<Op>,
      "the operation has a hole: bytes between its fields, or behind them, that belong to "
      "none. Order its fields by size, or fill it with a field such as `std::uint32_t "
      "reserved = 0;`");
  if constexpr (WithoutHoles<Op>) return info_of_fields<Op>();
  return {};
}

}  // namespace detail

template <class Op>
constinit const OperationInfo detail::OperationTable<Op>::info = detail::make_info<Op>();

/// The tables of all operations of a list, which are made where this is called.
template <Operation... Ops>
std::span<const OperationInfo* const> tables_of(List<Ops...>) noexcept {
  static constexpr std::array<const OperationInfo*, sizeof...(Ops)> kTables{&info_of<Ops>...};
  return kTables;
}

}  // namespace troupe
