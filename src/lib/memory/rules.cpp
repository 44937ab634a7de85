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

Result<void> CopyRows::check() const {
  return checker(*this)
      .matrix("source", source, length, rows, source_leading)
      .matrix("destination", destination, length, rows, destination_leading)
      .require(source.present() && destination.present(), "an operand is missing")
      .require((source.region & kPinnedRegion) == 0 && (destination.region & kPinnedRegion) == 0,
               "both sides must be device memory")
      .result();
}

Result<void> Digest::check() const {
  return checker(*this)
      .require(source.present() && result.present(), "an operand is missing")
      .require(result.bytes >= 8 && result.offset % 8 == 0, "the result has no room for a u64")
      .require((source.region & kPinnedRegion) == 0 && (result.region & kPinnedRegion) == 0,
               "both sides must be device memory")
      .result();
}

namespace {

/// For a command that changes one bit.
template <class Op>
Result<void> check_bit(const Op& op) {
  return checker(op)
      .require(op.range.present() && (op.range.region & kPinnedRegion) == 0, "the range is missing")
      .require(op.bit / 8 < op.range.bytes, "the bit lies beyond the range")
      .result();
}

}  // namespace

Result<void> Flip::check() const {
  return check_bit(*this);
}
Result<void> StrayWrite::check() const {
  return check_bit(*this);
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
  return checker(*this)
      .require(wrong <= 2, "wrong must be 0 to 2")
      .require(wrong > 0 || !name().empty(), "the library's name is missing")
      .result();
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::memory
