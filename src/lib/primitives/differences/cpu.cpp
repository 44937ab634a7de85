#include "lib/primitives/cpu.hpp"

namespace troupe::host::cpu {

using primitives::Neighbour;

/// In the order in which nothing is overwritten before it is read, if y is x.
Result<void> run(const primitives::AdjacentDifference& op, const Call& call, Primitives& library) {
  return with_countable(op.dtype, [&]<class T>(T) {
    using S = Summand<T>;
    return library.services.submit(call, [n = op.n, neighbour = op.neighbour,
                                          x = call.at<const S>(op.x), y = call.at<S>(op.y)] {
      if (n == 0) return;
      if (neighbour == Neighbour::left) {
        for (std::int64_t i = n - 1; i > 0; --i) y[i] = x[i] - x[i - 1];
        y[0] = x[0];
      } else {
        for (std::int64_t i = 0; i + 1 < n; ++i) y[i] = x[i] - x[i + 1];
        y[n - 1] = x[n - 1];
      }
    });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
