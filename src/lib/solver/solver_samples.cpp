#include <troupe/lib/solver.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

const Samples kSolverSamples{
    solver::Potrf{DType::f64, solver::Uplo::lower, OnFailure::error, 4, 5, range_in(1), cell_in(2)},
    solver::Syevd{DType::c64, solver::Vectors::yes, solver::Uplo::upper, OnFailure::report, 0, 4, 5,
                  range_in(1), range_in(2), cell_in(3)}};

}  // namespace
}  // namespace troupe::test
