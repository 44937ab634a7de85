#include <vector>

#include <troupe/plugin/cpu.hpp>

#include "tridiagonal.hpp"

// The half of the library that device hosts with the cpu engine load. Loops over the systems, on
// the thread of the queue.

namespace tridiagonal {
namespace {

namespace host = troupe::host;
using troupe::Result;

/// The first row with a zero pivot, from 1 on; 0: there is none. `ratio`: room for n elements.
template <class T>
std::int64_t solve_one(std::int64_t n, const T* lower, const T* diagonal, const T* upper,
                       const T* b, T* x, T* ratio) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T pivot = i == 0 ? diagonal[0] : diagonal[i] - lower[i] * ratio[i - 1];
    if (pivot == T(0)) return i + 1;
    ratio[i] = upper[i] / pivot;
    x[i] = (i == 0 ? b[0] : b[i] - lower[i] * x[i - 1]) / pivot;
  }
  for (std::int64_t i = n - 2; i >= 0; --i) x[i] -= ratio[i] * x[i + 1];
  return 0;
}

class Half final : public host::LibraryHalfOf<Half, Operations> {
 public:
  explicit Half(host::cpu::Services& services) : services_(services) {}

  Result<void> run(const Solve& op, const host::Call& call) {
    return host::cpu::with_real(op.dtype, [&]<class T>(T) {
      return services_.submit(call, [n = op.n, batch = op.batch, lower = call.at<const T>(op.lower),
                                     diagonal = call.at<const T>(op.diagonal),
                                     upper = call.at<const T>(op.upper), b = call.at<const T>(op.b),
                                     x = call.at<T>(op.x), info = call.at<std::int32_t>(op.info)] {
        std::vector<T> ratio(static_cast<std::size_t>(n));
        *info = 0;
        for (std::int64_t at = 0; at < n * batch; at += n) {
          const auto row =
              solve_one(n, lower + at, diagonal + at, upper + at, b + at, x + at, ratio.data());
          if (row != 0 && *info == 0) *info = static_cast<std::int32_t>(at + row);
        }
      });
    });
  }

  Result<void> run(const Residual& op, const host::Call& call) {
    return host::cpu::with_real(op.dtype, [&]<class T>(T) {
      return services_.submit(
          call, [n = op.n, rows = op.n * op.batch, lower = call.at<const T>(op.lower),
                 diagonal = call.at<const T>(op.diagonal), upper = call.at<const T>(op.upper),
                 x = call.at<const T>(op.x), b = call.at<const T>(op.b), r = call.at<T>(op.r)] {
            for (std::int64_t i = 0; i < rows; ++i) {
              T sum = diagonal[i] * x[i];
              if (i % n != 0) sum += lower[i] * x[i - 1];
              if (i % n != n - 1) sum += upper[i] * x[i + 1];
              r[i] = b[i] - sum;
            }
          });
    });
  }

 private:
  host::cpu::Services& services_;
};

}  // namespace
}  // namespace tridiagonal

TROUPE_LIBRARY_HALF(tridiagonal::Half)
