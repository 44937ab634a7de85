#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
///       static constexpr Lane kLane = Lane::blas;
///       static constexpr DTypes kDTypes = DTypes::reals();
///       OpDType dtype; std::int64_t n; … Operand x, y;
///       static constexpr auto kOperands = std::tuple{read("x", &Axpy::x), update("y", &Axpy::y)};
///       static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};  // see overlap.hpp
///       Result<void> check() const;      // extents against Operand::bytes
///     };
///
/// Without kInPlace what is written overlaps no other operand. From that come the opcode, the wire
/// record, validation on both sides of the ring, hazard tracking, the lost set after a fault, the
/// trace label and the engine's virtual function.
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

/// Pinned segments have this bit set in their region id; slabs do not.
inline constexpr std::uint32_t kPinnedRegion = 0x8000'0000u;
/// Pinned segments that a new device host does not map by itself have this bit set as well.
inline constexpr std::uint32_t kApartRegion = 0x4000'0000u;
/// Slabs of other ranks of this node, mapped for reading: this bit without that of pinned segments.
/// Only troupe's own transfers name them.
inline constexpr std::uint32_t kForeignRegion = kApartRegion;
constexpr bool is_foreign(std::uint32_t region) noexcept {
  return (region & (kPinnedRegion | kForeignRegion)) == kForeignRegion;
}
/// The region of an operand that names a buffer of some rank, plus that rank: `offset` counts from
/// the start of that buffer, `reserved` is the DType. Its owner translates it; no device host ever
/// sees it.
inline constexpr std::uint32_t kTokenRegion = 0x2000'0000u;

/// A factor that is known to the host, or one element in device memory (then `device` is present).
struct Scalar {
  Operand device{};
  double value = 0;
};

/// The queue of a device host that runs an operation: each is one stream, and all but the copy
/// lanes belong to the actor of one library. Operations on different lanes overlap unless they
/// depend.
enum class Lane : std::uint8_t {
  memory,
  host_to_device,
  device_to_host,
  vector,
  blas,
  sparse,
  rng,
  collective
};
inline constexpr std::size_t kLaneCount = 8;

constexpr std::string_view to_string(Lane lane) noexcept {
  constexpr std::string_view kNames[kLaneCount] = {"memory", "host_to_device", "device_to_host",
                                                   "vector", "blas",           "sparse",
                                                   "rng",    "collective"};
  return kNames[static_cast<std::size_t>(lane)];
}

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
  /// What NCCL reduces: every integer and floating type but the complex ones.
  static constexpr DTypes reducible() { return {all().bits & ~of({DType::c64, DType::c128}).bits}; }
  [[nodiscard]] constexpr bool has(DType dtype) const noexcept {
    return static_cast<std::size_t>(dtype) < kDTypeCount &&
           (bits >> static_cast<unsigned>(dtype) & 1u) != 0;
  }
};

/// One message of a grouped point-to-point operation; stands in the record's tail.
struct PeerTransfer {
  Operand data{};
  std::uint32_t peer = 0;
  std::uint32_t receive = 0;  ///< 0: send `data` (read), 1: receive into it (written)
};

template <class Op, class Member>
struct OperandUse {
  std::string_view name;
  Member Op::*member;
  Access access;
};
template <class Op, class Member>
constexpr auto read(std::string_view name, Member Op::*member) {
  return OperandUse<Op, Member>{name, member, Access::read};
}
template <class Op, class Member>
constexpr auto write(std::string_view name, Member Op::*member) {
  return OperandUse<Op, Member>{name, member, Access::write};
}
template <class Op, class Member>
constexpr auto update(std::string_view name, Member Op::*member) {
  return OperandUse<Op, Member>{name, member, Access::update};
}

inline const Operand& operand_of(const Operand& operand) noexcept {
  return operand;
}
inline const Operand& operand_of(const Scalar& scalar) noexcept {
  return scalar.device;
}

inline Operand& operand_of(Operand& operand) noexcept {
  return operand;
}
inline Operand& operand_of(Scalar& scalar) noexcept {
  return scalar.device;
}

template <class Op>
concept HasTail = requires {
  requires Op::kHasTail;
};

/// Calls visit(name, operand, access) for each operand that is present.
template <class Op, class Visit>
void for_each_operand(const Op& op, std::span<const PeerTransfer> tail, Visit&& visit) {
  std::apply(
      [&](const auto&... use) {
        (..., (operand_of(op.*(use.member)).present()
                   ? visit(use.name, operand_of(op.*(use.member)), use.access)
                   : void()));
      },
      Op::kOperands);
  if constexpr (HasTail<Op>) {
    for (const auto& part : tail)
      visit("transfer", part.data, part.receive != 0 ? Access::write : Access::read);
  }
}

/// Calls change(operand) for each operand that is present, until one answers with an error.
template <class Op, class Change>
Result<void> change_operands(Op& op, Change&& change) {
  Result<void> outcome;
  const auto one = [&](Operand& operand) {
    if (operand.present()) outcome = change(operand);
    return outcome.ok();
  };
  std::apply([&](const auto&... use) { (void)(... && one(operand_of(op.*(use.member)))); },
             Op::kOperands);
  return outcome;
}

/// The wire's name for an operation: FNV-1a of kName (http://www.isthe.com/chongo/tech/comp/fnv),
/// proven unique over all operations at compile time.
template <class Op>
inline constexpr std::uint32_t opcode_of = [] {
  std::uint32_t hash = 2166136261u;
  for (char c : Op::kName) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
  return hash;
}();

template <class Op>
concept Operation = std::is_trivially_copyable_v<Op> && std::is_standard_layout_v<Op> &&
    requires(const Op& op) {
  { Op::kName } -> std::convertible_to<std::string_view>;
  { op.check() } -> std::same_as<Result<void>>;
};

}  // namespace troupe
