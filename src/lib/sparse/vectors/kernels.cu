#include "lib/sparse/vectors/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/numbers.cuh"

namespace troupe::host::cuda::kernels {
namespace {

template <class T, class I>
__global__ void scatter_kernel(std::uint64_t n, const T* x, const I* index, T* y) {
  for (auto i = first_index(); i < n; i += index_step()) y[index[i]] = x[i];
}

template <class T>
__global__ void scale_all_kernel(std::uint64_t n, ScalarValue<T> beta, T* y) {
  const T b = value_of(beta);
  for (auto i = first_index(); i < n; i += index_step()) y[i] = weighed(b, y[i]);
}
template <class T, class I>
__global__ void add_kernel(std::uint64_t n, ScalarValue<T> alpha, const T* x, const I* index,
                           T* y) {
  const T a = value_of(alpha);
  if (is_zero(a)) return;
  for (auto i = first_index(); i < n; i += index_step()) {
    T& element = y[index[i]];
    element = multiply_add(a, x[i], element);
  }
}

__device__ float scaled(float c, float x) {
  return c * x;
}
__device__ double scaled(double c, double x) {
  return c * x;
}
template <class Real, class Complex>
__device__ Complex scaled(Real c, Complex x) {
  x.x *= c;
  x.y *= c;
  return x;
}

template <class T, class Real, class I>
__global__ void rotate_kernel(std::uint64_t n, const I* index, ScalarValue<Real> cosine,
                              ScalarValue<T> sine, T* x, T* y) {
  const Real c = value_of(cosine);
  const T s = value_of(sine);
  const T back = scaled(Real(-1), conjugated(s));
  for (auto i = first_index(); i < n; i += index_step()) {
    T& element = y[index[i]];
    const T old_x = x[i], old_y = element;
    x[i] = multiply_add(s, old_y, scaled(c, old_x));
    element = multiply_add(back, old_x, scaled(c, old_y));
  }
}

__device__ float sum_of(float a, float b) {
  return a + b;
}
__device__ double sum_of(double a, double b) {
  return a + b;
}
template <class Complex>
__device__ Complex sum_of(Complex a, Complex b) {
  a.x += b.x;
  a.y += b.y;
  return a;
}
/// The sum over a block of kThreads threads, in the first of them.
template <class T>
__device__ T sum_of_block(T x) {
  __shared__ T sums[kThreads];
  sums[threadIdx.x] = x;
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) sums[threadIdx.x] = sum_of(sums[threadIdx.x], sums[threadIdx.x + step]);
  }
  return sums[0];
}

/// What each block adds up depends on the size of the grid alone, which depends on n and the
/// device.
template <class T, class I>
__global__ void product_kernel(std::uint64_t n, const T* x, const I* index, bool conjugate,
                               const T* y, T* partial) {
  T sum{};
  for (auto i = first_index(); i < n; i += index_step())
    sum = multiply_add(conjugate ? conjugated(x[i]) : x[i], y[index[i]], sum);
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
/// Of one block.
template <class T>
__global__ void add_up_kernel(unsigned n, const T* partial, T* result) {
  const T sum = sum_of_block(threadIdx.x < n ? partial[threadIdx.x] : T{});
  if (threadIdx.x == 0) *result = sum;
}
static_assert(kPartialSums <= kThreads);

template <class T, class Real, class I>
cudaError_t load_indexed() {
  return load_all(scatter_kernel<T, I>, add_kernel<T, I>, rotate_kernel<T, Real, I>,
                  product_kernel<T, I>);
}
template <class T, class Real>
cudaError_t load_typed() {
  auto status = load_all(scale_all_kernel<T>, add_up_kernel<T>);
  if (status == cudaSuccess) status = load_indexed<T, Real, std::int32_t>();
  return status == cudaSuccess ? load_indexed<T, Real, std::int64_t>() : status;
}

}  // namespace

cudaError_t preload_sparse_vectors() {
  for (const auto load : {load_typed<float, float>, load_typed<double, double>,
                          load_typed<float2, float>, load_typed<double2, double>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class T, class I>
cudaError_t scatter(const Launch& launch, const SparseVector<T, I>& x, T* y) {
  if (x.count <= 0) return cudaSuccess;
  const auto count = static_cast<std::uint64_t>(x.count);
  return queue(launch, count, scatter_kernel<T, I>, count, x.x, x.index, y);
}

template <class T, class I>
cudaError_t axpby(const Launch& launch, ScalarValue<T> alpha, const SparseVector<T, I>& x,
                  ScalarValue<T> beta, std::int64_t length, T* y) {
  if (length <= 0) return cudaSuccess;
  const auto elements = static_cast<std::uint64_t>(length);
  const auto count = static_cast<std::uint64_t>(x.count);
  const auto status = queue(launch, elements, scale_all_kernel<T>, elements, beta, y);
  if (status != cudaSuccess || count == 0) return status;
  return queue(launch, count, add_kernel<T, I>, count, alpha, x.x, x.index, y);
}

template <class T, class Real, class I>
cudaError_t rotate(const Launch& launch, std::int64_t n, const I* index, ScalarValue<Real> c,
                   ScalarValue<T> s, T* x, T* y) {
  if (n <= 0) return cudaSuccess;
  const auto count = static_cast<std::uint64_t>(n);
  return queue(launch, count, rotate_kernel<T, Real, I>, count, index, c, s, x, y);
}

template <class T, class I>
cudaError_t product(const Launch& launch, const SparseVector<T, I>& x, bool conjugate, const T* y,
                    T* partial, T* result) {
  const auto count = static_cast<std::uint64_t>(x.count);
  const unsigned wanted = blocks_for(launch, count);
  const unsigned blocks = wanted < kPartialSums ? wanted : static_cast<unsigned>(kPartialSums);
  if (blocks > 0) {
    const auto status = queue(launch, std::uint64_t{blocks} * kThreads, product_kernel<T, I>, count,
                              x.x, x.index, conjugate, y, partial);
    if (status != cudaSuccess) return status;
  }
  return queue(launch, std::uint64_t{1}, add_up_kernel<T>, blocks, partial, result);
}

#define TROUPE_INDEXED(T, Real, I)                                                      \
  template cudaError_t scatter(const Launch&, const SparseVector<T, I>&, T*);           \
  template cudaError_t axpby(const Launch&, ScalarValue<T>, const SparseVector<T, I>&,  \
                             ScalarValue<T>, std::int64_t, T*);                         \
  template cudaError_t rotate(const Launch&, std::int64_t, const I*, ScalarValue<Real>, \
                              ScalarValue<T>, T*, T*);                                  \
  template cudaError_t product(const Launch&, const SparseVector<T, I>&, bool, const T*, T*, T*);
#define TROUPE_TYPED(T, Real)           \
  TROUPE_INDEXED(T, Real, std::int32_t) \
  TROUPE_INDEXED(T, Real, std::int64_t)
TROUPE_TYPED(float, float)
TROUPE_TYPED(double, double)
TROUPE_TYPED(float2, float)
TROUPE_TYPED(double2, double)
#undef TROUPE_TYPED
#undef TROUPE_INDEXED

}  // namespace troupe::host::cuda::kernels
