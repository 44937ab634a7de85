#include <troupe/lib/sparse.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kSparseSamples{
    sparse::Spmv{DType::f64, DType::i32, 4, 4, 4, factor_in(1), factor_in(2), range_in(3),
                 range_in(4), range_in(5), range_in(6), range_in(7)},
    sparse::SpmvSell{DType::f64, DType::i32, 4, 4, 4, 8, 4, factor_in(1), factor_in(2), range_in(3),
                     range_in(4), range_in(5), range_in(6), range_in(7)},
    sparse::Gather{DType::f64, DType::i32, 4, 4, range_in(1), range_in(2), range_in(3)},
    Tailed<sparse::Spgemm>{
        {DType::f64, DType::i32, OnFailure::report, 0, 4, 5, 6, 7, 8, 9, range_in(1), range_in(4),
         range_in(5), range_in(6), range_in(7), range_in(8), cell_in(9)},
        {sparse::values_of(sparse::Spgemm::a, range_in(10)),
         sparse::values_of(sparse::Spgemm::b, range_in(11)),
         sparse::values_of(sparse::Spgemm::c, range_in(12))}},
    sparse::Transposition{DType::c64, DType::i64, 4, 5, 6, range_in(1), range_in(2), range_in(3),
                          range_in(4), range_in(5), range_in(6)},
    sparse::Spmm{DType::c64,
                 DType::i64,
                 blas::Transpose::conjugate,
                 blas::Order::row,
                 blas::Order::column,
                 {},
                 4,
                 5,
                 6,
                 7,
                 8,
                 9,
                 factor_in(1),
                 factor_in(2),
                 range_in(3),
                 range_in(4),
                 range_in(5),
                 range_in(6),
                 range_in(7)},
    sparse::Sddmm{DType::c128,
                  DType::i32,
                  blas::Transpose::yes,
                  blas::Transpose::no,
                  blas::Order::row,
                  blas::Order::column,
                  {},
                  4,
                  5,
                  6,
                  7,
                  8,
                  9,
                  factor_in(1),
                  factor_in(2),
                  range_in(3),
                  range_in(4),
                  range_in(5),
                  range_in(6),
                  range_in(7)},
    sparse::Gtsv{DType::f64, 4, 5, 6, range_in(1), range_in(2), range_in(3), range_in(4)},
    sparse::GtsvStrided{DType::f32, 4, 5, 6, range_in(1), range_in(2), range_in(3), range_in(4)},
    sparse::GtsvInterleaved{DType::c64, sparse::Elimination::qr, 0, 4, 5, range_in(1), range_in(2),
                            range_in(3), range_in(4)},
    sparse::GpsvInterleaved{DType::c128, 4, 5, range_in(1), range_in(2), range_in(3), range_in(4),
                            range_in(5), range_in(6)}};

}  // namespace
}  // namespace troupe::test
