#include "device_host/engine/cuda/launch.cuh"
#include "lib/dnn/own/elements.cuh"
#include "lib/dnn/own/numbers_kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

using dnn::ReduceOp;

__device__ double number_at(const Elements& elements, std::uint64_t i) {
  return static_cast<double>(load_number(elements, place(elements, i)).real);
}
__device__ void store_rounded(const Elements& to, std::uint64_t i, double value) {
  store_number(to, place(to, i), of_real(static_cast<float>(value)));
}

// Parameters whose arrays are indexed are __grid_constant__: else each thread copies them to its
// stack.

__global__ void function_kernel(std::uint64_t n, const __grid_constant__ Function function) {
  const auto mode = function.mode;
  for (auto i = first_index(); i < n; i += index_step()) {
    const double a = number_at(function.a, i);
    double y = a;
    if (mode <= dnn::Mode::logical_not) {
      y = dnn::numbers::of_one(mode, a, function.with);
    } else {
      const double b = number_at(function.b, i);
      if (mode < dnn::Mode::select)
        y = dnn::numbers::of_two(mode, a, b, function.with);
      else if (number_at(function.c, i) == 0)
        y = b;
    }
    store_rounded(function.y, i, y);
  }
}

// What is reduced: of_result(j) is what all elements of result j share, at() one of them.

struct OfTensor {
  Reduced x;

  __device__ std::int64_t of_result(std::uint64_t j) const { return place(x.results, j); }
  __device__ double at(std::int64_t first, std::uint64_t e) const {
    return static_cast<double>(load_number(x.results, first + place(x.each, e)).real);
  }
};

struct OfSums {
  const double* sums;
  std::uint64_t results;

  __device__ std::uint64_t of_result(std::uint64_t j) const { return j; }
  __device__ double at(std::uint64_t j, std::uint64_t e) const { return sums[e * results + j]; }
};

struct OfProducts {
  Products products;

  struct Set {
    std::int64_t dy, x;
    double mean, inverse_deviation;
  };
  __device__ Set of_result(std::uint64_t j) const {
    return {place(products.dy.results, j), place(products.x.results, j),
            number_at(products.mean, j), number_at(products.inverse_deviation, j)};
  }
  __device__ double at(const Set& set, std::uint64_t e) const {
    const auto dy = load_number(products.dy.results, set.dy + place(products.dy.each, e)).real;
    const auto x = load_number(products.x.results, set.x + place(products.x.each, e)).real;
    return static_cast<double>(dy) * ((static_cast<double>(x) - set.mean) * set.inverse_deviation);
  }
};

/// Each block takes a part of so many results as its threads are enough for.
template <class Source>
__global__ void reduce_kernel(ReduceOp reduction, Shares shares,
                              const __grid_constant__ Source source,
                              const __grid_constant__ Sums to) {
  __shared__ double sums[kThreads];
  const auto lanes = static_cast<unsigned>(shares.lanes), width = kThreads / lanes;
  const auto lane = shares.results_adjoin ? threadIdx.x / width : threadIdx.x % lanes;
  const auto column = shares.results_adjoin ? threadIdx.x % width : threadIdx.x / lanes;
  const auto results = static_cast<std::uint64_t>(shares.results),
             each = static_cast<std::uint64_t>(shares.each),
             parts = static_cast<std::uint64_t>(shares.parts);
  const auto groups = (results + width - 1) / width, length = (each + parts - 1) / parts;
  // A product that has become 0 is one.
  const auto of_sums = reduction == ReduceOp::prod_without_zeros ? ReduceOp::prod : reduction;
  for (std::uint64_t i = blockIdx.x; i < groups * parts; i += gridDim.x) {
    const auto part = i / groups, j = i % groups * width + column;
    const auto end = each < (part + 1) * length ? each : (part + 1) * length;
    double sum = dnn::numbers::first_of(reduction);
    if (j < results) {
      const auto result = source.of_result(j);
      for (auto e = part * length + lane; e < end; e += lanes)
        sum = dnn::numbers::joined(reduction, sum, source.at(result, e));
    }
    double& own = sums[lane * width + column];
    own = sum;
    __syncthreads();
    for (auto others = lanes / 2; others > 0; others /= 2) {
      if (lane < others)
        own = dnn::numbers::joined(of_sums, own, sums[(lane + others) * width + column]);
      __syncthreads();
    }
    if (lane == 0 && j < results) {
      if (to.sums != nullptr)
        to.sums[part * results + j] = own;
      else
        store_rounded(to.y, j, own);
    }
    __syncthreads();
  }
}

__global__ void norm_gradient_kernel(std::uint64_t n, const __grid_constant__ NormGradient with) {
  for (auto i = first_index(); i < n; i += index_step()) {
    const double inverse = number_at(with.inverse_deviation, i);
    const double normalised = (number_at(with.x, i) - number_at(with.mean, i)) * inverse;
    const auto set = place(with.set, i);
    const double apart =
        number_at(with.dy, i) - (with.sums[set] + normalised * with.products[set]) / with.count;
    store_rounded(with.dx, i, inverse * number_at(with.scale, i) * apart);
  }
}

template <class Source>
cudaError_t queue_reduction(const Launch& launch, ReduceOp reduction, const Shares& shares,
                            const Source& source, const Sums& to) {
  const auto width = kThreads / shares.lanes;
  const auto groups = (shares.results + width - 1) / width;
  return queue(launch, static_cast<std::uint64_t>(groups * shares.parts) * kThreads,
               &reduce_kernel<Source>, reduction, shares, source, to);
}

}  // namespace

cudaError_t preload_own_numbers() {
  return load_all(&function_kernel, &reduce_kernel<OfTensor>, &reduce_kernel<OfSums>,
                  &reduce_kernel<OfProducts>, &norm_gradient_kernel);
}

cudaError_t compute_elements(const Launch& launch, std::uint64_t n, const Function& function) {
  return queue(launch, n, &function_kernel, n, function);
}

cudaError_t reduce_elements(const Launch& launch, ReduceOp reduction, const Shares& shares,
                            const Reduced& x, const Sums& to) {
  return queue_reduction(launch, reduction, shares, OfTensor{x}, to);
}

cudaError_t reduce_sums(const Launch& launch, ReduceOp reduction, const Shares& shares,
                        const double* sums, const Sums& to) {
  return queue_reduction(launch, reduction, shares,
                         OfSums{sums, static_cast<std::uint64_t>(shares.results)}, to);
}

cudaError_t add_products(const Launch& launch, const Shares& shares, const Products& products,
                         const Sums& to) {
  return queue_reduction(launch, ReduceOp::sum, shares, OfProducts{products}, to);
}

cudaError_t norm_gradient(const Launch& launch, std::uint64_t n, const NormGradient& gradient) {
  return queue(launch, n, &norm_gradient_kernel, n, gradient);
}

}  // namespace troupe::host::cuda::kernels
