#pragma once

#include <troupe/lib/solver/batched.hpp>
#include <troupe/lib/solver/eigen.hpp>
#include <troupe/lib/solver/linear.hpp>
#include <troupe/lib/solver/orthogonal.hpp>
#include <troupe/lib/solver/reductions.hpp>
#include <troupe/lib/solver/svd.hpp>

/// Dense linear algebra by LAPACK's names (https://www.netlib.org/lapack): systems of linear
/// equations, eigenvalues and singular values. Column-major; leading dimensions in elements. f32,
/// f64, c64 and c128.
namespace troupe::solver {

/// All of them; whoever includes this header knows them.
using Operations =
    List<Potrf, Potrs, Potri, Trtri, Getrf, Getrs, Sytrf, Sytrs, Geqrf, Ormqr, Orgqr, Gesv, Gels,
         Syevd, Syevj, Syevdx, Sygvd, Geev, Gesvd, Gesvdj, Gesvdp, Gesvdr, PotrfBatched,
         PotrsBatched, SyevBatched, SyevjBatched, GesvdjBatched, GesvdaBatched, Sytri, Sygvj,
         Sygvdx, Sytrd, Orgtr, Ormtr, Gebrd, Orgbr, Larft, Laswp, Lauum>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::solver

namespace troupe {

/// LAPACK on one device; from `device.solver()`.
class Solver : public detail::CallsOf<SolverLinear, SolverOrthogonal, SolverEigen, SolverSvd,
                                      SolverBatches, SolverReductions> {
 public:
  using CallsOf::CallsOf;
};

namespace solver {
/// The library's operations on a Device, or on what Device::prepare() gives.
template <class D>
Solver on(D&& device) {
  return Solver(device.submitter());
}
}  // namespace solver

}  // namespace troupe
