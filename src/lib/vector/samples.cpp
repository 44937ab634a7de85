#include <troupe/lib/vector.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kVectorSamples{
    vectors::Multiply{DType::f64, 4, range_in(1), range_in(2), range_in(3)},
    vectors::Divide{DType::f64, 4, range_in(1), range_in(2), range_in(3)},
    vectors::Axpby{DType::f64, 4, factor_in(1), factor_in(2), range_in(3), range_in(4)}};

}  // namespace
}  // namespace troupe::test
