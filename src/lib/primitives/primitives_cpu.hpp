#pragma once

#include <troupe/lib/primitives.hpp>

#include "common/core/narrow.hpp"
#include "device_host/engine/cpu/library.hpp"
#include "lib/primitives/visit.hpp"

namespace troupe::host::cpu {

/// What an element is computed with as: f16 and bf16 as float.
template <class T>
auto number(T element) {
  if constexpr (primitives::kNarrowFloats.has(dtype_of<T>)) {
    return to_float(element);
  } else {
    return element;
  }
}
template <class T>
using NumberOf = decltype(number(T{}));
template <class T, class V>
T rounded(V value) {
  if constexpr (primitives::kNarrowFloats.has(dtype_of<T>)) {
    return from_float<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
bool equal(T a, T b) {
  return number(a) == number(b);
}

class Primitives final : public LibraryHalfOf<Primitives, primitives::Operations> {
 public:
  explicit Primitives(Services& its_services) : services(its_services) {}

  // For its operations.

  Services& services;
};

/// Its operations, each in the file of its family: called by HalfOf.
Result<void> run(const primitives::Sort& op, const Call& call, Primitives& library);
Result<void> run(const primitives::Reduce& op, const Call& call, Primitives& library);
Result<void> run(const primitives::ArgReduce& op, const Call& call, Primitives& library);
Result<void> run(const primitives::SegmentedReduce& op, const Call& call, Primitives& library);
Result<void> run(const primitives::Scan& op, const Call& call, Primitives& library);
Result<void> run(const primitives::SelectNonzero& op, const Call& call, Primitives& library);
Result<void> run(const primitives::SelectFlagged& op, const Call& call, Primitives& library);
Result<void> run(const primitives::PartitionFlagged& op, const Call& call, Primitives& library);
Result<void> run(const primitives::Unique& op, const Call& call, Primitives& library);
Result<void> run(const primitives::ReduceByKey& op, const Call& call, Primitives& library);
Result<void> run(const primitives::RunLengthEncode& op, const Call& call, Primitives& library);
Result<void> run(const primitives::ScanByKey& op, const Call& call, Primitives& library);
Result<void> run(const primitives::SegmentedSort& op, const Call& call, Primitives& library);
Result<void> run(const primitives::Merge& op, const Call& call, Primitives& library);
Result<void> run(const primitives::Transform& op, const Call& call, Primitives& library);
Result<void> run(const primitives::TransformPairs& op, const Call& call, Primitives& library);
Result<void> run(const primitives::Convert& op, const Call& call, Primitives& library);
Result<void> run(const primitives::TransformReduce& op, const Call& call, Primitives& library);
Result<void> run(const primitives::CopyBatched& op, const Call& call, Primitives& library);
Result<void> run(const primitives::NonTrivialRuns& op, const Call& call, Primitives& library);
Result<void> run(const primitives::UniqueByKey& op, const Call& call, Primitives& library);
Result<void> run(const primitives::PartitionThreeWay& op, const Call& call, Primitives& library);
Result<void> run(const primitives::HistogramEven& op, const Call& call, Primitives& library);
Result<void> run(const primitives::HistogramRange& op, const Call& call, Primitives& library);
Result<void> run(const primitives::AdjacentDifference& op, const Call& call, Primitives& library);

}  // namespace troupe::host::cpu
