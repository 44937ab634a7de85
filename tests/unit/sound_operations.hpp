#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <troupe/error.hpp>

#include <troupe/lib/operations.hpp>

#include "common/wire/record.hpp"
#include "samples.hpp"

/// The records that samples make.
namespace troupe::wire::test {

/// Encodes what is submitted, as a command port does.
class Recorder final : public troupe::detail::Submitter {
 public:
  Future<void> submit(const troupe::detail::CommandView& command) override {
    record.resize(record_bytes(command));
    encode(command, 77, record);
    return Future<void>(Result<void>());
  }
  Future<void> refuse(Error error) override { return Future<void>(std::move(error)); }
  std::vector<std::byte> record;
};

using troupe::test::range_in;
using troupe::test::Sample;
using troupe::test::sample_of;
using troupe::test::samples;

/// Inline bytes, for operations that have some.
inline std::span<const std::byte> some_data(const OperationInfo& info) {
  if (const auto& own = sample_of(info).data; !own.empty()) return own;
  alignas(8) static constexpr std::array<std::byte, 24> kData{};
  return std::span(kData).first(info.max_data != 0 ? kData.size() : 0);
}

/// The record of ticket 77, in epoch 9, with the tail of the operation's sample. `op`: aligned
/// to 8.
inline std::vector<std::byte> record_of(const OperationInfo& info, std::span<const std::byte> op) {
  Recorder recorder;
  const Parts parts(sample_of(info).tail, some_data(info));
  const auto outcome = troupe::detail::submit(recorder, info, op, parts, 9).wait();
  check(outcome.ok(), outcome.ok() ? "" : outcome.error().message);
  return recorder.record;
}
template <Operation Op>
std::vector<std::byte> record_of(const Op& op) {
  return record_of(info_of<Op>, std::as_bytes(std::span(&op, 1)));
}

}  // namespace troupe::wire::test
