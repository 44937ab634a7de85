#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <troupe/dtype.hpp>
#include <troupe/error.hpp>

/// How an operation is defined.
///
/// An operation is one trivially copyable struct without padding, in the header of its library:
///
///     struct Axpy {
///       static constexpr std::string_view kName = "blas.axpy";
///       static constexpr DTypes kDTypes = DTypes::reals();
///       static constexpr Traits kTraits = kComputes;
///       OpDType dtype; std::int64_t n; … Operand x, y;
///       static constexpr std::array kOperands{read("x", &Axpy::x), update("y", &Axpy::y)};
///       static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};  // see overlap.hpp
///       Result<void> check() const;      // extents against Operand::bytes
///     };
///
/// Beside the struct a record may have, where the operation declares it:
///
///     static constexpr std::string_view kTail = "message";  // further operands; it calls them so
///     static constexpr std::uint32_t kData = 4096;          // at most so many inline bytes
///     Result<void> check_parts(const Parts& parts) const;   // both; check() has held
///     static constexpr auto kCell = &Potrf::info;           // the operand that is its result cell
///     Result<void> verdict(const std::byte* cell) const;    // what was computed is a failure
///
/// What decides whether results are right is declared, and is the safe answer where it is not:
/// without kTraits nothing is ever run again or on behalf of another rank, without kInPlace what is
/// written overlaps no other operand. May be declared beside:
///
///     Access access(const Operand&, Access declared) const;  // beta = 0: write, not update
///     std::uint64_t written(const Operand&) const;  // bytes surely overwritten, from its start
///     std::uint64_t tail_written(const TailOperand&) const;  // the same of one in the tail
///     Lane lane() const;                            // where it is not its library's
///     Agreement agreement() const;                  // collectives: what all ranks say alike
///     static std::string describe(const Agreement&);       // collectives: that in words
///     Result<void> check_world(int rank, int size) const;  // collectives: against the world
///     std::vector<IndexRule> index_rules() const;  // of indices in device memory: index_rule.hpp
///     static constexpr auto kPlaces = std::tuple{&Uniform::seed, …};  // fields of 8 bytes on
///                                   // which nothing depends that can be made ahead: see kind.hpp
///     static constexpr auto kLacking = std::array{Lacking{"cuda", …}};  // not on that
///
/// From that a table is made (operation_table.hpp), once, in a source file; all else works on the
/// table (operation_info.hpp): the wire record, validation on both sides of the ring, hazard
/// tracking, the lost set after a fault, replay, tokens, the trace label.
namespace troupe {

/// What an operation does to an operand.
enum class Access : std::uint8_t { read = 1, write = 2, update = 3 };

/// A range of device or pinned memory as it stands in a command record.
struct Operand {
  std::uint32_t region = 0;      ///< slab or pinned segment; 0: absent
  std::uint32_t buffer = 0;      ///< index in the rank's buffer table (0 for pinned memory)
  std::uint32_t generation = 0;  ///< generation of the buffer when the command was submitted
  std::uint32_t reserved = 0;
  std::uint64_t offset = 0;  ///< bytes from the start of the region
  std::uint64_t bytes = 0;

  [[nodiscard]] constexpr bool present() const noexcept { return region != 0; }
};

/// An operand of a command.
struct OperandUse {
  const Operand* range = nullptr;
  Access access{};
  std::string_view name;
};

/// Pinned segments have this bit set in their region id; slabs do not.
inline constexpr std::uint32_t kPinnedRegion = 0x8000'0000u;
/// Pinned segments that a new device host does not map by itself have this bit set as well.
inline constexpr std::uint32_t kApartRegion = 0x4000'0000u;
/// Slabs of other ranks of this node, mapped for reading: this bit without that of pinned segments.
/// Transfers and MappedRefs name them.
inline constexpr std::uint32_t kForeignRegion = kApartRegion;
constexpr bool is_foreign(std::uint32_t region) noexcept {
  return (region & (kPinnedRegion | kForeignRegion)) == kForeignRegion;
}
/// The region of an operand that names a buffer of some rank, plus that rank: `offset` counts from
/// the start of that buffer, `reserved` is the DType. Its owner translates it; no device host ever
/// sees it.
inline constexpr std::uint32_t kTokenRegion = 0x2000'0000u;

/// A scalar that is known to the host, or one element in device memory (then `device` is present).
struct Scalar {
  Operand device{};
  std::array<std::byte, 16> value{};  ///< the scalar, in its first bytes; of which dtype: see there

