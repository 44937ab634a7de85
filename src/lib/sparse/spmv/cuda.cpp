#include <utility>

#include "lib/sparse/common/products_cuda.hpp"

/// Products of sparse matrices with vectors on the cuda engine, and what all products have in
/// common.
namespace troupe::host::cuda {

ForCusparse for_cusparse(const SparseArgument& a, DType dtype) {
  using sparse::Format;
  if (a.form.nonzeros == 0) return {};
  const bool plain = a.transpose == blas::Transpose::no;
  const bool complex = dtype == DType::c64 || dtype == DType::c128;
  switch (a.form.format) {
    case Format::csr:
    case Format::coo:
    case Format::sell: return {plain, a.form};
    case Format::csc: {
      auto form = a.form;
      form.format = Format::csr;
      std::swap(form.rows, form.columns);
      return {a.transpose == blas::Transpose::yes || (!complex && !plain), form};
    }
    default: return {};
  }
}

Result<void> run(const sparse::Spmv& op, const Call& call, Sparse& library) {
  if (op.length_of_y() == 0) return {};
  const SparseArgument a{op.a, op.transpose, op.outer, op.inner, op.value};
  if (const auto [has, form] = for_cusparse(a, op.dtype); has) {
    return multiply_by_cusparse(
        {a, form, op.x, op.y, op.alpha, op.beta, op.dtype, op.dtype, op.dtype}, call, library);
  }
  return with_number(op.dtype, [&]<class T>(T) {
    auto dense = vectors_of<Native<T>, Native<T>, Native<T>>(op, call);
    dense.alpha = native_scalar<T>(op.alpha, call);
    dense.beta = native_scalar<T>(op.beta, call);
    return multiply_by_kernel(a, dense, call, library);
  });
}

Result<void> multiply_by_cusparse(const VectorProduct& product, const Call& call, Sparse& library) {
  const auto& a = product.a;
  const auto multiply = [&]<class Sum>(Sum) -> Result<void> {
    ScalarValues<Sum> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(library.services, call, {&product.alpha, &product.beta}));
    auto& own = library.state(call.queue());
    TROUPE_CUDA_PROPAGATE(library.point_at(own, scalars.where()));
    const auto prepared =
        own.prepared.find(library.services, call.queue(), own.handle.get(),
                          {.outer = call.at(a.outer),
                           .inner = call.at(a.inner),
                           .value = call.at(a.value),
                           .outer_contents = contents_of(a.outer),
                           .inner_contents = contents_of(a.inner),
                           .form = product.form,
                           .dtype = product.dtype,
                           .y_dtype = product.y_dtype,
                           .sum_dtype = product.sum_dtype},
                          {scalars[0], scalars[1], call.at(product.x), call.at(product.y)});
    if (!prepared) return prepared.error();
    auto& entry = **prepared;
    entry.structure = {a.outer, a.inner};
    const auto workspace = entry.workspace.reserve(0, own.stream);
    if (!workspace) return workspace.error();
    TROUPE_CUDA_TRY(cusparseSpMV(own.handle.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, scalars[0],
                                 entry.matrix.get(), entry.x.get(), scalars[1], entry.y.get(),
                                 value_type(product.sum_dtype), entry.algorithm(), *workspace));
    return {};
  };
  return product.sum_dtype == DType::i32 ? multiply(std::int32_t{})
                                         : with_number(product.sum_dtype, multiply);
}

template <class I>
Result<kernels::Pattern<I>> pattern_of(const SparseArgument& a, const Call& call, Sparse& library) {
  using sparse::Format;
  const auto& form = a.form;
  kernels::Pattern<I> pattern;
  if (form.nonzeros == 0) return pattern;
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
    auto& blocks = pattern.blocks;
    blocks.extent = form.block, blocks.width = form.width;
    blocks.row_step = form.width > 0 ? form.width * form.block : by_row ? form.block : 1;
    blocks.column_step = by_row ? 1 : form.block;
    if (across) std::swap(blocks.row_step, blocks.column_step);
  }

  auto& own = library.state(call.queue());
  if (across) {
    const auto transposed =
        own.transpositions.find(library.services, call, matrix, a.outer, a.inner);
    if (!transposed) return transposed.error();
    pattern.row_begin = transposed->column_begin, pattern.column = transposed->row;
    pattern.place = transposed->place;
  } else {
    pattern.row_begin = matrix.row_begin, pattern.column = matrix.column;
    if (matrix.row != nullptr) {
      const auto bytes = (static_cast<std::size_t>(matrix.rows) + 1) * sizeof(I);
      TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(), bytes));
      auto* const begins = static_cast<I*>(own.workspace.get());
      TROUPE_CUDA_TRY(kernels::find_begins(library.services.launch(call.queue()), matrix.row,
                                           matrix.nonzeros, matrix.rows, begins));
      pattern.row_begin = begins;
    }
  }
  return pattern;
}

template Result<kernels::Pattern<std::int32_t>> pattern_of(const SparseArgument&, const Call&,
                                                           Sparse&);
template Result<kernels::Pattern<std::int64_t>> pattern_of(const SparseArgument&, const Call&,
                                                           Sparse&);

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
