#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <troupe/error.hpp>

#include <troupe/lib/operations.hpp>

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

inline Operand range_in(std::uint32_t region) {
  return {region, region + 100, 3, 0, region * 64, 4096};
}

/// An operation that checks out: every operand there, every extent 4.
template <class Op>
Op sound() {
  Op op{};
  op.dtype = DType::f64;
  auto* const bytes = reinterpret_cast<std::byte*>(&op);
  std::uint32_t region = 0;
  for (const auto& operand : info_of<Op>.operands)
    info_of<Op>.operand(bytes, operand) = range_in(++region);
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

inline std::vector<TailOperand> some_tail() {
  std::vector<TailOperand> tail(3);
  for (std::uint32_t i = 0; i < 3; ++i)
    tail[i] = {range_in(i + 1), i, i % 2 != 0 ? Access::write : Access::read};
  return tail;
}

/// The record of ticket 77, in epoch 9. `op`: aligned to 8.
inline std::vector<std::byte> record_of(const OperationInfo& info, std::span<const std::byte> op) {
  Recorder recorder;
  const auto tail = !info.tail.empty() ? some_tail() : std::vector<TailOperand>{};
  const auto outcome = troupe::detail::submit(recorder, info, op, tail, 9).wait();
  check(outcome.ok(), "an operation that checks out is refused");
  return recorder.record;
}
template <Operation Op>
std::vector<std::byte> record_of(const Op& op) {
  return record_of(info_of<Op>, std::as_bytes(std::span(&op, 1)));
}

/// A sound operation as its bytes.
struct Sample {
  const OperationInfo* info;
  std::vector<std::byte> op;  // what new gives is aligned
};
/// One of each operation of the libraries that come with troupe.
inline const std::vector<Sample>& samples() {
  static const auto all =
      []<class... Ops>(std::tuple<Ops...>) {
        const auto sample = []<class Op>(const Op& op) {
          const auto bytes = std::as_bytes(std::span(&op, 1));
          return Sample{&info_of<Op>, {bytes.begin(), bytes.end()}};
        };
        return std::vector{sample(sound<Ops>())...};
      }(std::tuple<memory::Fill, memory::Copy, memory::Nop, memory::Fence, memory::Fault,
                   vector::Multiply, vector::Divide, vector::Axpby, blas::Axpy, blas::Dot,
                   blas::Nrm2, blas::Scal, blas::Copy, blas::Gemv, blas::Gemm, sparse::Spmv,
                   sparse::SpmvSell, sparse::Gather, rng::Uniform, rng::Normal,
                   collective::AllReduce, collective::Reduce, collective::Broadcast,
                   collective::AllGather, collective::ReduceScatter, collective::AllToAll,
                   collective::Exchange>());
  return all;
}

}  // namespace troupe::wire::test
