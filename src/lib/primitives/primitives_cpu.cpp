#include <numeric>

#include "lib/primitives/primitives_cpu.hpp"

namespace troupe::host::cpu {

using primitives::Scanning;

Result<void> Primitives::run(const primitives::Scan& op, const Call& call) {
  return with_integer(op.dtype, [&]<class T>(T) {
    using U = Summand<T>;
    return services_.submit(
        call, [n = op.n, scanning = op.scanning, x = call.at<const U>(op.x), y = call.at<U>(op.y)] {
          if (scanning == Scanning::inclusive) {
            std::inclusive_scan(x, x + n, y);
          } else {
            std::exclusive_scan(x, x + n, y, U{0});
          }
        });
  });
}

}  // namespace troupe::host::cpu

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cpu::Services& services) {
  return new troupe::host::cpu::Primitives(services);
}
