#pragma once

#include <troupe/lib/blas_tune.hpp>

/// BLAS by its own names (reference: https://www.netlib.org/blas).
namespace troupe::blas {

inline const Library kLibrary{
    &info_of<Axpy>,          &info_of<Dot>,         &info_of<Nrm2>,        &info_of<Asum>,
    &info_of<Iamax>,         &info_of<Scal>,        &info_of<Copy>,        &info_of<Swap>,
    &info_of<Rot>,           &info_of<Rotg>,        &info_of<Rotm>,        &info_of<Rotmg>,
    &info_of<Gemv>,          &info_of<Gbmv>,        &info_of<Symv>,        &info_of<Ger>,
    &info_of<Syr>,           &info_of<Syr2>,        &info_of<Trmv>,        &info_of<Gemm>,
    &info_of<Symm>,          &info_of<Syrk>,        &info_of<Syr2k>,       &info_of<Trmm>,
    &info_of<Trsm>,          &info_of<Geam>,        &info_of<Dgmm>,        &info_of<Tpttr>,
    &info_of<Trttp>,         &info_of<GemmBatched>, &info_of<GemmIndexed>, &info_of<GemmEx>,
    &info_of<GemvBatched>,   &info_of<GemmGrouped>, &info_of<TrsmBatched>, &info_of<GetrfBatched>,
    &info_of<LapackBatched>, &info_of<Transform>,   &info_of<Matmul>,      &info_of<TuneMatmul>};

}  // namespace troupe::blas

namespace troupe {

/// Dense linear algebra of one device; from `device.blas()`. Its calls are those of its bases.
template <class Refs>
class BasicBlas : public BlasTune<Refs> {
 public:
  using BlasTune<Refs>::BlasTune;
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
