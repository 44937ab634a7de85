#include "lib/primitives/cuda.hpp"
#include "lib/primitives/searches/kernels.cuh"

namespace troupe::host::cuda {

Result<void> run(const primitives::Search& op, const Call& call, Primitives& library) {
  return with_word(op.dtype, [&]<class U>(U) -> Result<void> {
    TROUPE_CUDA_TRY(
        kernels::search(library.services.launch(call.queue()), op.n, call.at<const U>(op.sorted),
                        meaning(op.dtype), op.bound == primitives::Bound::upper, op.count,
                        call.at<const U>(op.values), call.at<std::int64_t>(op.positions)));
    return {};
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
