#include "lib/sparse/cuda.hpp"
#include "lib/sparse/common/parts_cuda.hpp"
#include "lib/sparse/conversions/counting_kernels.cuh"
#include "lib/sparse/conversions/kernels.cuh"

/// Sparse matrices as dense ones and the other way, on the cuda engine.
namespace troupe::host::cuda {
namespace {

using sparse::Format;

/// The dense matrix of an operation, by rows or by columns.
template <class T, class Op>
kernels::DenseLines<T> lines_of(const Op& op, bool by_row, const Call& call) {
  const std::int64_t row_step = op.order == blas::Order::column ? 1 : op.leading;
  const std::int64_t column_step = op.order == blas::Order::column ? op.leading : 1;
  auto* const element = call.at<T>(op.dense);
  return by_row ? kernels::DenseLines<T>{op.rows, op.columns, row_step, column_step, element}
                : kernels::DenseLines<T>{op.columns, op.rows, column_step, row_step, element};
}

}  // namespace

Result<void> run(const sparse::SparseToDense& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const auto launch = library.services.launch(call.queue());
      const auto dense = lines_of<N>(op, op.format != Format::csc, call);
      TROUPE_CUDA_TRY(kernels::clear(launch, dense));
      if (op.nonzeros == 0) return {};
      const auto* const offsets = call.at<const I>(op.offsets);
      const bool compressed = op.format != Format::coo;
      const kernels::SparseLines<N, I> elements{
          op.nonzeros, compressed ? offsets : nullptr, compressed ? nullptr : offsets,
          call.at<const I>(op.index), call.at<const N>(op.value)};
      TROUPE_CUDA_TRY(kernels::store_elements(launch, elements, dense));
      return {};
    });
  });
}

Result<void> run(const sparse::BlockedEllToDense& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const auto launch = library.services.launch(call.queue());
      const auto dense = lines_of<N>(op, true, call);
      TROUPE_CUDA_TRY(kernels::clear(launch, dense));
      const kernels::BlockedElements<N, I> blocks{
          op.rows, op.block, op.width, call.at<const I>(op.column), call.at<const N>(op.value)};
      TROUPE_CUDA_TRY(kernels::store_blocks(launch, blocks, dense));
      return {};
    });
  });
}

/// The lines' nonzeros are counted, the counts added up, and the nonzeros stored if there is room:
/// the device alone knows whether there is.
Result<void> run(const sparse::DenseToSparse& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) -> Result<void> {
      using N = Native<T>;
      const auto launch = library.services.launch(call.queue());
      const auto dense = lines_of<const N>(op, op.format != Format::csc, call);
      const auto offsets = dense.lines + 1;
      std::size_t bytes = 0;
      TROUPE_CUDA_TRY(kernels::counting_bytes(offsets, &bytes));
      PartsOfMemory parts;
      const auto counts_begin = parts.add<std::int64_t>(offsets), work = parts.add_bytes(bytes);
      auto& workspace = library.state(call.queue()).workspace;
      TROUPE_CUDA_PROPAGATE(workspace.reserve(library.services, call.queue(), parts.bytes()));
      auto* const counts = part_at<std::int64_t>(workspace.get(), counts_begin);

      TROUPE_CUDA_TRY(
          cudaMemsetAsync(counts + dense.lines, 0, sizeof(std::int64_t), launch.stream));
      TROUPE_CUDA_TRY(kernels::count_nonzeros<N>(launch, dense, counts));
      (void)cudaGetLastError();  // CUB reports what others left there
      TROUPE_CUDA_TRY(kernels::add_up(launch, offsets, counts,
                                      part_at<std::byte>(workspace.get(), work), bytes));
      const bool compressed = op.format != Format::coo;
      if (compressed) {
        TROUPE_CUDA_TRY(kernels::narrow(launch, offsets, counts, call.at<I>(op.offsets)));
      }
      if (op.capacity > 0) {
        const kernels::NonzeroTarget<N, I> target{op.capacity, counts,
                                                  compressed ? nullptr : call.at<I>(op.offsets),
                                                  call.at<I>(op.index), call.at<N>(op.value)};
        TROUPE_CUDA_TRY(kernels::store_nonzeros(launch, dense, target));
      }
      TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.nonzeros), counts + dense.lines,
                                      sizeof(std::int64_t), cudaMemcpyDefault, launch.stream));
      return {};
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
