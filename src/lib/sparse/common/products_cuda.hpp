#pragma once

#include "lib/sparse/cuda.hpp"

/// Products of sparse matrices by own kernels, of any types that these have.
namespace troupe::host::cuda {

/// The vectors of a product like Spmv. The scalars are left to be filled in.
template <class T, class Y, class Sum, class Op>
kernels::DenseOperands<T, Y, Sum> vectors_of(const Op& op, const Call& call) {
  kernels::DenseOperands<T, Y, Sum> dense;
  dense.rows = op.length_of_y(), dense.columns = 1;
  dense.b = call.at<const T>(op.x), dense.c = call.at<Y>(op.y);
  dense.b_row_step = dense.c_row_step = 1;
  dense.b_column_step = op.length_of_x(), dense.c_column_step = op.length_of_y();
  return dense;
}

/// The dense matrices of a product like Spmm. The scalars are left to be filled in.
template <class T, class C, class Sum, class Op>
kernels::DenseOperands<T, C, Sum> matrices_of(const Op& op, const Call& call) {
  const bool b_by_column = op.order_b == blas::Order::column;
  const bool c_by_column = op.order_c == blas::Order::column;
  kernels::DenseOperands<T, C, Sum> dense;
  dense.rows = op.rows_of_c(), dense.columns = op.n;
  dense.b = call.at<const T>(op.b), dense.c = call.at<C>(op.c);
  dense.b_row_step = b_by_column ? 1 : op.ldb;
  dense.b_column_step = b_by_column ? op.ldb : 1;
  dense.c_row_step = c_by_column ? 1 : op.ldc;
  dense.c_column_step = c_by_column ? op.ldc : 1;
  return dense;
}

template <class T, class C, class Sum>
Result<void> multiply_by_kernel(const SparseArgument& a,
                                const kernels::DenseOperands<T, C, Sum>& dense, const Call& call,
                                Sparse& library) {
  return with_index(a.form.index_dtype, [&]<class I>(I) -> Result<void> {
    const auto pattern = pattern_of<I>(a, call, library);
    if (!pattern) return pattern.error();
    const kernels::SparseProduct<T, I, C, Sum> product{dense, *pattern, call.at<const T>(a.value),
                                                       a.transpose == blas::Transpose::conjugate};
    TROUPE_CUDA_TRY(kernels::spmm(library.services.launch(call.queue()), product));
    return {};
  });
}

}  // namespace troupe::host::cuda
