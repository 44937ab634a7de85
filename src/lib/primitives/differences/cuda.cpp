#include "lib/primitives/cuda.hpp"
#include "lib/primitives/differences/kernels.cuh"

namespace troupe::host::cuda {

Result<void> run(const primitives::AdjacentDifference& op, const Call& call, Primitives& library) {
  if (op.n == 0) return {};
  const auto stream = library.services.stream(call.queue());
  const bool floating = !primitives::kIntegers.has(op.dtype);
  const bool right = op.neighbour == primitives::Neighbour::right;
  return with_wide_word(op.dtype, [&]<class W>(W) {
    return library.queue_algorithm(
        call.queue(), "cub::DeviceAdjacentDifference", [&](kernels::Temporary& temporary) {
          return kernels::adjacent_difference(temporary, stream, op.n, call.at<const W>(op.x),
                                              floating, right, call.at<W>(op.y));
        });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
