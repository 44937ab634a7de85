#pragma once

#include <span>

#include "lib/blas/common/layouts_cuda.hpp"

/// What a product and its measurement have in common.
namespace troupe::host::cuda {

/// What a call has beside its extents: addresses as cuBLASLt wants them.
struct Places {
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void *d = nullptr, *bias = nullptr, *aux = nullptr;
  std::array<void*, blas::Matmul::kParts> parts{};

  Places() = default;
  Places(const blas::Matmul& op, const Call& call);
};

/// How a, b, c, d, bias and aux are aligned, see blas::alignment_of().
using Alignments = std::array<std::uint16_t, 6>;
Alignments alignments_of(const Places& places);

/// What a plan is made for. Of the places counts which there are.
Matmuls::Key key_of(const blas::Matmul& op, const Places& places, const Alignments& alignments,
                    ScalarsAt scalars);
Result<void> describe(Matmuls::Plan& plan, const blas::Matmul& op);
/// The attributes that differ from call to call.
Result<void> set_places(cublasLtMatmulDesc_t description, const Places& places, ScalarsAt scalars);
/// The algorithms that cuBLASLt proposes, the best first; how many. Errors: unsupported if there is
/// none.
Result<std::size_t> propose(const Matmuls::Plan& plan, const blas::Matmul& op,
                            const Alignments& alignments, cublasLtHandle_t handle,
                            std::span<cublasLtMatmulHeuristicResult_t> proposed);

}  // namespace troupe::host::cuda
