#include <type_traits>

#include "lib/primitives/cuda.hpp"

namespace troupe::host::cuda {

using primitives::ReduceOp;

Result<void> give_count(const Operand& cell, const Call& call, Primitives& library) {
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(cell), library.state(call.queue()).count(),
                                  sizeof(std::int64_t), cudaMemcpyDefault,
                                  library.services.stream(call.queue())));
  return {};
}

Result<void> run(const primitives::SelectNonzero& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  auto* const indices = call.at<std::int64_t>(op.indices);
  TROUPE_CUDA_PROPAGATE(with_word(op.dtype, [&]<class U>(U) {
    return library.queue_algorithm(
        call.queue(), "cub::DeviceSelect", [&](kernels::Temporary& temporary) {
          return kernels::select_nonzero(temporary, stream, op.n, call.at<const U>(op.x),
                                         meaning(op.dtype), op.capacity, indices, own.count());
        });
  }));
  TROUPE_CUDA_TRY(
      kernels::fill_tail(library.services.launch(call.queue()), own.count(), op.capacity, indices));
  return give_count(op.count, call, library);
}

Result<void> run(const primitives::SelectFlagged& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  const auto* const flags = call.at<const std::uint8_t>(op.flags);
  TROUPE_CUDA_PROPAGATE(with_word(op.dtype, [&]<class T>(T) {
    return library.queue_algorithm(
        call.queue(), "cub::DeviceSelect", [&](kernels::Temporary& temporary) {
          return kernels::select_flagged(temporary, stream, op.n, call.at<const T>(op.x), flags,
                                         op.capacity, call.at<T>(op.selected), own.count());
        });
  }));
  return give_count(op.count, call, library);
}

Result<void> run(const primitives::PartitionFlagged& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  const auto* const flags = call.at<const std::uint8_t>(op.flags);
  TROUPE_CUDA_PROPAGATE(with_word(op.dtype, [&]<class T>(T) {
    return library.queue_algorithm(
        call.queue(), "cub::DevicePartition", [&](kernels::Temporary& temporary) {
          return kernels::partition_flagged(temporary, stream, op.n, call.at<const T>(op.x), flags,
                                            call.at<T>(op.y), own.count());
        });
  }));
  return give_count(op.count, call, library);
}

Result<void> run(const primitives::Unique& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  TROUPE_CUDA_PROPAGATE(with_word(op.dtype, [&]<class U>(U) {
    return library.queue_algorithm(
        call.queue(), "cub::DeviceSelect", [&](kernels::Temporary& temporary) {
          return kernels::unique(temporary, stream, op.n, call.at<const U>(op.x), meaning(op.dtype),
                                 op.capacity, call.at<U>(op.selected), own.count());
        });
  }));
  return give_count(op.count, call, library);
}

Result<void> run(const primitives::ReduceByKey& op, const Call& call, Primitives& library) {
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  const auto with_key = [&]<class Keys>(Keys) {
    return with_integer(op.value_dtype, [&]<class V>(V) {
      using Values = Summand<V>;
      const Combine<Values> combine_two{op.reduction, std::is_signed_v<V>};
      return library.queue_algorithm(
          call.queue(), "cub::DeviceReduce::ReduceByKey", [&](kernels::Temporary& temporary) {
            const kernels::Runs<Keys, Values> runs{op.capacity, call.at<Keys>(op.unique_keys),
                                                   call.at<Values>(op.results), own.count()};
            return kernels::reduce_runs(temporary, stream, op.n, call.at<const Keys>(op.keys),
                                        meaning(op.dtype), call.at<const Values>(op.values),
                                        combine_two, runs);
          });
    });
  };
  TROUPE_CUDA_PROPAGATE(size_of(op.dtype) == 4 ? with_key(std::uint32_t{})
                                               : with_key(std::uint64_t{}));
  return give_count(op.count, call, library);
}

Result<void> run(const primitives::RunLengthEncode& op, const Call& call, Primitives& library) {
  constexpr const std::uint64_t* kNoValues = nullptr;
  const auto& own = library.state(call.queue());
  const auto stream = library.services.stream(call.queue());
  TROUPE_CUDA_PROPAGATE(with_word(op.dtype, [&]<class U>(U) {
    return library.queue_algorithm(
        call.queue(), "cub::DeviceReduce::ReduceByKey", [&](kernels::Temporary& temporary) {
          const kernels::Runs<U, std::uint64_t> runs{
              op.capacity, call.at<U>(op.values), call.at<std::uint64_t>(op.lengths), own.count()};
          return kernels::reduce_runs(temporary, stream, op.n, call.at<const U>(op.x),
                                      meaning(op.dtype), kNoValues,
                                      Combine<std::uint64_t>{ReduceOp::sum, false}, runs);
        });
  }));
  return give_count(op.count, call, library);
}

Result<void> warm_up_selections(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library) {
  const auto& [a, b, c, d] = ranges;
  const auto half = n / 2;  // ranges of keys and of results share one
  Operand more = c;
  more.offset += c.bytes / 2;
  more.bytes -= c.bytes / 2;
  TROUPE_CUDA_PROPAGATE(library.carry_out(
      primitives::SelectNonzero{dtype, OnFailure::report, 0, n, n, a, c, d}, call));
  TROUPE_CUDA_PROPAGATE(library.carry_out(
      primitives::SelectFlagged{dtype, OnFailure::report, 0, n, n, a, b, c, d}, call));
  TROUPE_CUDA_PROPAGATE(
      library.carry_out(primitives::PartitionFlagged{dtype, n, a, b, c, d}, call));
  TROUPE_CUDA_PROPAGATE(
      library.carry_out(primitives::Unique{dtype, OnFailure::report, 0, n, n, a, c, d}, call));
  if (primitives::kNarrowFloats.has(dtype)) {
    return library.carry_out(
        primitives::RunLengthEncode{dtype, OnFailure::report, 0, n, half / 2, a, c, more, d}, call);
  }
  for (const auto value_dtype : {DType::u32, DType::u64}) {
    TROUPE_CUDA_PROPAGATE(
        library.carry_out(primitives::ReduceByKey{dtype, value_dtype, OnFailure::report,
                                                  ReduceOp::sum, n, half, a, b, c, more, d},
                          call));
  }
  return {};
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
