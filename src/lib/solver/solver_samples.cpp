#include <troupe/lib/solver.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

using namespace solver;

const Samples kSolverSamples{
    Potrf{DType::f64, Uplo::lower, OnFailure::error, 4, 5, range_in(1), cell_in(2)},
    Potrs{DType::c64, Uplo::upper, 0, 4, 3, 5, 6, range_in(1), range_in(2)},
    Potri{DType::f32, Uplo::upper, OnFailure::report, 4, 5, range_in(1), cell_in(2)},
    Trtri{DType::c128, Uplo::lower, Diagonal::unit, {}, 0, 4, 5, range_in(1), cell_in(2)},
    Getrf{DType::f64, {}, 0, 4, 3, 5, range_in(1), range_in(2), cell_in(3)},
    Getrs{DType::f32, Transpose::yes, 0, 4, 3, 5, 6, range_in(1), range_in(2), range_in(3)},
    Sytrf{DType::c64, Uplo::lower, {}, 4, 5, range_in(1), range_in(2), cell_in(3)},
    Sytrs{DType::f64, Uplo::upper, 0, 4, 3, 5, 6, range_in(1), range_in(2), range_in(3)},
    Geqrf{DType::f64, 5, 4, 6, range_in(1), range_in(2)},
    Ormqr{DType::c128, Side::right, Transpose::conjugate, 4, 5, 3, 6, 4, range_in(1), range_in(2),
          range_in(3)},
    Orgqr{DType::f32, 6, 4, 3, 7, range_in(1), range_in(2)},
    Gesv{DType::f64,
         Lowest::f16,
         {},
         4,
         2,
         5,
         6,
         7,
         range_in(1),
         range_in(2),
         range_in(3),
         cell_in(4)},
    Gels{DType::c64, Lowest::tf32, OnFailure::report, 6, 4, 2, 7, 6, 5, range_in(1), range_in(2),
         range_in(3), cell_in(4)},
    Syevd{DType::c64, Vectors::yes, Uplo::upper, OnFailure::report, 0, 4, 5, range_in(1),
          range_in(2), cell_in(3)}};

}  // namespace
}  // namespace troupe::test