  template <Element T>
  static Scalar of(T number) noexcept {
    Scalar scalar;
    static_assert(sizeof(T) <= sizeof scalar.value && std::is_trivially_copyable_v<T>);
    std::memcpy(scalar.value.data(), &number, sizeof number);
    return scalar;
  }
  template <Element T>
  [[nodiscard]] T as() const noexcept {
    T number;
    std::memcpy(&number, value.data(), sizeof number);
    return number;
  }
  /// Zero, of either sign, and known to be so before the operation runs.
  [[nodiscard]] bool is_zero(DType dtype) const noexcept;
};

/// The queue of a device host that runs an operation: each is one stream. Those named here are
/// troupe's own; from first_library on each library has one, which belongs to its actor: see
/// library_lane(). Operations on different lanes overlap unless they depend on one another.
enum class Lane : std::uint8_t {
  memory,
  host_to_device,
  device_to_host,
  collective,
  first_library
};
inline constexpr std::size_t kLaneCount = 24;
inline constexpr std::size_t kMaxLibraries =
    kLaneCount - static_cast<std::size_t>(Lane::first_library);

/// The lane of a library whose operations this process knows. Lanes are dealt as libraries become
/// known: their numbers mean nothing to another process.
Lane library_lane(std::string_view library) noexcept;
/// "memory", "blas", …
std::string_view to_string(Lane lane) noexcept;

/// What may be done with an operation beside running it once, in its place.
struct Traits {
  /// From the same inputs it makes the same outputs, and does nothing else: after a fault it may
  /// run again.
  bool repeatable = false;
  bool remote = false;      ///< other ranks may ask for it, see RemoteDevice
  bool collective = false;  ///< all ranks of an epoch run it together, in one order
  /// To queue it may take long, or wait for the device: never on the reactor's thread.
  bool blocking = false;
  /// It may be part of a recorded sequence, and of a CUDA graph: once its library has prepared it,
  /// to queue it does nothing but launch.
  bool capturable = false;
  /// It runs code of the program's own, or measures: nothing is made ready for it by running it on
  /// zeros.
  bool not_prepared = false;
};
/// Those of an operation that computes its outputs from its inputs.
inline constexpr Traits kComputes{.repeatable = true, .remote = true};
/// The same of one that may be recorded.
inline constexpr Traits kComputesRecorded{.repeatable = true, .remote = true, .capturable = true};

/// What becomes of a command whose numbers do not allow a result.
enum class OnFailure : std::uint32_t {
  error,  ///< it fails with Errc::numeric, and what it was to write goes stale
  report  ///< it ends well; its future's value tells of it
};

/// What all ranks must say alike of a collective: everything but where their own data is.
struct Agreement {
  static constexpr std::uint32_t kNone = ~0u;  ///< the operation has no such argument

  std::uint32_t dtype = kNone;
  std::uint32_t reduction = kNone;  ///< of the library's own numbers
  std::uint32_t root = kNone;       ///< rank
  std::uint64_t count = 0;          ///< elements

  bool operator==(const Agreement&) const = default;
};

/// A DType on the wire, padded to eight bytes.
struct alignas(8) OpDType {
  DType value{};
  std::uint8_t reserved[7] = {};

  OpDType() = default;
  constexpr OpDType(DType dtype) : value(dtype) {}
  constexpr operator DType() const noexcept { return value; }
};

/// A set of dtypes.
struct DTypes {
  std::uint32_t bits = 0;

