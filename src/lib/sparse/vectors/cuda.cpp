#include "lib/sparse/cuda.hpp"
#include "lib/sparse/common/scalars_cuda.hpp"
#include "lib/sparse/vectors/gather_kernels.cuh"
#include "lib/sparse/vectors/kernels.cuh"

/// Operations on sparse vectors on the cuda engine.
namespace troupe::host::cuda {
namespace {

template <class T, class I, class Op>
kernels::SparseVector<Native<T>, I> vector_of(const Op& op, const Call& call) {
  return {op.count, call.at<const I>(op.index), call.at<const Native<T>>(op.x)};
}

}  // namespace

/// By a kernel of our own: cusparseGather wants 16-byte alignment and distinct indices.
Result<void> run(const sparse::Gather& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::gather(
          library.services.launch(call.queue()), op.count, call.at<const Native<T>>(op.source),
          call.at<const I>(op.index), call.at<Native<T>>(op.destination)));
      return {};
    });
  });
}

Result<void> run(const sparse::Scatter& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::scatter(library.services.launch(call.queue()),
                                       vector_of<T, I>(op, call), call.at<Native<T>>(op.y)));
      return {};
    });
  });
}

Result<void> run(const sparse::Axpby& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::axpby(library.services.launch(call.queue()),
                                     native_scalar<T>(op.alpha, call), vector_of<T, I>(op, call),
                                     native_scalar<T>(op.beta, call), op.length,
                                     call.at<Native<T>>(op.y)));
      return {};
    });
  });
}

Result<void> run(const sparse::Rot& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::rotate(library.services.launch(call.queue()), op.count,
                                      call.at<const I>(op.index), scalar<RealOf<T>>(op.c, call),
                                      native_scalar<T>(op.s, call), call.at<Native<T>>(op.x),
                                      call.at<Native<T>>(op.y)));
      return {};
    });
  });
}

Result<void> run(const sparse::Spvv& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      auto& workspace = library.state(call.queue()).workspace;
      TROUPE_CUDA_PROPAGATE(
          workspace.reserve(library.services, call.queue(), kernels::kPartialSums * sizeof(N)));
      TROUPE_CUDA_TRY(kernels::product(library.services.launch(call.queue()),
                                       vector_of<T, I>(op, call),
                                       op.conjugate == blas::Conjugate::yes, call.at<const N>(op.y),
                                       static_cast<N*>(workspace.get()), call.at<N>(op.result)));
      return {};
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
