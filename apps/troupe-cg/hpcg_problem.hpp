#pragma once

#include <cstdint>
#include <span>

#include "partition.hpp"

/// What HPCG's problem is beside the stencil.
namespace troupe::cg {

/// HPCG's right side, of which the solution is 1 everywhere: 26 less the neighbours of each row.
template <class Index>
Array<double> ones_times(const LocalProblem<Index>& problem);

/// Multiplies the diagonal, and b, by 10^6, and those of the first nine rows by 2 to 10 times that,
/// as TestCG.cpp does. The first rows of the numbering by ranks are those of HPCG's, because a
/// rank's box has more than nine points along x.
template <class Index>
void exaggerate_diagonal(LocalProblem<Index>& problem, std::span<double> b);

}  // namespace troupe::cg
