#include <troupe/lib/memory.hpp>
#include <troupe/lib/operation_table.hpp>

#include "common/wire/checker.hpp"

namespace troupe::memory {

using wire::checker;

Result<void> Fill::check() const {
  return checker(*this).holds("destination", destination, count).result();
}

Result<void> Copy::check() const {
  auto checks = checker(*this);
  if (source.bytes != destination.bytes) {
    checks.require(false, "the source has " + std::to_string(source.bytes) +
                              " bytes, the destination " + std::to_string(destination.bytes));
  }
  return checks.require(source.present() && destination.present(), "an operand is missing")
      .require((source.region & kPinnedRegion) == 0 || (destination.region & kPinnedRegion) == 0,
               "one side must be device memory")
      .result();
}

Result<void> Fence::check() const {
  return checker(*this).require(range.present(), "the range is missing").result();
}

Result<void> Fault::check() const {
  return checker(*this)
      .require(static_cast<std::size_t>(kind) < kFaultKindCount, "unknown fault kind")
      .result();
}

Result<void> Prepare::check_parts(const Parts& parts) const {
  return checker(*this)
      .require(!parts.data.empty(), "the record of the command is missing")
      .result();
}

Result<void> LibraryFault::check() const {
  return checker(*this).require(!name().empty(), "the library's name is missing").result();
}

std::span<const OperationInfo* const> operations() noexcept {
  static constexpr std::array kAll{&info_of<Fill>,   &info_of<Copy>,  &info_of<Nop>,
                                   &info_of<Fence>,  &info_of<Fault>, &info_of<LibraryFault>,
                                   &info_of<Prepare>};
  return kAll;
}

}  // namespace troupe::memory
