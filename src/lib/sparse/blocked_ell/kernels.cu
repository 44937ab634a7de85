#include "lib/sparse/blocked_ell/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/search.cuh"
#include "lib/sparse/formats/repeated.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// The largest of all is the same in whatever order threads come to it.
template <class I>
__global__ void find_width_kernel(std::uint64_t block_rows, const I* row_begin,
                                  std::int64_t* width) {
  std::int64_t widest = 0;
  for (auto i = first_index(); i < block_rows; i += index_step()) {
    const std::int64_t here = row_begin[i + 1] - row_begin[i];
    widest = widest < here ? here : widest;
  }
  if (widest > 0) atomicMax(reinterpret_cast<long long*>(width), static_cast<long long>(widest));
}

template <class T, class I>
__global__ void pad_kernel(std::uint64_t columns, std::uint64_t values, const std::int64_t* width,
                           EllTarget<T, I> to) {
  if (*width > to.capacity) return;
  for (auto k = first_index(); k < values; k += index_step()) {
    to.value[k] = T{};
    if (k < columns) to.column[k] = I(-1);
  }
}

template <class T, class I>
__global__ void fill_ell_kernel(GivenRows<T, I> from, BlockedOrder<I> elements,
                                const std::int64_t* before, const I* row_begin,
                                const std::int64_t* width, EllTarget<T, I> to) {
  if (*width > to.capacity) return;
  const auto n = static_cast<std::uint64_t>(elements.count);
  for (auto k = first_index(); k < n; k += index_step()) {
    const std::int64_t place = elements.place[k];
    const std::int64_t row = row_of(from.row_begin, from.rows, place);
    if (row >= from.rows) continue;  // all is 0 where a command is prepared
    const std::int64_t column = from.column[place];
    const std::int64_t block_row = row / to.block;
    const std::int64_t number = before[k + 1] - 1;
    const std::int64_t slot = number - row_begin[block_row];
    T sum;
    if (sum_at_place(from, elements, k, row, &sum))
      to.value[(row * to.capacity + slot) * to.block + column % to.block] = sum;
    if (before[k] == number)
      to.column[block_row * to.capacity + slot] = static_cast<I>(column / to.block);
  }
}

template <class T, class I>
cudaError_t load_indexed() {
  return load_all(pad_kernel<T, I>, fill_ell_kernel<T, I>);
}
template <class I>
cudaError_t load_index() {
  auto status = load(find_width_kernel<I>);
  if (status == cudaSuccess) status = load_indexed<float, I>();
  if (status == cudaSuccess) status = load_indexed<double, I>();
  if (status == cudaSuccess) status = load_indexed<float2, I>();
  return status == cudaSuccess ? load_indexed<double2, I>() : status;
}

}  // namespace

cudaError_t preload_blocked_ell() {
  const auto status = load_index<std::int32_t>();
  return status == cudaSuccess ? load_index<std::int64_t>() : status;
}

template <class I>
cudaError_t find_width(const Launch& launch, std::int64_t block_rows, const I* row_begin,
                       std::int64_t* width) {
  const auto rows = static_cast<std::uint64_t>(block_rows);
  return queue(launch, rows, find_width_kernel<I>, rows, row_begin, width);
}

template <class T, class I>
cudaError_t pad(const Launch& launch, std::int64_t block_rows, const std::int64_t* width,
                const EllTarget<T, I>& to) {
  const auto columns = static_cast<std::uint64_t>(block_rows * to.capacity);
  const auto values = columns * static_cast<std::uint64_t>(to.block * to.block);
  return queue(launch, values, pad_kernel<T, I>, columns, values, width, to);
}

template <class T, class I>
cudaError_t fill_ell(const Launch& launch, const GivenRows<T, I>& from,
                     const BlockedOrder<I>& elements, const std::int64_t* before,
                     const I* row_begin, const std::int64_t* width, const EllTarget<T, I>& to) {
  return queue(launch, static_cast<std::uint64_t>(elements.count), fill_ell_kernel<T, I>, from,
               elements, before, row_begin, width, to);
}

#define TROUPE_INDEXED(T, I)                                                                   \
  template cudaError_t pad(const Launch&, std::int64_t, const std::int64_t*,                   \
                           const EllTarget<T, I>&);                                            \
  template cudaError_t fill_ell(const Launch&, const GivenRows<T, I>&, const BlockedOrder<I>&, \
                                const std::int64_t*, const I*, const std::int64_t*,            \
                                const EllTarget<T, I>&);
#define TROUPE_INDICES(I)                                                                \
  template cudaError_t find_width(const Launch&, std::int64_t, const I*, std::int64_t*); \
  TROUPE_INDEXED(float, I)                                                               \
  TROUPE_INDEXED(double, I)                                                              \
  TROUPE_INDEXED(float2, I)                                                              \
  TROUPE_INDEXED(double2, I)
TROUPE_INDICES(std::int32_t)
TROUPE_INDICES(std::int64_t)
#undef TROUPE_INDICES
#undef TROUPE_INDEXED

}  // namespace troupe::host::cuda::kernels
