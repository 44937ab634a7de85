#pragma once

#include <cstring>

#include <troupe/lib/fault_kind.hpp>
#include <troupe/lib/operation_info.hpp>

/// Operations on memory itself; `Device::fill` and `Device::copy` submit them.
namespace troupe::memory {

/// Sets `count` elements to one value, given as the element's bytes.
struct Fill {
  static constexpr std::string_view kName = "memory.fill";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::uint64_t count = 0;
  std::uint8_t pattern[16] = {};  ///< the element, in its first size_of(dtype) bytes
  Operand destination;

  static constexpr std::array kOperands{write("destination", &Fill::destination)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return count * size_of(dtype);
  }
};

/// Copies source.bytes bytes; host-to-device, device-to-host or device-to-device as the regions
/// say.
struct Copy {
  static constexpr std::string_view kName = "memory.copy";
  static constexpr Lane kLane =
      Lane::memory;  ///< copies from and to the host have lanes of their own
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Operand source, destination;

  static constexpr std::array kOperands{read("source", &Copy::source),
                                        write("destination", &Copy::destination)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return source.bytes; }

  [[nodiscard]] Lane lane() const noexcept {
    if ((source.region & kPinnedRegion) != 0) return Lane::host_to_device;
    return (destination.region & kPinnedRegion) != 0 ? Lane::device_to_host : Lane::memory;
  }
};

/// Copies `rows` runs of `length` elements from device memory, also of another rank, to device
/// memory. Run i begins i * source_leading elements behind the start of the source and
/// i * destination_leading behind that of the destination; what lies between is left as it is.
struct CopyRows {
  static constexpr std::string_view kName = "memory.copy_rows";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t length = 0, rows = 0;
  std::int64_t source_leading = 0, destination_leading = 0;  ///< at least length, and 1
  Operand source, destination;

  static constexpr std::array kOperands{read("source", &CopyRows::source),
                                        write("destination", &CopyRows::destination)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    const bool gaps = rows > 1 && destination_leading != length;
    return gaps ? 0 : static_cast<std::uint64_t>(rows * length) * size_of(dtype);
  }
};

/// A number that tells contents apart, of any dtype and length: see Device::digest().
///
/// The range is read as words w_0, w_1, … of 8 bytes, the lowest byte first, the last one filled up
/// with zeros. result = mix(bytes) + sum of mix(w_i + (i + 1) * 0x9e3779b97f4a7c15), modulo 2^64,
/// where mix is the 64-bit finalizer of MurmurHash3 (A. Appleby, 2011) with shifts by 32. For each
/// place mix is one-to-one: contents that differ in one word only always have different digests.
struct Digest {
  static constexpr std::string_view kName = "memory.digest";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Operand source;
  Operand result;  ///< 8 bytes of device memory, at a multiple of 8

  static constexpr std::array kOperands{read("source", &Digest::source),
                                        write("result", &Digest::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return 8; }

  /// mix() above.
  static constexpr std::uint64_t mix(std::uint64_t word) noexcept {
    word ^= word >> 32;
    word *= 0xff51'afd7'ed55'8ccdu;
    word ^= word >> 32;
    word *= 0xc4ce'b9fe'1a85'ec53u;
    return word ^ word >> 32;
  }
  static constexpr std::uint64_t kPlace = 0x9e37'79b9'7f4a'7c15u;
};

/// Changes one bit of device memory, as broken hardware might: for tests and drills.
struct Flip {
  static constexpr std::string_view kName = "memory.flip";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.capturable = true};

  OpDType dtype;
  std::uint64_t bit = 0;  ///< bit `bit % 8` of byte `bit / 8` of the range
  Operand range;

  static constexpr std::array kOperands{update("range", &Flip::range)};
  Result<void> check() const;
};

/// The same without a word that it writes, as a kernel that goes beyond its operands: for tests and
/// drills.
struct StrayWrite {
  static constexpr std::string_view kName = "memory.stray_write";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  std::uint64_t bit = 0;  ///< as Flip has it
  Operand range;

  static constexpr std::array kOperands{read("range", &StrayWrite::range)};
  Result<void> check() const;
};

/// Does nothing: completes when the device host reaches it in program order.
struct Nop {
  static constexpr std::string_view kName = "memory.nop";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = kComputes;

  OpDType dtype;

  static constexpr std::array<DeclaredOperand<Nop>, 0> kOperands{};
  Result<void> check() const { return {}; }
};

/// Moves nothing: completes once every earlier command that writes the range has.
struct Fence {
  static constexpr std::string_view kName = "memory.fence";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;
  Operand range;

  static constexpr std::array kOperands{read("range", &Fence::range)};
  Result<void> check() const;
};

/// Makes the device host suffer a real fault when it reaches this command.
struct Fault {
  static constexpr std::string_view kName = "memory.fault";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  FaultKind kind{};
  std::uint32_t reserved = 0;

  static constexpr std::array<DeclaredOperand<Fault>, 0> kOperands{};
  Result<void> check() const;
};

/// Lets the next call of a library fail, or the next products that are looked at be wrong: for
/// tests.
struct LibraryFault {
  static constexpr std::string_view kName = "memory.library_fault";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();

  OpDType dtype;
  /// 0: the next call fails. Otherwise none does, and so many products, of any library, that are
  /// looked at (--check products) are wrong, those that are done again counted; 0 to 2.
  std::uint32_t wrong = 0;
  std::uint32_t reserved = 0;
  char library[24] = {};  ///< its name, filled up with zeros; of no meaning for wrong products

  [[nodiscard]] std::string_view name() const noexcept {
    return {library, ::strnlen(library, sizeof library)};
  }
  static constexpr std::array<DeclaredOperand<LibraryFault>, 0> kOperands{};
  Result<void> check() const;
};

/// Makes ready what another command needs, whose record stands in the inline bytes: its library is
/// opened, and the command runs once on scratch memory full of zeros, so that plans are made and
/// kernels loaded. Its operands are neither read nor written.
struct Prepare {
  static constexpr std::string_view kName = "memory.prepare";
  static constexpr Lane kLane = Lane::memory;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.repeatable = true};
  static constexpr std::uint32_t kData = 32768;

  OpDType dtype;

  static constexpr std::array<DeclaredOperand<Prepare>, 0> kOperands{};
  Result<void> check() const { return {}; }
  Result<void> check_parts(const Parts& parts) const;
};

/// All of them; whoever includes this header knows them.
using Operations =
    List<Fill, Copy, CopyRows, Digest, Flip, StrayWrite, Nop, Fence, Fault, LibraryFault, Prepare>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::memory
