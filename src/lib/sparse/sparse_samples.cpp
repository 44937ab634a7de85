#include <troupe/lib/sparse.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kSparseSamples{
    sparse::Spmv{DType::f64, DType::i32, 4, 4, 4, factor_in(1), factor_in(2), range_in(3),
                 range_in(4), range_in(5), range_in(6), range_in(7)},
    sparse::SpmvSell{DType::f64, DType::i32, 4, 4, 4, 8, 4, factor_in(1), factor_in(2), range_in(3),
                     range_in(4), range_in(5), range_in(6), range_in(7)},
    sparse::Gather{DType::f64, DType::i32, 4, 4, range_in(1), range_in(2), range_in(3)}};

}  // namespace
}  // namespace troupe::test
