#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lib/sparse/common/products_cuda.hpp"

/// Products of sparse matrices whose elements are narrower than what they are computed in, on the
/// cuda engine.
namespace troupe::host::cuda {
namespace {

/// Calls f(In{}, Out{}, Sum{}) for a product of `in` into `out`.
template <class F>
Result<void> with_types(DType in, DType out, F&& f) {
  if (in == DType::i8) {
    return out == DType::i32 ? f(std::int8_t{}, std::int32_t{}, std::int32_t{})
                             : f(std::int8_t{}, float{}, float{});
  }
  if (in == DType::f16)
    return out == DType::f16 ? f(__half{}, __half{}, float{}) : f(__half{}, float{}, float{});
  return out == DType::bf16 ? f(__nv_bfloat16{}, __nv_bfloat16{}, float{})
                            : f(__nv_bfloat16{}, float{}, float{});
}

}  // namespace

Result<void> run(const sparse::SpmvEx& op, const Call& call, Sparse& library) {
  if (op.length_of_y() == 0) return {};
  const SparseArgument a{op.a, op.transpose, op.outer, op.inner, op.value};
  if (const auto [has, form] = for_cusparse(a, op.dtype); has) {
    return multiply_by_cusparse({a, form, op.x, op.y, op.alpha, op.beta, op.dtype, op.y_dtype,
                                 sparse::sum_type(op.y_dtype)},
                                call, library);
  }
  return with_types(op.dtype, op.y_dtype, [&]<class In, class Out, class Sum>(In, Out, Sum) {
    auto dense = vectors_of<In, Out, Sum>(op, call);
    dense.alpha = scalar<Sum>(op.alpha, call);
    dense.beta = scalar<Sum>(op.beta, call);
    return multiply_by_kernel(a, dense, call, library);
  });
}

Result<void> run(const sparse::SpmmEx& op, const Call& call, Sparse& library) {
  if (op.rows_of_c() == 0 || op.n == 0) return {};
  return with_types(op.dtype, op.c_dtype, [&]<class In, class Out, class Sum>(In, Out, Sum) {
    auto dense = matrices_of<In, Out, Sum>(op, call);
    dense.alpha = scalar<Sum>(op.alpha, call);
    dense.beta = scalar<Sum>(op.beta, call);
    return multiply_by_kernel({op.a, op.transpose_a, op.outer, op.inner, op.value}, dense, call,
                              library);
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
