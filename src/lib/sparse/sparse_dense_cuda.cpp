#include "lib/sparse/sparse_cuda.hpp"
#include "lib/sparse/spmm_kernels.cuh"

/// Products of sparse matrices with dense ones on the cuda engine.
namespace troupe::host::cuda {
namespace {

cusparseOperation_t operation(blas::Transpose transpose) {
  return transpose == blas::Transpose::no ? CUSPARSE_OPERATION_NON_TRANSPOSE
                                          : CUSPARSE_OPERATION_TRANSPOSE;
}

/// Describes a matrix of which `transpose` is rows x columns.
cusparseStatus_t describe(const void* element, DType dtype, blas::Transpose transpose,
                          blas::Order order, std::int64_t rows, std::int64_t columns,
                          std::int64_t leading, cusparseConstDnMatDescr_t* matrix) {
  const bool plain = transpose == blas::Transpose::no;
  return cusparseCreateConstDnMat(
      matrix, plain ? rows : columns, plain ? columns : rows, leading, element, value_type(dtype),
      order == blas::Order::column ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW);
}

}  // namespace

Result<void> Sparse::run(const sparse::Spmm& op, const Call& call) {
  if (op.rows_of_c() == 0 || op.n == 0) return {};
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const bool b_by_column = op.order_b == blas::Order::column;
      const bool c_by_column = op.order_c == blas::Order::column;
      kernels::SparseProduct<N, I> product;
      product.rows = op.rows_of_c(), product.columns = op.n;
      product.value = call.at<const N>(op.value);
      product.conjugate = op.transpose_a == blas::Transpose::conjugate;
      product.b = call.at<const N>(op.b);
      product.b_row_step = b_by_column ? 1 : op.ldb;
      product.b_column_step = b_by_column ? op.ldb : 1;
      product.c = call.at<N>(op.c);
      product.c_row_step = c_by_column ? 1 : op.ldc;
      product.c_column_step = c_by_column ? op.ldc : 1;
      product.alpha = native_scalar<T>(op.alpha, call);
      product.beta = native_scalar<T>(op.beta, call);
      const kernels::Structure<I> matrix{op.rows, op.columns, op.nonzeros,
                                         call.at<const I>(op.row_begin),
                                         call.at<const I>(op.column)};
      if (op.nonzeros > 0 && op.transpose_a == blas::Transpose::no) {
        product.row_begin = matrix.row_begin, product.column = matrix.column;
      } else if (op.nonzeros > 0) {
        const auto transposed =
            state(call.queue())
                .transpositions.find(services_, call, matrix, op.row_begin, op.column);
        if (!transposed) return transposed.error();
        product.row_begin = transposed->column_begin, product.column = transposed->row;
        product.place = transposed->place;
      }
      TROUPE_CUDA_TRY(kernels::spmm(services_.launch(call.queue()), product));
      return {};
    });
  });
}

Result<void> Sparse::run(const sparse::Sddmm& op, const Call& call) {
  if (op.nonzeros == 0) return {};
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    ScalarValues<T> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(services_, call, {&op.alpha, &op.beta}));
    auto& own = state(call.queue());
    TROUPE_CUDA_PROPAGATE(point_at(own, scalars.where()));
    const auto type = value_type(op.dtype);
    const auto index = index_type(op.index_dtype);
    DenseMatrix a, b;
    WritableMatrix c;
    TROUPE_CUDA_TRY(describe(call.at(op.a), op.dtype, op.transpose_a, op.order_a, op.rows, op.k,
                             op.lda, a.out()));
    TROUPE_CUDA_TRY(describe(call.at(op.b), op.dtype, op.transpose_b, op.order_b, op.k, op.columns,
                             op.ldb, b.out()));
    TROUPE_CUDA_TRY(cusparseCreateCsr(c.out(), op.rows, op.columns, op.nonzeros,
                                      call.at(op.row_begin), call.at(op.column), call.at(op.value),
                                      index, index, CUSPARSE_INDEX_BASE_ZERO, type));
    std::size_t bytes = 0;
    TROUPE_CUDA_TRY(cusparseSDDMM_bufferSize(
        own.handle.get(), operation(op.transpose_a), operation(op.transpose_b), scalars[0], a.get(),
        b.get(), scalars[1], c.get(), type, CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(services_, call.queue(), bytes));
    TROUPE_CUDA_TRY(cusparseSDDMM(
        own.handle.get(), operation(op.transpose_a), operation(op.transpose_b), scalars[0], a.get(),
        b.get(), scalars[1], c.get(), type, CUSPARSE_SDDMM_ALG_DEFAULT, own.workspace.get()));
    return {};
  });
}

}  // namespace troupe::host::cuda
