#include <troupe/lib/blas.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

constexpr auto kNo = blas::Transpose::no;

const Samples kBlasSamples{
    blas::Axpy{DType::f64, 4, 1, 1, factor_in(1), range_in(2), range_in(3)},
    blas::Dot{DType::f64, 4, 1, 1, range_in(1), range_in(2), range_in(3)},
    blas::Nrm2{DType::f64, 4, 1, range_in(1), range_in(2)},
    blas::Scal{DType::f64, 4, 1, factor_in(1), range_in(2)},
    blas::Copy{DType::f64, 4, 1, 1, range_in(1), range_in(2)},
    blas::Gemv{DType::f64, kNo, 0, 4, 4, 5, 1, 1, factor_in(1), factor_in(2), range_in(3),
               range_in(4), range_in(5)},
    blas::Gemm{DType::f64, kNo, kNo, 4, 4, 4, 5, 6, 7, factor_in(1), factor_in(2), range_in(3),
               range_in(4), range_in(5)},
    blas::GemmBatched{DType::f64, kNo, kNo, 4, 4, 4, 5, 6, 7, 3, 32, 0, 40, factor_in(1),
                      factor_in(2), range_in(3), range_in(4), range_in(5)},
    blas::GemmIndexed{DType::f64, kNo, kNo, 4, 4, 4, 5, 6, 7, 3, factor_in(1), factor_in(2),
                      range_in(3), range_in(4), range_in(5), range_in(6), cell_in(7)}};

}  // namespace
}  // namespace troupe::test
