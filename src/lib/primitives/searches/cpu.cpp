#include <algorithm>

#include "lib/primitives/cpu.hpp"
#include "lib/primitives/sorts/key_order_cpu.hpp"

namespace troupe::host::cpu {

Result<void> run(const primitives::Search& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, sorted = call.at<const T>(op.sorted), values = call.at<const T>(op.values),
               positions = call.at<std::int64_t>(op.positions)] {
          const Before<T> before{primitives::Order::ascending};
          const auto* const end = sorted + op.n;
          for (std::int64_t i = 0; i < op.count; ++i) {
            const auto* const found = op.bound == primitives::Bound::lower
                                          ? std::lower_bound(sorted, end, values[i], before)
                                          : std::upper_bound(sorted, end, values[i], before);
            positions[i] = found - sorted;
          }
        });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
