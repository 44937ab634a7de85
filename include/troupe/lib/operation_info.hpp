#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/lib/index_rule.hpp>
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
  /// What it demands of indices in device memory, which check() cannot look at; nullptr: it has
  /// none.
  std::vector<IndexRule> (*index_rules)(const std::byte* op) = nullptr;
  std::string_view type;  ///< the name of its struct: "troupe::blas::Gemm"

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
struct OperationTable {
  static const OperationInfo info;  // operation_table.hpp
};

}  // namespace detail

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"  // it is defined elsewhere
#endif
/// The table of one operation: of those that come with troupe it stands in their library, of others
/// in the file that includes operation_table.hpp and names `&info_of<Op>`.
template <Operation Op>
inline constexpr const OperationInfo& info_of = detail::OperationTable<Op>::info;
#ifdef __clang__
#pragma clang diagnostic pop
#endif

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

/// Makes operations known to the process. A program has one for operations of its own, in a source
/// file that includes operation_table.hpp:
///
///     const Library kLibrary{tables_of(List<Axpy, Dot>{})};
///
/// A library's header has one behind its operations, so that whoever includes it knows them; their
/// tables are made in one source file of the library, by `return tables_of(Operations{});`:
///
///     using Operations = List<Axpy, Dot>;
///     std::span<const OperationInfo* const> operations() noexcept;
///     inline const Library kLibrary{operations()};
class Library {
 public:
  /// Throws troupe::Exception (invalid) if another operation has an opcode of theirs, if one of
  /// their names is that of another struct or of one with other fields, or if there are more than
  /// kMaxLibraries libraries. The message names both places; `place`: this one.
  explicit Library(std::span<const OperationInfo* const> operations,
                   const std::source_location& place = std::source_location::current());
};

}  // namespace troupe
