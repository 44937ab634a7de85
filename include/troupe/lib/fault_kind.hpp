#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::memory {

/// The faults that a device host can be told to suffer, for tests and drills. device_failure: it
/// says of its device what it says after an uncorrectable memory error, and the device is given up;
/// all others are real.
enum class FaultKind : std::uint32_t {
  kill,
  segv,
  hang,
  exit,
  device_failure,
  illegal_address,
  trap,
  assertion,
  misaligned
};
inline constexpr std::size_t kFaultKindCount = 9;
constexpr std::string_view to_string(FaultKind kind) noexcept {
  constexpr std::string_view kNames[kFaultKindCount] = {"kill", "segv",           "hang",
                                                        "exit", "device-failure", "illegal-address",
                                                        "trap", "assert",         "misaligned"};
  return kNames[static_cast<std::size_t>(kind)];
}
/// True if it is one of a CUDA context, which the cpu engine does not have.
constexpr bool needs_gpu(FaultKind kind) noexcept {
  return kind >= FaultKind::illegal_address;
}
/// The kind of that name; nothing if there is none.
constexpr std::optional<FaultKind> fault_kind(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kFaultKindCount; ++i) {
    if (name == to_string(static_cast<FaultKind>(i))) return static_cast<FaultKind>(i);
  }
  return std::nullopt;
}

}  // namespace troupe::memory

namespace troupe {

/// Faults that no hardware and no driver tells of: numbers are wrong from then on, or, with slow,
/// all takes longer.
enum class SilentFault : std::uint8_t {
  flip,           ///< once: a bit of the state of the run (Checkpoint::add), behind the step
  flip_result,    ///< once: a bit of what the next operation of a library writes
  sick_gpu,       ///< from then on: the last bit of what each seventh operation of a library writes
  stray_write,    ///< once: a bit of a constant (Checkpoint::add_constant), or of memory that is
                  ///< guarded (--check writes), by a command that is not to write it
  wrong_product,  ///< once: an element of the next product that is looked at (--check products)
  wrong_products,  ///< twice, so that doing the product again does not help
  slow             ///< from then on: each step of a run takes several times as long on this rank
};
inline constexpr SilentFault kSilentFaults[] = {
    SilentFault::flip,        SilentFault::flip_result,   SilentFault::sick_gpu,
    SilentFault::stray_write, SilentFault::wrong_product, SilentFault::wrong_products,
    SilentFault::slow};
constexpr std::string_view to_string(SilentFault fault) noexcept {
  constexpr std::string_view kNames[] = {
      "flip", "flip-result", "sick-gpu", "stray-write", "wrong-product", "wrong-products", "slow"};
  return kNames[static_cast<std::size_t>(fault)];
}

}  // namespace troupe
