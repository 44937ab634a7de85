#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <troupe/lib/submit.hpp>

/// Operations that check out, one of each kind: what tests of records, checks and fuzzers work on.
/// They stand beside the operations, in src/lib/NAME/NAME_samples.cpp.
namespace troupe::test {

/// A range in a region of its own.
inline Operand range_in(std::uint32_t region) {
  return {region, region + 100, 3, 0, region * 64, 4096};
}
/// A result cell.
inline Operand cell_in(std::uint32_t region) {
  return {kPinnedRegion | region, 0, 0, 0, region * 64, 64};
}
inline Scalar factor_in(std::uint32_t region) {
  return {range_in(region), {}};
}

/// A tail of lists of `batch` operands each, in regions of their own.
inline std::vector<TailOperand> lists_of(std::uint32_t batch, const std::vector<Access>& accesses) {
  std::vector<TailOperand> tail;
  for (std::uint32_t list = 0; list < accesses.size(); ++list) {
    for (std::uint32_t i = 0; i < batch; ++i)
      tail.push_back(
          {range_in(20 + static_cast<std::uint32_t>(tail.size())), list, accesses[list]});
  }
  return tail;
}

struct Sample {
  const OperationInfo* info;
  std::vector<std::byte> op;  ///< its bytes; what new gives is aligned
  std::vector<TailOperand> tail;
  std::vector<std::byte> data;
};
/// An operation whose record has a tail, or certain inline bytes.
template <Operation Op>
struct Tailed {
  Op op;
  std::vector<TailOperand> tail;
  std::vector<std::byte> data = {};
};

/// Those of all libraries.
std::vector<Sample>& samples();

/// Makes operations samples; a library has one of it.
class Samples {
 public:
  template <class... Ops>
  explicit Samples(const Ops&... ops) {
    (add(ops), ...);
  }

 private:
  template <Operation Op>
  static void add(const Op& op) {
    add(Tailed<Op>{op, {}, {}});
  }
  template <Operation Op>
  static void add(const Tailed<Op>& sample) {
    const auto bytes = std::as_bytes(std::span(&sample.op, 1));
    samples().push_back({&info_of<Op>, {bytes.begin(), bytes.end()}, sample.tail, sample.data});
  }
};

inline const Sample& sample_of(const OperationInfo& info) {
  const auto found = std::find_if(samples().begin(), samples().end(), [&](const Sample& sample) {
    return sample.info->opcode == info.opcode;
  });
  check(found != samples().end(), "an operation without a sample");
  return *found;
}
template <Operation Op>
Op sample_of() {
  Op op;
  std::memcpy(&op, sample_of(info_of<Op>).op.data(), sizeof op);
  return op;
}

}  // namespace troupe::test
