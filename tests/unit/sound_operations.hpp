#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <troupe/error.hpp>

#include "common/wire/record.hpp"

/// Operations of every kind that check out, and the records they make.
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

inline void set(Operand& operand, std::uint32_t region) {
  operand = {region, region + 100, 3, 0, region * 64, 4096};
}
inline void set(Scalar& scalar, std::uint32_t region) {
  set(scalar.device, region);
}

/// An operation that checks out: every operand there, every extent 4.
template <class Op>
Op sound() {
  Op op{};
  op.dtype = DType::f64;
  std::uint32_t region = 0;
  std::apply([&](const auto&... use) { (..., set(op.*(use.member), ++region)); }, Op::kOperands);
  if constexpr (requires { op.count; }) op.count = 4;
  if constexpr (requires { op.n; }) op.n = 4;
  if constexpr (requires { op.m; }) op.m = 4;
  if constexpr (requires { op.k; }) op.k = 4;
  if constexpr (requires { op.lda; }) op.lda = 5;
  if constexpr (requires { op.ldb; }) op.ldb = 6, op.ldc = 7;
  if constexpr (requires { op.rows; }) op.rows = op.columns = op.nonzeros = 4;
  if constexpr (requires { op.source_length; }) op.source_length = 4;
  if constexpr (requires { op.index_dtype; }) op.index_dtype = DType::i32;
  if constexpr (requires { op.slice_rows; }) op.slice_rows = 4, op.stored = 8;
  return op;
}

inline std::vector<PeerTransfer> some_tail() {
  std::vector<PeerTransfer> tail(3);
  for (std::uint32_t i = 0; i < 3; ++i)
    set(tail[i].data, i + 1), tail[i].peer = i, tail[i].receive = i % 2;
  return tail;
}

/// The record of ticket 77, in epoch 9.
template <class Op>
std::vector<std::byte> record_of(const Op& op) {
  Recorder recorder;
  const auto tail = HasTail<Op> ? some_tail() : std::vector<PeerTransfer>{};
  const auto outcome = troupe::detail::submit(recorder, op, tail, 9).wait();
  check(outcome.ok(), "an operation that checks out is refused");
  return recorder.record;
}

}  // namespace troupe::wire::test
