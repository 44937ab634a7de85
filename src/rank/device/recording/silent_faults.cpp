#include "rank/device/recording/silent_faults.hpp"

#include <algorithm>

#include <troupe/lib/memory.hpp>

namespace troupe::rank_process {
namespace {

constexpr std::uint64_t kEach = 7;  ///< of a sick GPU's operations one is wrong

/// A range of device memory that a library's operation writes, if it has one.
const Operand* result_of(const detail::CommandView& command) {
  if (command.info->traits.collective || command.info->name.starts_with("memory.")) return nullptr;
  const auto writes = [](const Operand& range, Access access) {
    return access != Access::read && (range.region & kPinnedRegion) == 0 && range.bytes > 0;
  };
  for (const auto& use : command.uses())
    if (writes(*use.range, use.access)) return use.range;
  for (const auto& operand : command.tail)
    if (writes(operand.range, operand.access)) return &operand.range;
  return nullptr;
}

}  // namespace

void SilentFaults::order(SilentFault fault) {
  switch (fault) {
    case SilentFault::flip: ++flips_; return;
    case SilentFault::stray_write: ++strays_; return;
    case SilentFault::slow: slow_ = true; return;
    case SilentFault::flip_result: ++results_; break;
    case SilentFault::sick_gpu: sick_ = true; break;
    case SilentFault::wrong_product:
    case SilentFault::wrong_products: return;  // the device host's
  }
  follows_ = true;
}

void SilentFaults::after(const detail::CommandView& command, detail::Submitter& device) {
  const auto* const result = result_of(command);
  if (result == nullptr) return;
  const auto number = operations_.fetch_add(1);
  if (results_.load() > 0 && results_.fetch_sub(1) > 0) {
    const auto bit = memory::Digest::mix(number + 1) % (8 * result->bytes);
    (void)detail::submit(device, memory::Flip{DType::u8, bit, *result});
  } else if (sick_ && number % kEach == 0) {
    // The lowest bit of an element is the last one of its digits; it lies in the middle.
    const auto byte = result->bytes / 2 / 16 * 16;
    (void)detail::submit(device, memory::Flip{DType::u8, 8 * byte, *result});
  }
  if (results_.load() <= 0 && !sick_) follows_ = false;
}

}  // namespace troupe::rank_process
