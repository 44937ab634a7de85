#include <type_traits>

#include "lib/primitives/cuda.hpp"

namespace troupe::host::cuda {
namespace {

using primitives::ReduceOp;
using primitives::Scanning;

/// How elements of T are scanned. Integers are scanned as unsigned ones.
template <class T, class Op>
kernels::Scanned<Summand<T>> scanned(const Op& op, const Call& call) {
  using S = Summand<T>;
  auto neutral_bits = static_cast<S>(neutral<T>(op.reduction));
  if (std::is_floating_point_v<T> && op.reduction == ReduceOp::sum)
    neutral_bits = static_cast<S>(-0.0);  // it does not change -0
  return {{op.reduction, std::is_signed_v<T>},
          op.scanning == Scanning::exclusive,
          scalar<S>(op.initial, call),
          neutral_bits};
}

}  // namespace

Result<void> run(const primitives::Scan& op, const Call& call, Primitives& library) {
  if (op.n == 0) return {};
  const auto stream = library.services.stream(call.queue());
  return with_countable(op.dtype, [&]<class T>(T) {
    using S = Summand<T>;
    const auto* const x = call.at<const S>(op.x);
    auto* const y = call.at<S>(op.y);
    const auto how = scanned<T>(op, call);
    if constexpr (std::is_integral_v<T>) {
      if (op.reduction == ReduceOp::sum && how.initial.is_zero_value()) {
        return library.queue_algorithm(
            call.queue(), "cub::DeviceScan", [&](kernels::Temporary& temporary) {
              return how.exclusive ? kernels::exclusive_sum(temporary, stream, op.n, x, y)
                                   : kernels::inclusive_sum(temporary, stream, op.n, x, y);
            });
      }
    }
    return library.queue_algorithm(call.queue(), "a scan", [&](kernels::Temporary& temporary) {
      return kernels::scan(temporary, stream, op.n, x, how, y);
    });
  });
}

Result<void> run(const primitives::ScanByKey& op, const Call& call, Primitives& library) {
  if (op.n == 0) return {};
  const auto stream = library.services.stream(call.queue());
  const auto keys = keys_at(op.keys, op.dtype, call);
  return with_countable(op.value_dtype, [&]<class T>(T) {
    using S = Summand<T>;
    const auto how = scanned<T>(op, call);
    return library.queue_algorithm(
        call.queue(), "a scan by key", [&](kernels::Temporary& temporary) {
          return kernels::scan_by_key(temporary, stream, op.n, keys, call.at<const S>(op.values),
                                      how, call.at<S>(op.results));
        });
  });
}

Result<void> warm_up_scans(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                           const Call& call, Primitives& library) {
  const auto& [a, b, c, d] = ranges;
  for (const auto scanning : {Scanning::inclusive, Scanning::exclusive}) {
    for (const auto reduction : {ReduceOp::sum, ReduceOp::max})
      TROUPE_CUDA_PROPAGATE(
          library.carry_out(primitives::Scan{dtype, scanning, reduction, n, a, c, {}}, call));
  }
  return library.carry_out(
      primitives::ScanByKey{DType::u32, dtype, Scanning::inclusive, ReduceOp::sum, n, a, b, c, {}},
      call);
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
