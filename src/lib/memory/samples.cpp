#include <troupe/lib/memory.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kMemorySamples{memory::Fill{DType::f64, 4, {}, range_in(1)},
                             memory::Copy{DType::f64, range_in(1), range_in(2)},
                             memory::CopyRows{DType::f64, 4, 3, 6, 5, range_in(1), range_in(2)},
                             memory::Digest{DType::f64, range_in(1), range_in(2)},
                             memory::Flip{DType::f64, 3, range_in(1)},
                             memory::StrayWrite{DType::f64, 3, range_in(1)},
                             memory::Nop{DType::f64},
                             memory::Fence{DType::f64, range_in(1)},
                             memory::Fault{DType::f64, {}, 0},
                             memory::LibraryFault{DType::f64, 0, 0, "blas"},
                             memory::Prepare{DType::f64}};

}  // namespace
}  // namespace troupe::test
