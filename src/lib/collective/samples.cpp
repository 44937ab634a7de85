#include <troupe/lib/collective.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

constexpr auto kSum = ReduceOp::sum;

Tailed<collective::Bundle> bundle_of_two() {
  Tailed<collective::Bundle> sample{{.dtype = DType::u8, .count = 2}, {}, {}};
  const collective::AllReduce sum{DType::f64, kSum, 0, 4, range_in(1), range_in(1)};
  const collective::Broadcast sent{DType::f64, 0, 0, 4, range_in(2)};
  const auto add = [&sample](const OperationInfo& info, const void* op) {
    collective::add_to_bundle(info, static_cast<const std::byte*>(op), sample.data, sample.tail);
  };
  add(info_of<collective::AllReduce>, &sum);
  add(info_of<collective::Broadcast>, &sent);
  sample.op.digest =
      collective::digest_of(collective::bundled(Parts(sample.tail, sample.data)).take());
  return sample;
}

const Samples kCollectiveSamples{
    collective::AllReduce{DType::f64, kSum, 0, 4, range_in(1), range_in(2), factor_in(3)},
    collective::Reduce{DType::f64, kSum, 0, 4, range_in(1), range_in(2), factor_in(3)},
    collective::Broadcast{DType::f64, 0, 0, 4, range_in(1), range_in(2)},
    collective::AllGather{DType::f64, 4, range_in(1), range_in(2)},
    collective::ReduceScatter{DType::f64, kSum, 0, 4, range_in(1), range_in(2), factor_in(3)},
    collective::AllToAll{DType::f64, 4, range_in(1), range_in(2)},
    collective::Gather{DType::f64, 0, 0, 4, range_in(1), range_in(2)},
    collective::Scatter{DType::f64, 0, 0, 4, range_in(1), range_in(2)},
    bundle_of_two(),
    Tailed<collective::Barrier>{{DType::u8},
                                {{range_in(1), 0, Access::read}, {range_in(2), 0, Access::write}}},
    Tailed<collective::Exchange>{{DType::f64},
                                 {{range_in(1), 0, Access::read},
                                  {range_in(2), 1, Access::write},
                                  {range_in(3), 2, Access::read}}}};

}  // namespace
}  // namespace troupe::test
