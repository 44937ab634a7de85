#include <troupe/lib/rng.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kRngSamples{rng::Uniform{DType::f64, 4, 0, 0, 0, range_in(1)},
                          rng::Normal{DType::f64, 4, 0, 0, 0, 0, 1, range_in(1)}};

}  // namespace
}  // namespace troupe::test
