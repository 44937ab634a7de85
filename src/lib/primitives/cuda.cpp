#include <string>

#include "lib/primitives/cuda.hpp"

namespace troupe::host::cuda {

Dependencies Primitives::stands_on() const {
  const int version = kernels::cub_version();
  return {{"CUB",
           std::to_string(version / 100'000) + "." + std::to_string(version / 100 % 1000) + "." +
               std::to_string(version % 100),
           &kernels::cub_version}};
}

Result<void> Primitives::open(Queue queue) {
  if (queue.detour) return {};
  const auto stream = services.stream(queue);
  void* memory = nullptr;
  TROUPE_CUDA_TRY(cudaMallocAsync(&memory, kWarmUpBytes, stream));
  const auto warmed_up = warm_up(queue, memory);
  TROUPE_CUDA_TRY(cudaFreeAsync(memory, stream));
  return warmed_up;
}

/// On zeros. CUB has other kernels for what fits one block than for what does not.
Result<void> Primitives::warm_up(Queue queue, void* memory) {
  constexpr std::int64_t kOneBlock = 64, kManyBlocks = 16'384;
  TROUPE_CUDA_TRY(cudaMemsetAsync(memory, 0, kWarmUpBytes, services.stream(queue)));
  WarmUp warming(services, queue);
  const auto whole = warming.add(2, memory, kWarmUpBytes);
  std::array<Operand, 4> ranges;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = whole;
    ranges[i].bytes = kWarmUpBytes / ranges.size();
    ranges[i].offset = i * ranges[i].bytes;
  }
  for (const auto dtype :
       {DType::i32, DType::u32, DType::i64, DType::u64, DType::f32, DType::f64, DType::f16}) {
    for (const auto n : {kOneBlock, kManyBlocks})
      TROUPE_CUDA_PROPAGATE(warm_up(dtype, n, ranges, warming.call()));
  }
  for (const auto dtype : {DType::u32, DType::u64}) {
    const auto n = kManyBlocks;
    TROUPE_CUDA_PROPAGATE(
        carry_out(primitives::AdjacentDifference{dtype, primitives::Neighbour::left, 0, n,
                                                 ranges[0], ranges[2]},
                  warming.call()));
  }
  TROUPE_CUDA_PROPAGATE(warm_up_histograms(DType::u8, kManyBlocks, ranges, warming.call(), *this));
  return warm_up_runs(kManyBlocks, ranges, warming.call(), *this);
}

Result<void> Primitives::warm_up(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                 const Call& call) {
  const bool is_narrow = primitives::kNarrowFloats.has(dtype);
  // One type of each size stands for selections, one of integers and one of numbers for sorts.
  if (dtype != DType::i32 && dtype != DType::i64)
    TROUPE_CUDA_PROPAGATE(warm_up_sorts(dtype, n, ranges, call, *this));
  if (dtype == DType::u32 || dtype == DType::u64 || is_narrow)
    TROUPE_CUDA_PROPAGATE(warm_up_selections(dtype, n, ranges, call, *this));
  TROUPE_CUDA_PROPAGATE(warm_up_reductions(dtype, n, ranges, call, *this));
  TROUPE_CUDA_PROPAGATE(warm_up_transforms(dtype, n, ranges, call, *this));
  if (is_narrow) return {};
  TROUPE_CUDA_PROPAGATE(warm_up_scans(dtype, n, ranges, call, *this));
  return warm_up_histograms(dtype, n, ranges, call, *this);
}

}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Primitives, cuda)
