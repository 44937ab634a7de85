#include <concepts>
#include <type_traits>

#include "lib/primitives/common/combine.hpp"
#include "lib/primitives/cpu.hpp"

namespace troupe::host::cpu {
namespace {

using primitives::Scanning;

/// What a scan of T adds up in.
template <class T>
using ScanSum = std::conditional_t<std::floating_point<T>, double, Summand<T>>;

/// Scans x[0, n), and begins anew wherever begins(i). y may be x.
template <class T, class Begins>
void scan_range(std::int64_t n, const T* x, T* y, Scanning scanning,
                const Combine<ScanSum<T>>& combine, T initial, Begins begins) {
  auto so_far = static_cast<ScanSum<T>>(initial);
  for (std::int64_t i = 0; i < n; ++i) {
    if (begins(i)) so_far = static_cast<ScanSum<T>>(initial);
    const auto with_it = combine(so_far, static_cast<ScanSum<T>>(x[i]));
    y[i] = static_cast<T>(scanning == Scanning::inclusive ? with_it : so_far);
    so_far = with_it;
  }
}

}  // namespace

Result<void> run(const primitives::Scan& op, const Call& call, Primitives& library) {
  return with_countable(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [n = op.n, scanning = op.scanning, x = call.at<const T>(op.x), y = call.at<T>(op.y),
               combine = Combine<ScanSum<T>>{op.reduction, std::is_signed_v<T>},
               initial = ScalarValue<T>(op.initial, call)] {
          scan_range(n, x, y, scanning, combine, initial.get(), [](std::int64_t) { return false; });
        });
  });
}

Result<void> run(const primitives::ScanByKey& op, const Call& call, Primitives& library) {
  return with_countable(op.dtype, [&]<class K>(K) {
    return with_countable(op.value_dtype, [&]<class V>(V) {
      return library.services.submit(
          call, [n = op.n, scanning = op.scanning, keys = call.at<const K>(op.keys),
                 values = call.at<const V>(op.values), results = call.at<V>(op.results),
                 combine = Combine<ScanSum<V>>{op.reduction, std::is_signed_v<V>},
                 initial = ScalarValue<V>(op.initial, call)] {
            scan_range(n, values, results, scanning, combine, initial.get(),
                       [=](std::int64_t i) { return i > 0 && !(keys[i - 1] == keys[i]); });
          });
    });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
