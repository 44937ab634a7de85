#include <troupe/lib/fft.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kFftSamples{fft::Transform{
    DType::c64, fft::Kind::forward, 2, {8, 6}, 2, {50}, {50}, range_in(1), range_in(2)}};

}  // namespace
}  // namespace troupe::test
