#include "lib/blas/looks/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "device_host/engine/cuda/stored.cuh"

namespace troupe::host::cuda::kernels {
namespace {

using sums::Number;
using sums::Stored;

constexpr int kWarp = 32;
/// The columns that one thread, or one warp, goes through.
constexpr std::int64_t kColumnsOfThread = 128, kColumnsOfWarp = 4096;

/// Calls f(T{}) for the type of elements that are stored so.
template <class F>
cudaError_t with_stored(Stored stored, F&& f) {
  switch (stored) {
    case Stored::f16: return f(__half{});
    case Stored::bf16: return f(__nv_bfloat16{});
    case Stored::f32: return f(float{});
    case Stored::f64: return f(double{});
    case Stored::f8e4m3: return f(__nv_fp8_e4m3{});
    case Stored::f8e5m2: return f(__nv_fp8_e5m2{});
    case Stored::i8: return f(std::int8_t{});
    case Stored::i32: return f(std::int32_t{});
    case Stored::c64: return f(float2{});
    case Stored::c128: break;
  }
  return f(double2{});
}

__global__ void signs_kernel(std::int64_t n, Number* signs) {
  for (auto i = first_index(); i < static_cast<std::uint64_t>(n); i += index_step())
    signs[i] = {sums::sign_of(static_cast<std::int64_t>(i)), 0};
}

/// Rows whose elements lie apart: neighbouring threads have neighbouring rows.
template <class T>
__global__ void rows_apart_kernel(RowSums of, std::uint64_t tiles, std::uint64_t chunks) {
  const auto& m = of.matrices;
  const auto tasks = tiles * chunks * static_cast<std::uint64_t>(of.batch);
  for (std::uint64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const auto row = static_cast<std::int64_t>(task % tiles * kThreads + threadIdx.x);
    const auto begin = static_cast<std::int64_t>(task / tiles % chunks) * kColumnsOfThread;
    const auto matrix = static_cast<std::int64_t>(task / tiles / chunks);
    if (row >= m.rows) continue;
    const auto end = min(begin + kColumnsOfThread, m.columns);
    const auto* const data = static_cast<const T*>(m.data) + matrix * m.stride + row * m.row_step;
    const auto* const weights = of.weights + matrix * of.weights_stride;
    Number sum;
    double size = 0;
#pragma unroll 8
    for (auto j = begin; j < end; ++j)
      add_weighed(data[j * m.column_step], m.conjugate, of.lengths, weights[j], sum, size);
    const auto at = matrix * m.rows + row;
    atomicAdd(&of.sum[at].re, sum.re);
    if constexpr (kComplex<T>) atomicAdd(&of.sum[at].im, sum.im);
    atomicAdd(&of.size[at], size);
  }
}

/// Rows whose elements lie together: a warp for a row, or a part of it.
template <class T>
__global__ void rows_together_kernel(RowSums of, std::uint64_t chunks) {
  const auto& m = of.matrices;
  const auto tasks =
      static_cast<std::uint64_t>(m.rows) * chunks * static_cast<std::uint64_t>(of.batch);
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kWarp);
  for (auto task = first_index() / kWarp; task < tasks; task += index_step() / kWarp) {
    const auto begin = static_cast<std::int64_t>(task % chunks) * kColumnsOfWarp;
    const auto at = static_cast<std::int64_t>(task / chunks);
    const auto matrix = at / m.rows, row = at % m.rows;
    const auto end = min(begin + kColumnsOfWarp, m.columns);
    const auto* const data = static_cast<const T*>(m.data) + matrix * m.stride + row * m.row_step;
    const auto* const weights = of.weights + matrix * of.weights_stride;
    Number sum;
    double size = 0;
#pragma unroll 4
    for (auto j = begin + lane; j < end; j += kWarp)
      add_weighed(data[j * m.column_step], m.conjugate, of.lengths, weights[j], sum, size);
    sum.re = over_warp(sum.re);
    if constexpr (kComplex<T>) sum.im = over_warp(sum.im);
    size = over_warp(size);
    if (lane != 0) continue;
    atomicAdd(&of.sum[at].re, sum.re);
    if constexpr (kComplex<T>) atomicAdd(&of.sum[at].im, sum.im);
    atomicAdd(&of.size[at], size);
  }
}

__global__ void add_up_kernel(std::uint64_t count, std::uint64_t batch, const double* number,
                              double* total) {
  const auto lane = threadIdx.x % kWarp;
  const auto chunks = (count + kThreads - 1) / kThreads;
  const auto tasks = chunks * batch;
  for (auto task = first_index() / kWarp; task < tasks; task += index_step() / kWarp) {
    const auto matrix = task / chunks;
    const auto begin = task % chunks * kThreads;
    double sum = 0;
    for (auto i = begin + lane; i < min(begin + kThreads, count); i += kWarp)
      sum += number[matrix * count + i];
    sum = over_warp(sum);
    if (lane == 0) atomicAdd(&total[matrix], sum);
  }
}

template <class T>
__device__ Number element(const void* data, std::int64_t at) {
  return number(static_cast<const T*>(data)[at]);
}
__device__ Number element(Stored stored, const void* data, std::int64_t at) {
  switch (stored) {
    case Stored::f16: return element<__half>(data, at);
    case Stored::bf16: return element<__nv_bfloat16>(data, at);
    case Stored::f32: return element<float>(data, at);
    case Stored::f64: return element<double>(data, at);
    case Stored::i32: return element<std::int32_t>(data, at);
    case Stored::c64: return element<float2>(data, at);
    case Stored::c128: return element<double2>(data, at);
    default: return {};
  }
}

__device__ Number scalar_of(const DenseCheck::ScalarAt& scalar, Stored stored) {
  // Copied, for the bytes are not aligned.
  alignas(16) unsigned char bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = scalar.value[i];
  return element(stored, scalar.device != nullptr ? scalar.device : bytes, 0);
}

__device__ sums::Judgement judge_row(const DenseCheck& check, double sign_sum, std::int64_t at) {
  const auto factor = [&](int i) {
    return check.factors[i] != nullptr ? static_cast<double>(*check.factors[i]) : 1.0;
  };
  sums::DenseFactors by;
  by.alpha = factor(0) * factor(1) * scalar_of(check.alpha, check.scalar);
  by.of_result = factor(2);
  sums::DenseRow row;
  row.product = check.product[at], row.result = check.result[at];
  row.a_size = check.a_size[at], row.b_size = check.b_size[at / check.m];
  row.result_size = check.result_size[at];
  if (check.before != nullptr) {
    by.beta = scalar_of(check.beta, check.scalar);
    row.before = check.before[at], row.before_size = check.before_size[at];
  }
  if (check.bias.data != nullptr) {
    row.bias = element(check.bias.stored, check.bias.data, at % check.m);
    row.signs = sign_sum;
  }
  return sums::judge(row, by, check.n, check.k, check.rounding);
}

__device__ double sum_of_signs(const DenseCheck& check) {
  if (check.bias.data == nullptr) return 0;
  double sum = 0;
  for (std::int64_t j = 0; j < check.n; ++j) sum += check.signs[j].re;
  return sum;
}

__global__ void judge_kernel(DenseCheck check, DenseVerdict* verdict) {
  __shared__ double sign_sum;
  if (threadIdx.x == 0) sign_sum = sum_of_signs(check);
  __syncthreads();
  const auto rows = static_cast<std::uint64_t>(check.m * check.batch);
  for (auto at = first_index(); at < rows; at += index_step()) {
    if (judge_row(check, sign_sum, static_cast<std::int64_t>(at)).wrong)
      atomicMin(&verdict->first, static_cast<unsigned long long>(at));
  }
}
__global__ void tell_kernel(DenseCheck check, DenseVerdict* verdict) {
  if (verdict->first != DenseVerdict::kNothingWrong)
    verdict->judged =
        judge_row(check, sum_of_signs(check), static_cast<std::int64_t>(verdict->first));
}

template <class T>
__global__ void spoil_kernel(T* element) {
  spoil_element(*element);
}

}  // namespace