  static constexpr DTypes of(std::initializer_list<DType> list) {
    DTypes set;
    for (auto dtype : list) set.bits |= 1u << static_cast<unsigned>(dtype);
    return set;
  }
  static constexpr DTypes all() { return {(1u << kDTypeCount) - 1}; }
  static constexpr DTypes reals() { return of({DType::f32, DType::f64}); }
  /// What NCCL reduces: integers of 8, 32 and 64 bits and floating-point numbers of 8 to 64.
  static constexpr DTypes reducible() {
    return of({DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2,
               DType::i8, DType::u8, DType::i32, DType::u32, DType::i64, DType::u64});
  }
  [[nodiscard]] constexpr bool has(DType dtype) const noexcept {
    return static_cast<std::size_t>(dtype) < kDTypeCount &&
           (bits >> static_cast<unsigned>(dtype) & 1u) != 0;
  }
};

/// What an engine answers Errc::unsupported for, on every machine, of an operation's dtypes.
struct Lacking {
  std::string_view engine;  ///< "cpu", "cuda"
  DTypes dtypes;
};

/// One of any number of operands beside those in the operation's struct, which stand in the
/// record's tail: messages of an exchange, the matrices of a batch, what a kernel is given.
struct TailOperand {
  Operand range{};
  std::uint32_t tag = 0;  ///< what it is to the operation: a peer, a place in the batch, …
  Access access = Access::read;
  std::uint8_t reserved[3] = {};

  [[nodiscard]] constexpr bool written() const noexcept { return access != Access::read; }
};

/// A value among the inline bytes that each run of a recorded sequence may change; see Parameter.
struct InlineParameter {
  std::uint32_t id = 0;
  std::uint32_t offset = 0;  ///< of its bytes
};

/// What a record has beside the operation's struct.
struct Parts {
  std::span<const TailOperand> tail;
  std::span<const std::byte> data;              ///< aligned to 8
  std::span<const InlineParameter> parameters;  ///< in `data`; only recordings look at them

  Parts() = default;
  template <std::convertible_to<std::span<const TailOperand>> Tail>
  Parts(const Tail& its_tail, std::span<const std::byte> its_data = {})
      : tail(its_tail), data(its_data) {}
};

/// An operand as an operation declares it: its name, and the member that holds it.
template <class Op>
struct DeclaredOperand {
  constexpr DeclaredOperand(std::string_view its_name, Operand Op::*member, Access its_access)
      : name(its_name), access(its_access), operand(member) {}
  constexpr DeclaredOperand(std::string_view its_name, Scalar Op::*member, Access its_access)
      : name(its_name), access(its_access), scalar(member) {}

  std::string_view name;
  Access access;
  Operand Op::*operand = nullptr;  ///< this
  Scalar Op::*scalar = nullptr;    ///< or this
};
template <class Op, class Member>
constexpr DeclaredOperand<Op> read(std::string_view name, Member Op::*member) {
  return {name, member, Access::read};
}
template <class Op, class Member>
constexpr DeclaredOperand<Op> write(std::string_view name, Member Op::*member) {
  return {name, member, Access::write};
}
template <class Op, class Member>
constexpr DeclaredOperand<Op> update(std::string_view name, Member Op::*member) {
  return {name, member, Access::update};
}
constexpr const Operand& operand_of(const Operand& operand) noexcept {
  return operand;
}
constexpr const Operand& operand_of(const Scalar& scalar) noexcept {
  return scalar.device;
}
constexpr Operand& operand_of(Operand& operand) noexcept {
  return operand;
}
constexpr Operand& operand_of(Scalar& scalar) noexcept {
  return scalar.device;
}

/// The wire's name for an operation: FNV-1a of kName (http://www.isthe.com/chongo/tech/comp/fnv).
/// Two operations with the same one cannot be registered in one process.
template <class Op>
inline constexpr std::uint32_t opcode_of = [] {
  std::uint32_t hash = 2166136261u;
  for (char c : Op::kName) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return hash;
}();

template <class Op>
concept Operation = std::is_trivially_copyable_v<Op> && std::is_standard_layout_v<Op> &&
                        alignof(Op) == 8 &&
                    sizeof(Op) % 8 == 0 && requires(const Op& op) {
  { Op::kName } -> std::convertible_to<std::string_view>;
  { op.check() } -> std::same_as<Result<void>>;
};

/// The operations of a library, each once: what tables, halves and checks of all of them are made
/// from.
template <Operation... Ops>
struct List {};

}  // namespace troupe
