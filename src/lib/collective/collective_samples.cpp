#include <troupe/lib/collective.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

constexpr auto kSum = ReduceOp::sum;

const Samples kCollectiveSamples{
    collective::AllReduce{DType::f64, kSum, 0, 4, range_in(1), range_in(2)},
    collective::Reduce{DType::f64, kSum, 0, 4, range_in(1), range_in(2)},
    collective::Broadcast{DType::f64, 0, 0, 4, range_in(1)},
    collective::AllGather{DType::f64, 4, range_in(1), range_in(2)},
    collective::ReduceScatter{DType::f64, kSum, 0, 4, range_in(1), range_in(2)},
    collective::AllToAll{DType::f64, 4, range_in(1), range_in(2)},
    Tailed<collective::Exchange>{{DType::f64},
                                 {{range_in(1), 0, Access::read},
                                  {range_in(2), 1, Access::write},
                                  {range_in(3), 2, Access::read}}}};

}  // namespace
}  // namespace troupe::test
