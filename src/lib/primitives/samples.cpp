#include <troupe/lib/primitives.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kPrimitiveSamples{
    primitives::Sort{DType::f32, primitives::Order::descending, 8, 10, range_in(1), range_in(2),
                     range_in(3), range_in(4)},
    primitives::Reduce{DType::f64, primitives::ReduceOp::max, 0, 10, range_in(1), range_in(2)},
    primitives::ArgReduce{DType::f32, primitives::Extreme::max, 0, 10, range_in(1), range_in(2),
                          range_in(3)},
    primitives::SegmentedReduce{DType::i32, primitives::ReduceOp::min, 0, 10, 4, range_in(1),
                                range_in(2), range_in(3)},
    primitives::Scan{DType::i64, primitives::Scanning::exclusive, primitives::ReduceOp::max, 10,
                     range_in(1), range_in(2), factor_in(3)},
    primitives::SelectNonzero{DType::u32, OnFailure::report, 0, 10, 8, range_in(1), range_in(2),
                              cell_in(3)},
    primitives::SelectFlagged{DType::f32, OnFailure::report, 0, 10, 8, range_in(1), range_in(2),
                              range_in(3), cell_in(4)},
    primitives::PartitionFlagged{DType::f64, 10, range_in(1), range_in(2), range_in(3), cell_in(4)},
    primitives::Unique{DType::i64, OnFailure::report, 0, 10, 8, range_in(1), range_in(2),
                       cell_in(3)},
    primitives::ReduceByKey{DType::f32, DType::i64, OnFailure::report, primitives::ReduceOp::max,
                            10, 8, range_in(1), range_in(2), range_in(3), range_in(4), cell_in(5)},
    primitives::RunLengthEncode{DType::u32, OnFailure::report, 0, 10, 8, range_in(1), range_in(2),
                                range_in(3), cell_in(4)},
    primitives::ScanByKey{DType::f32, DType::i64, primitives::Scanning::exclusive,
                          primitives::ReduceOp::min, 10, range_in(1), range_in(2), range_in(3),
                          factor_in(4)},
    primitives::SegmentedSort{DType::i64, primitives::Order::ascending, 4, 10, 3, range_in(1),
                              range_in(2), range_in(3), range_in(4), range_in(5)},
    primitives::Merge{DType::u32, primitives::Order::descending, 8, 6, 4, range_in(1), range_in(2),
                      range_in(3), range_in(4), range_in(5), range_in(6)},
    primitives::Transform{DType::f32, primitives::Unary::square_root, 0, 10, range_in(1),
                          range_in(2)},
    primitives::TransformPairs{DType::i32, primitives::Binary::bit_xor, 0, 10, range_in(1),
                               range_in(2), range_in(3)},
    primitives::Convert{DType::f64, DType::i32, 10, range_in(1), range_in(2)},
    primitives::TransformReduce{DType::f32, primitives::Unary::square, primitives::ReduceOp::sum,
                                10, range_in(1), range_in(2)},
    Tailed<primitives::CopyBatched>{{DType::u8, 3}, lists_of(3, {Access::read, Access::write})},
    primitives::NonTrivialRuns{DType::i64, OnFailure::report, 0, 10, 8, range_in(1), range_in(2),
                               range_in(3), cell_in(4)},
    primitives::UniqueByKey{DType::f32, OnFailure::report, 8, 10, 8, range_in(1), range_in(2),
                            range_in(3), range_in(4), cell_in(5)},
    primitives::PartitionThreeWay{DType::f64, OnFailure::report, 0, 10, 6, 7, 8, range_in(1),
                                  range_in(2), range_in(3), range_in(4), range_in(5), range_in(6),
                                  cell_in(7)},
    primitives::HistogramEven{
        DType::u8, DType::u64, {4, 3}, 5, 10, {}, {std::byte{255}}, range_in(1), range_in(2)},
    primitives::HistogramRange{
        DType::f64, DType::u32, {2, 1}, 5, 10, range_in(1), range_in(2), range_in(3)},
    primitives::AdjacentDifference{DType::i32, primitives::Neighbour::right, 0, 10, range_in(1),
                                   range_in(2)},
    primitives::Search{DType::f16, primitives::Bound::upper, 0, 10, 6, range_in(1), range_in(2),
                       range_in(3)}};

}  // namespace
}  // namespace troupe::test
