#include <troupe/lib/direct.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kDirectSamples{
    direct::Analyse{DType::f64, DType::i32, direct::Kind::general, direct::View::full, 1, 0, 17, 4,
                    5, range_in(1), range_in(2), range_in(3), cell_in(4), range_in(5)},
    direct::Factor{DType::c64, DType::i64, direct::Kind::hermitian, direct::View::lower, 0,
                   OnFailure::report, 17, 4, 5, range_in(1), range_in(2), range_in(3), cell_in(4),
                   range_in(5)},
    direct::Solve{DType::f32,
                  DType::i32,
                  direct::Kind::positive_definite,
                  direct::View::upper,
                  0,
                  OnFailure::report,
                  blas::Transpose::yes,
                  2,
                  17,
                  4,
                  5,
                  3,
                  4,
                  6,
                  range_in(1),
                  range_in(2),
                  range_in(3),
                  range_in(4),
                  range_in(5),
                  cell_in(6),
                  range_in(7)},
    direct::Release{17},
    direct::Schur{DType::c128, DType::i64, direct::Kind::symmetric, direct::View::upper, 0,
                  OnFailure::report, 17, 4, 5, 2, 3, range_in(1), range_in(2), range_in(3),
                  range_in(4), range_in(5), cell_in(6)}};

}  // namespace
}  // namespace troupe::test
