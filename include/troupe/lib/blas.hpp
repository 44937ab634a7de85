#pragma once

#include <troupe/lib/blas/batched.hpp>
#include <troupe/lib/blas/gemm_ex.hpp>
#include <troupe/lib/blas/level1.hpp>
#include <troupe/lib/blas/level2.hpp>
#include <troupe/lib/blas/level3.hpp>
#include <troupe/lib/blas/lists.hpp>
#include <troupe/lib/blas/matmul.hpp>
#include <troupe/lib/blas/transform.hpp>
#include <troupe/lib/blas/tune.hpp>

/// BLAS by its own names (reference: https://www.netlib.org/blas).
namespace troupe::blas {

/// All of them; whoever includes this header knows them.
using Operations =
    List<Axpy, Dot, Nrm2, Asum, Iamax, Scal, Copy, Swap, Rot, Rotg, Rotm, Rotmg, Gemv, Gbmv, Symv,
         Ger, Syr, Syr2, Trmv, Gemm, Symm, Syrk, Syr2k, Trmm, Trsm, Geam, Dgmm, Tpttr, Trttp,
         GemmBatched, GemmIndexed, GemmEx, GemvBatched, GemmGrouped, TrsmBatched, GetrfBatched,
         LapackBatched, Transform, Matmul, TuneMatmul>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::blas

namespace troupe {

/// Dense linear algebra of one device; from `device.blas()`.
template <class Refs>
class BasicBlas : public detail::CallsOf<BlasLevel1<Refs>, BlasLevel2<Refs>, BlasLevel3<Refs>,
                                         BlasBatches<Refs>, BlasLists<Refs>, BlasProducts<Refs>,
                                         BlasTransform<Refs>, BlasMatmul<Refs>, BlasTune<Refs>> {
 public:
  using BasicBlas::CallsOf::CallsOf;
};

using Blas = BasicBlas<LocalRefs>;

namespace blas {
/// The library's operations on a Device, on what Device::prepare() gives, or on a RemoteDevice.
template <class D>
BasicBlas<RefsOf<D>> on(D&& device) {
  return BasicBlas<RefsOf<D>>(device.submitter());
}
}  // namespace blas

}  // namespace troupe
