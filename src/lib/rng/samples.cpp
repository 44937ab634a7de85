#include <troupe/lib/rng.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kRngSamples{
    rng::Bits{DType::u64, 4, 0, 0, 0, range_in(1)},
    rng::Uniform{DType::f64, 4, 0, 0, 0, range_in(1)},
    rng::Normal{DType::f64, 4, 0, 0, 0, 0, 1, range_in(1)},
    rng::LogNormal{DType::f64, 4, 0, 0, 0, 0, 1, range_in(1)},
    rng::Exponential{DType::f64, 4, 0, 0, 0, 2, 0, range_in(1)},
    rng::Cauchy{DType::f64, 4, 0, 0, 0, 0, 1, range_in(1)},
    rng::Gamma{DType::f64, 4, 0, 0, 0, 2, 1, range_in(1)},
    rng::Beta{DType::f64, 4, 0, 0, 0, 2, 3, range_in(1)},
    rng::Poisson{DType::u32, 4, 0, 0, 0, 5, 0, range_in(1)},
    rng::Binomial{DType::u32, 4, 0, 0, 0, 9, 0.5, range_in(1)},
    rng::Discrete{DType::u32, 4, 0, 0, 0, 5, range_in(2), range_in(3), range_in(1)},
    rng::Sequence{.dtype = DType::f64,
                  .n = 4,
                  .distribution = rng::Distribution::uniform,
                  .destination = range_in(1)}};

}  // namespace
}  // namespace troupe::test
