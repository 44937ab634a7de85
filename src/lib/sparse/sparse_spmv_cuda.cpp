#include <utility>

#include "lib/sparse/sparse_cuda.hpp"

/// Products of sparse matrices with vectors on the cuda engine.
namespace troupe::host::cuda {
namespace {

/// The matrix as cuSPARSE multiplies it with the same bits in every run, which it does to none that
/// is transposed; a format that it is not given to means: it does not. A transposed matrix by
/// columns is one by rows.
struct ForCusparse {
  bool has = false;
  sparse::Form form;
};
ForCusparse for_cusparse(const sparse::Spmv& op) {
  using sparse::Format;
  const bool plain = op.transpose == blas::Transpose::no;
  const bool real = op.dtype == DType::f32 || op.dtype == DType::f64;
  switch (op.a.format) {
    case Format::csr:
    case Format::coo:
    case Format::sell: return {plain, op.a};
    case Format::csc: {
      auto form = op.a;
      form.format = Format::csr;
      std::swap(form.rows, form.columns);
      return {op.transpose == blas::Transpose::yes || (real && !plain), form};
    }
    default: return {};
  }
}

}  // namespace

Result<void> Sparse::run(const sparse::Spmv& op, const Call& call) {
  if (op.length_of_y() == 0) return {};
  if (op.a.nonzeros > 0) {
    if (const auto [has, form] = for_cusparse(op); has) return multiply_by_cusparse(op, form, call);
  }
  return with_number(op.dtype, [&]<class T>(T) {
    kernels::DenseOperands<Native<T>> dense;
    dense.rows = op.length_of_y(), dense.columns = 1;
    dense.b = call.at<const Native<T>>(op.x), dense.c = call.at<Native<T>>(op.y);
    dense.b_row_step = dense.c_row_step = 1;
    dense.b_column_step = op.length_of_x(), dense.c_column_step = op.length_of_y();
    dense.alpha = native_scalar<T>(op.alpha, call);
    dense.beta = native_scalar<T>(op.beta, call);
    return multiply_by_kernel<T>({op.a, op.transpose, op.outer, op.inner, op.value}, dense, call);
  });
}

Result<void> Sparse::multiply_by_cusparse(const sparse::Spmv& op, const sparse::Form& form,
                                          const Call& call) {
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    ScalarValues<T> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(services_, call, {&op.alpha, &op.beta}));
    auto& own = state(call.queue());
    TROUPE_CUDA_PROPAGATE(point_at(own, scalars.where()));
    const auto prepared = own.prepared.find(services_, call.queue(), own.handle.get(),
                                            {.outer = call.at(op.outer),
                                             .inner = call.at(op.inner),
                                             .value = call.at(op.value),
                                             .outer_contents = contents_of(op.outer),
                                             .inner_contents = contents_of(op.inner),
                                             .form = form,
                                             .dtype = op.dtype},
                                            {scalars[0], scalars[1], call.at(op.x), call.at(op.y)});
    if (!prepared) return prepared.error();
    auto& entry = **prepared;
    entry.structure = {op.outer, op.inner};
    const auto workspace = entry.workspace.reserve(0, own.stream);
    if (!workspace) return workspace.error();
    TROUPE_CUDA_TRY(cusparseSpMV(own.handle.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, scalars[0],
                                 entry.matrix.get(), entry.x.get(), scalars[1], entry.y.get(),
                                 value_type(op.dtype), entry.algorithm(), *workspace));
    return {};
  });
}

template <class T>
Result<void> Sparse::multiply_by_kernel(const SparseArgument& a,
                                        const kernels::DenseOperands<Native<T>>& dense,
                                        const Call& call) {
  using sparse::Format;
  return with_index(a.form.index_dtype, [&]<class I>(I) -> Result<void> {
    const auto& form = a.form;
    const auto launch = services_.launch(call.queue());
    kernels::SparseProduct<Native<T>, I> product;
    static_cast<kernels::DenseOperands<Native<T>>&>(product) = dense;
    product.value = call.at<const Native<T>>(a.value);
    product.conjugate = a.transpose == blas::Transpose::conjugate;
    if (form.nonzeros == 0) {
      TROUPE_CUDA_TRY(kernels::spmm(launch, product));
      return {};
    }

    // A matrix by columns is the transpose of one by rows, whose structure this is: of blocks where
    // there are blocks.
    const bool by_columns = form.format == Format::csc;
    const bool across = (a.transpose != blas::Transpose::no) != by_columns;
    const auto extent = form.blocked() ? form.block : 1;
    kernels::Structure<I> matrix;
    matrix.rows = (by_columns ? form.columns : form.rows) / extent;
    matrix.columns = (by_columns ? form.rows : form.columns) / extent;
    matrix.nonzeros = form.inner_length();
    matrix.column = call.at<const I>(a.inner);
    if (form.format == Format::coo) {
      matrix.row = call.at<const I>(a.outer);
    } else if (form.format == Format::blocked_ell) {
      matrix.width = form.width;
    } else {
      matrix.row_begin = call.at<const I>(a.outer);
      if (form.format == Format::sell) matrix.slice_rows = form.block;
    }
    if (form.blocked()) {
      const bool by_row = form.order == BlockOrder::row;
      auto& blocks = product.blocks;
      blocks.extent = form.block, blocks.width = form.width;
      blocks.row_step = form.width > 0 ? form.width * form.block : by_row ? form.block : 1;
      blocks.column_step = by_row ? 1 : form.block;
      if (across) std::swap(blocks.row_step, blocks.column_step);
    }

    auto& own = state(call.queue());
    if (across) {
      const auto transposed = own.transpositions.find(services_, call, matrix, a.outer, a.inner);
      if (!transposed) return transposed.error();
      product.row_begin = transposed->column_begin, product.column = transposed->row;
      product.place = transposed->place;
    } else {
      product.row_begin = matrix.row_begin, product.column = matrix.column;
      if (matrix.row != nullptr) {
        const auto bytes = (static_cast<std::size_t>(matrix.rows) + 1) * sizeof(I);
        TROUPE_CUDA_PROPAGATE(own.workspace.reserve(services_, call.queue(), bytes));
        auto* const begins = static_cast<I*>(own.workspace.get());
        TROUPE_CUDA_TRY(
            kernels::find_begins(launch, matrix.row, matrix.nonzeros, matrix.rows, begins));
        product.row_begin = begins;
      }
    }
    TROUPE_CUDA_TRY(kernels::spmm(launch, product));
    return {};
  });
}

template Result<void> Sparse::multiply_by_kernel<float>(const SparseArgument&,
                                                        const kernels::DenseOperands<float>&,
                                                        const Call&);
template Result<void> Sparse::multiply_by_kernel<double>(const SparseArgument&,
                                                         const kernels::DenseOperands<double>&,
                                                         const Call&);
template Result<void> Sparse::multiply_by_kernel<std::complex<float>>(
    const SparseArgument&, const kernels::DenseOperands<cuComplex>&, const Call&);
template Result<void> Sparse::multiply_by_kernel<std::complex<double>>(
    const SparseArgument&, const kernels::DenseOperands<cuDoubleComplex>&, const Call&);

}  // namespace troupe::host::cuda
