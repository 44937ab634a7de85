#include <troupe/lib/channel.hpp>
#include <troupe/lib/operation_table.hpp>

#include "common/wire/checker.hpp"

namespace troupe::channel {
namespace {

/// What all operations on an end demand.
template <class Op>
auto numbered(const Op& op) {
  return wire::checker(op).require(op.number != 0, "the end has no number");
}

}  // namespace

Result<void> Invite::check() const {
  constexpr auto kWords = static_cast<std::int64_t>(sizeof(Invitation) / sizeof(std::uint64_t));
  return numbered(*this).holds("invitation", invitation, kWords, sizeof(std::uint64_t)).result();
}

Result<void> Connect::check() const {
  return numbered(*this).result();
}

Result<void> Join::check() const {
  return numbered(*this).result();
}
Result<void> Join::check_parts(const Parts& parts) const {
  return wire::checker(*this).require(!parts.data.empty(), "the invitation is missing").result();
}

Result<void> Settle::check() const {
  return wire::checker(*this).require(range.present(), "the range is missing").result();
}

Result<void> Send::check() const {
  return numbered(*this)
      .require(source.present() && source.bytes != 0, "there is nothing to send")
      .result();
}

Result<void> Receive::check() const {
  return numbered(*this)
      .require(destination.present() && destination.bytes != 0, "there is nothing to receive")
      .result();
}

Result<void> Drop::check() const {
  return numbered(*this).result();
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::channel
