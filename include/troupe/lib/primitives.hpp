#pragma once

#include <troupe/lib/primitives/copies.hpp>
#include <troupe/lib/primitives/differences.hpp>
#include <troupe/lib/primitives/histograms.hpp>
#include <troupe/lib/primitives/reductions.hpp>
#include <troupe/lib/primitives/runs.hpp>
#include <troupe/lib/primitives/scans.hpp>
#include <troupe/lib/primitives/searches.hpp>
#include <troupe/lib/primitives/selections.hpp>
#include <troupe/lib/primitives/sorts.hpp>
#include <troupe/lib/primitives/transforms.hpp>

/// Sorting, reductions, scans, histograms and selection over contiguous elements, as CUB defines
/// them (https://nvidia.github.io/cccl/cub, device-wide algorithms). Run again on the same operands
/// and the same model of GPU, every operation gives the same bits.
namespace troupe::primitives {

/// All of them; whoever includes this header knows them.
using Operations =
    List<Sort, Reduce, ArgReduce, SegmentedReduce, Scan, SelectNonzero, SelectFlagged,
         PartitionFlagged, Unique, ReduceByKey, RunLengthEncode, SegmentedSort, Merge, Transform,
         TransformPairs, Convert, TransformReduce, CopyBatched, ScanByKey, NonTrivialRuns,
         UniqueByKey, PartitionThreeWay, HistogramEven, HistogramRange, AdjacentDifference, Search>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::primitives

namespace troupe {

/// Device-wide algorithms on one device; from `primitives::on(device)`.
class Primitives
    : public detail::CallsOf<PrimitiveReductions, PrimitiveSelections, PrimitiveSorts,
                             PrimitiveRuns, PrimitiveTransforms, PrimitiveCopies, PrimitiveScans,
                             PrimitiveHistograms, PrimitiveDifferences, PrimitiveSearches> {
 public:
  using CallsOf::CallsOf;
};

namespace primitives {
template <class D>
Primitives on(D&& device) {
  return Primitives(device.submitter());
}
}  // namespace primitives

}  // namespace troupe
