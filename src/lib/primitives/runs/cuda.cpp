#include "lib/primitives/cuda.hpp"
#include "lib/primitives/runs/kernels.cuh"

namespace troupe::host::cuda {

Result<void> run(const primitives::NonTrivialRuns& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  const auto keys = keys_at(op.x, op.dtype, call);
  auto* const offsets = call.at<std::int64_t>(op.offsets);
  auto* const lengths = call.at<std::int64_t>(op.lengths);
  TROUPE_CUDA_PROPAGATE(library.queue_algorithm(
      call.queue(), "cub::DeviceSelect", [&](kernels::Temporary& temporary) {
        return kernels::find_long_runs(temporary, stream, op.n, keys, op.capacity, offsets,
                                       own.count());
      }));
  TROUPE_CUDA_PROPAGATE(library.queue_algorithm(
      call.queue(), "cub::DeviceSelect", [&](kernels::Temporary& temporary) {
        return kernels::measure_long_runs(temporary, stream, op.n, keys, op.capacity, offsets,
                                          lengths, own.count());
      }));
  return give_count(op.count, call, library);
}

Result<void> run(const primitives::UniqueByKey& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  const auto keys = keys_at(op.keys, op.dtype, call);
  const kernels::UniqueKeys unique{call.at<const std::byte>(op.values), op.value_bytes, op.capacity,
                                   call.at<std::byte>(op.unique_keys),
                                   call.at<std::byte>(op.first_values)};
  TROUPE_CUDA_PROPAGATE(library.queue_algorithm(
      call.queue(), "cub::DeviceSelect", [&](kernels::Temporary& temporary) {
        return kernels::unique_by_key(temporary, stream, op.n, keys, unique, own.count());
      }));
  return give_count(op.count, call, library);
}

Result<void> run(const primitives::PartitionThreeWay& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  const kernels::ThreeWays ways{
      call.at<const std::byte>(op.x),
      size_of(op.dtype),
      call.at<const std::uint8_t>(op.first_flags),
      call.at<const std::uint8_t>(op.second_flags),
      {call.at<std::byte>(op.first), call.at<std::byte>(op.second), call.at<std::byte>(op.rest)},
      {op.first_capacity, op.second_capacity, op.rest_capacity}};
  TROUPE_CUDA_PROPAGATE(library.queue_algorithm(
      call.queue(), "cub::DevicePartition", [&](kernels::Temporary& temporary) {
        return kernels::partition_three_way(temporary, stream, op.n, ways, own.count());
      }));
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.counts), own.count(),
                                  sizeof(primitives::ThreeWayCounts), cudaMemcpyDefault, stream));
  return {};
}

/// One set of kernels serves all types.
Result<void> warm_up_runs(std::int64_t n, const std::array<Operand, 4>& ranges, const Call& call,
                          Primitives& library) {
  const auto& [a, b, c, d] = ranges;
  TROUPE_CUDA_PROPAGATE(library.carry_out(
      primitives::NonTrivialRuns{DType::u32, OnFailure::report, 0, n, n, a, b, c, d}, call));
  return library.carry_out(primitives::PartitionThreeWay{DType::u32, OnFailure::report, 0, n, 0, 0,
                                                         0, a, b, b, c, c, c, d},
                           call);
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