cudaError_t preload_checks() {
  auto status = load_all(&signs_kernel, &add_up_kernel, &judge_kernel, &tell_kernel);
  for (auto i = 0; i <= static_cast<int>(Stored::c128) && status == cudaSuccess; ++i) {
    status = with_stored(static_cast<Stored>(i), [](auto zero) {
      using T = decltype(zero);
      return load_all(&rows_apart_kernel<T>, &rows_together_kernel<T>);
    });
  }
  return status;
}

cudaError_t write_signs(const Launch& launch, std::int64_t n, Number* signs) {
  return queue(launch, static_cast<std::uint64_t>(n), signs_kernel, n, signs);
}

cudaError_t add_rows(const Launch& launch, const RowSums& of) {
  const auto& m = of.matrices;
  if (m.rows == 0 || m.columns == 0 || of.batch == 0) return cudaSuccess;
  const auto rows = static_cast<std::uint64_t>(m.rows);
  const auto batch = static_cast<std::uint64_t>(of.batch);
  const auto parts = [&](std::int64_t size) {
    return static_cast<std::uint64_t>((m.columns + size - 1) / size);
  };
  return with_stored(m.stored, [&](auto zero) {
    using T = decltype(zero);
    if (m.row_step <= m.column_step) {
      const auto tiles = (rows + kThreads - 1) / kThreads, chunks = parts(kColumnsOfThread);
      return queue(launch, tiles * chunks * batch * kThreads, rows_apart_kernel<T>, of, tiles,
                   chunks);
    }
    const auto chunks = parts(kColumnsOfWarp);
    return queue(launch, rows * chunks * batch * kWarp, rows_together_kernel<T>, of, chunks);
  });
}

cudaError_t add_up(const Launch& launch, std::int64_t count, std::int64_t batch,
                   const double* number, double* total) {
  if (count == 0 || batch == 0) return cudaSuccess;
  const auto chunks = (static_cast<std::uint64_t>(count) + kThreads - 1) / kThreads;
  return queue(launch, chunks * static_cast<std::uint64_t>(batch) * kWarp, add_up_kernel, count,
               batch, number, total);
}

cudaError_t judge(const Launch& launch, const DenseCheck& check, DenseVerdict* verdict) {
  const auto status = queue(launch, static_cast<std::uint64_t>(check.m * check.batch), judge_kernel,
                            check, verdict);
  if (status != cudaSuccess) return status;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = launch.stream;
  return cudaLaunchKernelEx(&config, tell_kernel, check, verdict);
}

cudaError_t spoil(const Launch& launch, Stored stored, void* data, std::int64_t index) {
  return with_stored(stored, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) == 1) {
      return cudaErrorInvalidValue;  // results of 8 bits are not looked at
    } else {
      cudaLaunchConfig_t config{};
      config.gridDim = config.blockDim = dim3(1);
      config.stream = launch.stream;
      return cudaLaunchKernelEx(&config, spoil_kernel<T>, static_cast<T*>(data) + index);
    }
  });
}

}  // namespace troupe::host::cuda::kernels
