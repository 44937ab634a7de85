#pragma once

#include <troupe/lib/sparse/algebra.hpp>
#include <troupe/lib/sparse/blocked_ell.hpp>
#include <troupe/lib/sparse/conversions.hpp>
#include <troupe/lib/sparse/dense.hpp>
#include <troupe/lib/sparse/examine.hpp>
#include <troupe/lib/sparse/formats.hpp>
#include <troupe/lib/sparse/narrow.hpp>
#include <troupe/lib/sparse/sorts.hpp>
#include <troupe/lib/sparse/spmv.hpp>
#include <troupe/lib/sparse/transpose.hpp>
#include <troupe/lib/sparse/triangular.hpp>
#include <troupe/lib/sparse/tridiagonal.hpp>
#include <troupe/lib/sparse/vectors.hpp>

/// Sparse matrices, zero-based.
namespace troupe::sparse {

/// All of them; whoever includes this header knows them.
using Operations =
    List<Spmv, Gather, Spgemm, Transposition, Spmm, Sddmm, Gtsv, GtsvStrided, GtsvInterleaved,
         GpsvInterleaved, Scatter, Axpby, Rot, Spvv, Csr2Coo, Coo2Csr, CooSort, CsrSort, Spsv, Spsm,
         Geam, SpgemmReuse, SparseToDense, BlockedEllToDense, DenseToSparse, Csr2Bsr, Bsr2Csr,
         Csr2Sell, Csr2BlockedEll, Examine, SpmvEx, SpmmEx>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::sparse

namespace troupe {

/// Sparse linear algebra of one device; from `device.sparse()`. What is written overlaps no
/// argument.
template <class Refs>
class BasicSparse
    : public detail::CallsOf<SparseVectorProducts<Refs>, SparseProducts<Refs>,
                             SparseNarrowProducts<Refs>, SparseTridiagonal<Refs>,
                             SparseVectors<Refs>, SparseSorts<Refs>, SparseConversions<Refs>,
                             SparseFormats<Refs>, SparseBlockedEll<Refs>, SparseTriangular<Refs>,
                             SparseAlgebra<Refs>, SparseTranspose<Refs>, SparseExamine<Refs>> {
 public:
  using BasicSparse::CallsOf::CallsOf;
};

using Sparse = BasicSparse<LocalRefs>;

namespace sparse {
/// The library's operations on a Device, on what Device::prepare() gives, or on a RemoteDevice.
template <class D>
BasicSparse<RefsOf<D>> on(D&& device) {
  return BasicSparse<RefsOf<D>>(device.submitter());
}
}  // namespace sparse

}  // namespace troupe
