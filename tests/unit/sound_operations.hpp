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

inline std::vector<TailOperand> some_tail() {
  std::vector<TailOperand> tail(3);
  for (std::uint32_t i = 0; i < 3; ++i)
    tail[i] = {range_in(i + 1), i, i % 2 != 0 ? Access::write : Access::read};
  return tail;
}

/// Inline bytes, for operations that have some.
inline std::span<const std::byte> some_data(const OperationInfo& info) {
  alignas(8) static constexpr std::array<std::byte, 24> kData{};
  return std::span(kData).first(info.max_data != 0 ? kData.size() : 0);
}

/// The record of ticket 77, in epoch 9. `op`: aligned to 8.
inline std::vector<std::byte> record_of(const OperationInfo& info, std::span<const std::byte> op) {
  Recorder recorder;
  const auto tail = !info.tail.empty() ? some_tail() : std::vector<TailOperand>{};
  const auto outcome =
      troupe::detail::submit(recorder, info, op, Parts(tail, some_data(info)), 9).wait();
  check(outcome.ok(), "an operation that checks out is refused");
  return recorder.record;
}
template <Operation Op>
std::vector<std::byte> record_of(const Op& op) {
  return record_of(info_of<Op>, std::as_bytes(std::span(&op, 1)));
}

}  // namespace troupe::wire::test
