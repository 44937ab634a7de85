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

struct Sample {
  const OperationInfo* info;
  std::vector<std::byte> op;  ///< its bytes; what new gives is aligned
};

/// Those of all libraries.
std::vector<Sample>& samples();

/// Makes operations samples; a library has one of it.
class Samples {
 public:
  template <Operation... Ops>
  explicit Samples(const Ops&... ops) {
    (add(info_of<Ops>, std::as_bytes(std::span(&ops, 1))), ...);
  }

 private:
  static void add(const OperationInfo& info, std::span<const std::byte> op) {
    samples().push_back({&info, {op.begin(), op.end()}});
  }
};

template <Operation Op>
Op sample_of() {
  const auto found = std::find_if(samples().begin(), samples().end(), [](const Sample& sample) {
    return sample.info->opcode == opcode_of<Op>;
  });
  check(found != samples().end(), "an operation without a sample");
  Op op;
  std::memcpy(&op, found->op.data(), sizeof op);
  return op;
}

}  // namespace troupe::test
