#include <troupe/lib/rng.hpp>

#include "device_host/engine/cpu/library.hpp"
#include "lib/rng/random.hpp"

namespace troupe::host::cpu {
namespace {

template <class Op>
RandomRange range_of(const Op& op) {
  return {op.seed, op.subsequence * rng::kSubsequenceStride + op.offset, op.n};
}

class Rng final : public LibraryHalfOf<Rng, rng::Uniform, rng::Normal> {
 public:
  explicit Rng(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {{"cuRAND", random_library(), random_symbol()}};
  }
  Result<void> run(const rng::Uniform& op, const Call& call);
  Result<void> run(const rng::Normal& op, const Call& call);

 private:
  Services& services_;
  Random random_;  ///< of the thread that executes the work
};

Result<void> Rng::run(const rng::Uniform& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    return services_.submit(
        call, [this, range = range_of(op), destination = call.at<decltype(zero)>(op.destination)] {
          random_.uniform(range, destination);
        });
  });
}

Result<void> Rng::run(const rng::Normal& op, const Call& call) {
  if (op.n % 2 != 0 || op.offset % 2 != 0) {
    return Error{Errc::invalid, 0, "normal numbers come in pairs: length and offset must be even"};
  }
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(
        call, [this, range = range_of(op), mean = static_cast<T>(op.mean),
               deviation = static_cast<T>(op.deviation), destination = call.at<T>(op.destination)] {
          random_.normal(range, mean, deviation, destination);
        });
  });
}

}  // namespace
}  // namespace troupe::host::cpu

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cpu::Services& services) {
  return new troupe::host::cpu::Rng(services);
}
