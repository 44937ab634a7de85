#include "lib/sparse/common/products_cuda.hpp"
#include "lib/sparse/common/scalars_cuda.hpp"
#include "lib/sparse/dense/sddmm_kernels.cuh"

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

Result<void> run(const sparse::Spmm& op, const Call& call, Sparse& library) {
  if (op.rows_of_c() == 0 || op.n == 0) return {};
  return with_number(op.dtype, [&]<class T>(T) {
    auto dense = matrices_of<Native<T>, Native<T>, Native<T>>(op, call);
    dense.alpha = native_scalar<T>(op.alpha, call);
    dense.beta = native_scalar<T>(op.beta, call);
    return multiply_by_kernel({op.a, op.transpose_a, op.outer, op.inner, op.value}, dense, call,
                              library);
  });
}

Result<void> run(const sparse::Sddmm& op, const Call& call, Sparse& library) {
  if (op.c.nonzeros == 0) return {};
  if (op.c.format == sparse::Format::bsr) return sample_by_kernel(op, call, library);
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    ScalarValues<T> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(library.services, call, {&op.alpha, &op.beta}));
    auto& own = library.state(call.queue());
    TROUPE_CUDA_PROPAGATE(library.point_at(own, scalars.where()));
    const auto type = value_type(op.dtype);
    const auto index = index_type(op.c.index_dtype);
    DenseMatrix a, b;
    WritableMatrix c;
    TROUPE_CUDA_TRY(describe(call.at(op.a), op.dtype, op.transpose_a, op.order_a, op.c.rows, op.k,
                             op.lda, a.out()));
    TROUPE_CUDA_TRY(describe(call.at(op.b), op.dtype, op.transpose_b, op.order_b, op.k,
                             op.c.columns, op.ldb, b.out()));
    TROUPE_CUDA_TRY(cusparseCreateCsr(c.out(), op.c.rows, op.c.columns, op.c.nonzeros,
                                      call.at(op.outer), call.at(op.inner), call.at(op.value),
                                      index, index, CUSPARSE_INDEX_BASE_ZERO, type));
    std::size_t bytes = 0;
    TROUPE_CUDA_TRY(cusparseSDDMM_bufferSize(
        own.handle.get(), operation(op.transpose_a), operation(op.transpose_b), scalars[0], a.get(),
        b.get(), scalars[1], c.get(), type, CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(), bytes));
    // cuSPARSE does not promise not to read them.
    if (op.beta.is_zero(op.dtype)) {
      TROUPE_CUDA_TRY(cudaMemsetAsync(call.at(op.value), 0,
                                      size_of(op.dtype) * static_cast<std::size_t>(op.c.nonzeros),
                                      library.services.stream(call.queue())));
    }
    TROUPE_CUDA_TRY(cusparseSDDMM(
        own.handle.get(), operation(op.transpose_a), operation(op.transpose_b), scalars[0], a.get(),
        b.get(), scalars[1], c.get(), type, CUSPARSE_SDDMM_ALG_DEFAULT, own.workspace.get()));
    return {};
  });
}

Result<void> sample_by_kernel(const sparse::Sddmm& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.c.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      // Transposed is the same as in the other order.
      const bool a_by_column =
          (op.order_a == blas::Order::column) == (op.transpose_a == blas::Transpose::no);
      const bool b_by_column =
          (op.order_b == blas::Order::column) == (op.transpose_b == blas::Transpose::no);
      kernels::SampledProduct<N, I> product;
      product.block_rows = op.c.rows / op.c.block, product.extent = op.c.block;
      product.blocks = op.c.inner_length();
      product.row_begin = call.at<const I>(op.outer), product.column = call.at<const I>(op.inner);
      product.by_column = op.c.order == BlockOrder::column;
      product.value = call.at<N>(op.value);
      product.k = op.k;
      product.a = call.at<const N>(op.a), product.b = call.at<const N>(op.b);
      product.a_row_step = a_by_column ? 1 : op.lda;
      product.a_column_step = a_by_column ? op.lda : 1;
      product.b_row_step = b_by_column ? 1 : op.ldb;
      product.b_column_step = b_by_column ? op.ldb : 1;
      product.alpha = native_scalar<T>(op.alpha, call);
      product.beta = native_scalar<T>(op.beta, call);
      TROUPE_CUDA_TRY(kernels::sddmm(library.services.launch(call.queue()), product));
      return {};
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
