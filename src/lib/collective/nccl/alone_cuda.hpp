#pragma once

#include <troupe/lib/collective.hpp>

#include "device_host/engine/cuda/library.hpp"

namespace troupe::host::cuda {

/// A reduction over one rank: AllReduce, Reduce or ReduceScatter.
struct AloneReduction {
  DType dtype;
  ReduceOp op{};
  std::uint64_t count = 0;
  Operand source, destination;
  const Scalar* scalar = nullptr;  ///< for premul_sum

  template <class Op>
  static AloneReduction of(const Op& op) {
    return {op.dtype, op.op, op.count, op.source, op.destination, &op.scalar};
  }
};

/// Queues a copy, or with premul_sum a product, in place of NCCL, which refuses some reductions
/// over one rank: averages of integers (2.28), products of f8 (2.28, 2.29).
Result<void> reduce_alone(const Services& services, const AloneReduction& reduction,
                          const Call& call);

}  // namespace troupe::host::cuda
