#include <cstdlib>

#include <troupe/lib/vector.hpp>

#include "device_host/engine/cpu/library.hpp"

// A library of operations that says it stands on whatever version TEST_MATH_VERSION names.

namespace troupe::host::cpu {
namespace {

class Vector final : public LibraryHalfOf<Vector, List<vectors::Multiply>> {
 public:
  explicit Vector(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    const char* version = std::getenv("TEST_MATH_VERSION");
    static const int symbol = 0;
    return {{"TestMath", version != nullptr ? version : "unknown", &symbol}};
  }
  Result<void> run(const vectors::Multiply& op, const Call& call) {
    return with_real(op.dtype, [&](auto zero) {
      using T = decltype(zero);
      return services_.submit(call, [n = op.n, x = call.at<const T>(op.x),
                                     y = call.at<const T>(op.y), z = call.at<T>(op.z)] {
        for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] * y[i];
      });
    });
  }

 private:
  Services& services_;
};

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Vector, cpu)
