#include "lib/primitives/primitives_cuda.hpp"
#include "lib/primitives/primitives_differences.cuh"

namespace troupe::host::cuda {

Result<void> Primitives::run(const primitives::AdjacentDifference& op, const Call& call) {
  if (op.n == 0) return {};
  const auto stream = services_.stream(call.queue());
  const bool floating = !primitives::kIntegers.has(op.dtype);
  const bool right = op.neighbour == primitives::Neighbour::right;
  return with_wide_word(op.dtype, [&]<class W>(W) {
    return queue_algorithm(
        call.queue(), "cub::DeviceAdjacentDifference", [&](kernels::Temporary& temporary) {
          return kernels::adjacent_difference(temporary, stream, op.n, call.at<const W>(op.x),
                                              floating, right, call.at<W>(op.y));
        });
  });
}

}  // namespace troupe::host::cuda
