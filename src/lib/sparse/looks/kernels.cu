#include "lib/sparse/looks/kernels.cuh"

#include "device_host/engine/cuda/stored.cuh"
#include "lib/sparse/dense/spmm_products.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// A row of a matrix in sliced ELL. Rows of a slice lie beside one another, so that a row is one
/// thread's.
template <class T, class I>
struct RowOfSlice {
  using Product = SlicedProduct<T, I>;
  using Number = T;
  const Product& product;
  std::int64_t begin, length;

  __device__ RowOfSlice(const Product& its_product, std::int64_t row)
      : product(its_product),
        begin(product.row_begin[row / product.slice_rows] + row % product.slice_rows),
        length((product.row_begin[row / product.slice_rows + 1] -
                product.row_begin[row / product.slice_rows]) /
               product.slice_rows) {}
  template <class Visit>
  __device__ void each(std::int64_t first, std::int64_t step, const Visit& visit) const {
    for (std::int64_t k = first; k < length; k += step) {
      const auto at = begin + k * product.slice_rows;
      if (product.column[at] >= 0) visit(product.value[at], product.column[at]);
    }
  }
};

/// One element of C, by so many lanes of a warp; what the first lane returns is right.
template <class Row, unsigned Lanes>
__device__ sums::SparseJudgement judge_element(const typename Row::Product& product,
                                               const typename Row::Number* before,
                                               const sums::Rounding& rounding, std::int64_t i,
                                               std::int64_t j) {
  using T = typename Row::Number;
  const Row row(product, i);
  const auto* const b = product.b + j * product.b_column_step;
  sums::SparseElement element;
  element.count = row.length;
  row.each(threadIdx.x % Lanes, Lanes, [&](T value, std::int64_t k) {
    const sums::Number factor = number(value), x = number(b[k * product.b_row_step]);
    element.sum = element.sum + factor * x;
    element.size += sums::extent(factor) * sums::extent(x);
  });
  if constexpr (Lanes > 1) {
    element.sum.re = over_warp(element.sum.re);
    if constexpr (kComplex<T>) element.sum.im = over_warp(element.sum.im);
    element.size = over_warp(element.size);
  }
  const std::int64_t place = i * product.c_row_step + j * product.c_column_step;
  element.result = number(product.c[place]);
  if (before != nullptr) element.before = number(before[place]);
  return sums::judge(element, number(value_of(product.alpha)), number(value_of(product.beta)),
                     rounding);
}

template <class Row, unsigned Lanes>
__global__ void judge_kernel(typename Row::Product product, const typename Row::Number* before,
                             sums::Rounding rounding, SparseVerdict* verdict) {
  const auto tasks = static_cast<std::uint64_t>(product.rows * product.columns);
  for (auto task = first_index() / Lanes; task < tasks; task += index_step() / Lanes) {
    const auto at = static_cast<std::int64_t>(task);
    const auto judged = judge_element<Row, Lanes>(product, before, rounding, at / product.columns,
                                                  at % product.columns);
    if (threadIdx.x % Lanes == 0 && judged.wrong)
      atomicMin(&verdict->first, static_cast<unsigned long long>(task));
  }
}
/// One thread for each lane.
template <class Row, unsigned Lanes>
__global__ void tell_kernel(typename Row::Product product, const typename Row::Number* before,
                            sums::Rounding rounding, SparseVerdict* verdict) {
  if (verdict->first == SparseVerdict::kNothingWrong) return;
  const auto at = static_cast<std::int64_t>(verdict->first);
  const auto judged = judge_element<Row, Lanes>(product, before, rounding, at / product.columns,
                                                at % product.columns);
  if (threadIdx.x == 0) verdict->judged = judged;
}

template <class T>
__global__ void spoil_kernel(T* element) {
  spoil_element(*element);
}

cudaLaunchConfig_t few_threads(const Launch& launch, unsigned threads) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(threads);
  config.stream = launch.stream;
  return config;
}

template <class Row, unsigned Lanes = kLanes>
cudaError_t judge_rows(const Launch& launch, const typename Row::Product& product,
                       const typename Row::Number* before, const sums::Rounding& rounding,
                       SparseVerdict* verdict) {
  const auto items = static_cast<std::uint64_t>(product.rows * product.columns) * Lanes;
  const auto status =
      queue(launch, items, judge_kernel<Row, Lanes>, product, before, rounding, verdict);
  if (status != cudaSuccess) return status;
  const auto config = few_threads(launch, Lanes);
  return cudaLaunchKernelEx(&config, tell_kernel<Row, Lanes>, product, before, rounding, verdict);
}

template <class T, class I>
cudaError_t load_both() {
  using Product = SparseProduct<T, I>;
  return load_all(&judge_kernel<Row<Product>, kLanes>, &judge_kernel<RowOfBlocks<Product>, kLanes>,
                  &judge_kernel<RowOfSlice<T, I>, 1>, &tell_kernel<Row<Product>, kLanes>,
                  &tell_kernel<RowOfBlocks<Product>, kLanes>, &tell_kernel<RowOfSlice<T, I>, 1>,
                  &spoil_kernel<T>);
}

}  // namespace

cudaError_t preload_checks() {
  for (const auto load : {load_both<float, std::int32_t>, load_both<double, std::int32_t>,
                          load_both<float2, std::int32_t>, load_both<double2, std::int32_t>,
                          load_both<float, std::int64_t>, load_both<double, std::int64_t>,
                          load_both<float2, std::int64_t>, load_both<double2, std::int64_t>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class T, class I>
cudaError_t judge(const Launch& launch, const SparseProduct<T, I>& product, const T* before,
                  const sums::Rounding& rounding, SparseVerdict* verdict) {
  using Product = SparseProduct<T, I>;
  return product.blocks.extent > 0
             ? judge_rows<RowOfBlocks<Product>>(launch, product, before, rounding, verdict)
             : judge_rows<Row<Product>>(launch, product, before, rounding, verdict);
}

template <class T, class I>
cudaError_t judge(const Launch& launch, const SlicedProduct<T, I>& product, const T* before,
                  const sums::Rounding& rounding, SparseVerdict* verdict) {
  return judge_rows<RowOfSlice<T, I>, 1>(launch, product, before, rounding, verdict);
}

template <class T>
cudaError_t spoil(const Launch& launch, T* element) {
  const auto config = few_threads(launch, 1);
  return cudaLaunchKernelEx(&config, spoil_kernel<T>, element);
}

#define TROUPE_SPARSE_CHECK(T)                                                               \
  template cudaError_t judge(const Launch&, const SparseProduct<T, std::int32_t>&, const T*, \
                             const sums::Rounding&, SparseVerdict*);                         \
  template cudaError_t judge(const Launch&, const SparseProduct<T, std::int64_t>&, const T*, \
                             const sums::Rounding&, SparseVerdict*);                         \
  template cudaError_t judge(const Launch&, const SlicedProduct<T, std::int32_t>&, const T*, \
                             const sums::Rounding&, SparseVerdict*);                         \
  template cudaError_t judge(const Launch&, const SlicedProduct<T, std::int64_t>&, const T*, \
                             const sums::Rounding&, SparseVerdict*);                         \
  template cudaError_t spoil(const Launch&, T*);
TROUPE_SPARSE_CHECK(float)
TROUPE_SPARSE_CHECK(double)
TROUPE_SPARSE_CHECK(float2)
TROUPE_SPARSE_CHECK(double2)
#undef TROUPE_SPARSE_CHECK

}  // namespace troupe::host::cuda::kernels
