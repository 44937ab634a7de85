#pragma once

#include <troupe/lib/solver_reductions.hpp>

/// Dense linear algebra by LAPACK's names (https://www.netlib.org/lapack): systems of linear
/// equations, eigenvalues and singular values. Column-major; leading dimensions in elements. f32,
/// f64, c64 and c128.
namespace troupe::solver {

inline const Library kLibrary{
    &info_of<Potrf>,       &info_of<Potrs>,        &info_of<Potri>,         &info_of<Trtri>,
    &info_of<Getrf>,       &info_of<Getrs>,        &info_of<Sytrf>,         &info_of<Sytrs>,
    &info_of<Geqrf>,       &info_of<Ormqr>,        &info_of<Orgqr>,         &info_of<Gesv>,
    &info_of<Gels>,        &info_of<Syevd>,        &info_of<Syevj>,         &info_of<Syevdx>,
    &info_of<Sygvd>,       &info_of<Geev>,         &info_of<Gesvd>,         &info_of<Gesvdj>,
    &info_of<Gesvdp>,      &info_of<Gesvdr>,       &info_of<PotrfBatched>,  &info_of<PotrsBatched>,
    &info_of<SyevBatched>, &info_of<SyevjBatched>, &info_of<GesvdjBatched>, &info_of<GesvdaBatched>,
    &info_of<Sytri>,       &info_of<Sygvj>,        &info_of<Sygvdx>,        &info_of<Sytrd>,
    &info_of<Orgtr>,       &info_of<Ormtr>,        &info_of<Gebrd>,         &info_of<Orgbr>,
    &info_of<Larft>,       &info_of<Laswp>,        &info_of<Lauum>};

}  // namespace troupe::solver

namespace troupe {

/// LAPACK on one device; from `device.solver()`. Its calls are those of its bases.
class Solver : public SolverReductions {
 public:
  using SolverReductions::SolverReductions;
};

namespace solver {
/// The library's operations on a Device, or on what Device::prepare() gives.
template <class D>
Solver on(D&& device) {
  return Solver(device.submitter());
}
}  // namespace solver

}  // namespace troupe
