#include "lib/sparse/cuda.hpp"
#include "lib/sparse/common/parts_cuda.hpp"
#include "lib/sparse/sorts/kernels.cuh"
#include "lib/sparse/vectors/gather_kernels.cuh"

/// Rows of elements, and elements in order, on the cuda engine.
namespace troupe::host::cuda {
namespace {

/// Queues a sort of elements; `row`: where their rows go, nullptr: they need not go anywhere.
template <class T, class I, class Op>
Result<void> sort(Services& services, Workspace& workspace, const Op& op, const Call& call,
                  const kernels::Elements<I>& elements, const kernels::Ordering& by, I* row) {
  const auto n = elements.count;
  std::size_t bytes = 0;
  TROUPE_CUDA_TRY(kernels::ordering_bytes<I>(n, &bytes));
  PartsOfMemory parts;
  const auto work = parts.add_bytes(bytes);
  const auto key = parts.add<std::uint64_t>(n), numbers = parts.add<I>(n);
  TROUPE_CUDA_PROPAGATE(workspace.reserve(services, call.queue(), parts.bytes()));
  void* const memory = workspace.get();
  I* const place =
      op.permutation.present() ? call.at<I>(op.permutation) : part_at<I>(memory, numbers);
  const auto launch = services.launch(call.queue());
  (void)cudaGetLastError();  // CUB reports what others left there
  TROUPE_CUDA_TRY(kernels::order(launch, elements, by, part_at<std::uint64_t>(memory, key), place,
                                 part_at<std::byte>(memory, work), bytes));
  if (row != nullptr) {
    TROUPE_CUDA_TRY(kernels::permute<I>(launch, n, place, elements.row, row));
  }
  TROUPE_CUDA_TRY(
      kernels::permute<I>(launch, n, place, elements.column, call.at<I>(op.sorted_column)));
  if (op.value.present()) {
    TROUPE_CUDA_TRY(kernels::gather(launch, n, call.at<const Native<T>>(op.value),
                                    static_cast<const I*>(place),
                                    call.at<Native<T>>(op.sorted_value)));
  }
  return {};
}

}  // namespace

Result<void> run(const sparse::Csr2Coo& op, const Call& call, Sparse& library) {
  if (op.nonzeros == 0) return {};
  return with_index(op.dtype, [&]<class I>(I) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::find_rows(library.services.launch(call.queue()), op.rows, op.nonzeros,
                                       call.at<const I>(op.row_begin), call.at<I>(op.row)));
    return {};
  });
}

Result<void> run(const sparse::Coo2Csr& op, const Call& call, Sparse& library) {
  return with_index(op.dtype, [&]<class I>(I) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::find_row_begins(library.services.launch(call.queue()), op.rows,
                                             op.nonzeros, call.at<const I>(op.row),
                                             call.at<I>(op.row_begin)));
    return {};
  });
}

Result<void> run(const sparse::CooSort& op, const Call& call, Sparse& library) {
  if (op.nonzeros == 0) return {};
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) {
      const kernels::Elements<I> elements{op.rows,     op.columns,
                                          op.nonzeros, call.at<const I>(op.row),
                                          nullptr,     call.at<const I>(op.column)};
      return sort<T>(library.services, library.state(call.queue()).workspace, op, call, elements,
                     {1, op.by == sparse::SortBy::column}, call.at<I>(op.sorted_row));
    });
  });
}

Result<void> run(const sparse::CsrSort& op, const Call& call, Sparse& library) {
  if (op.nonzeros == 0) return {};
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) {
      const kernels::Elements<I> elements{op.rows,
                                          op.columns,
                                          op.nonzeros,
                                          nullptr,
                                          call.at<const I>(op.row_begin),
                                          call.at<const I>(op.column)};
      I* const no_row = nullptr;
      return sort<T>(library.services, library.state(call.queue()).workspace, op, call, elements,
                     {}, no_row);
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
