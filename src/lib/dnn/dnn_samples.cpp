#include <troupe/lib/dnn.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kDnnSamples{
    dnn::Convolution{DType::f16,
                     2,
                     0,
                     2,
                     8,
                     4,
                     2,
                     {6, 5, 0},
                     {3, 3, 0},
                     {1, 1, 0},
                     {1, 0, 0},
                     {1, 2, 0},
                     {1, 1, 0},
                     range_in(1),
                     range_in(2),
                     range_in(3),
                     range_in(4)},
    dnn::Attention{DType::bf16, dnn::Mask::causal, 0.25f, 2, 4, 2, 5, 7, 16, 8, range_in(1),
                   range_in(2), range_in(3), range_in(4), range_in(5)}};

}  // namespace
}  // namespace troupe::test
