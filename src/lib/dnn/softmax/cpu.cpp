#include "lib/dnn/softmax/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/dnn/common/wide_cpu.hpp"

/// Computed in f64, and rounded once.
namespace troupe::dnn {
namespace {

/// Calls visit(first) with the place of the first of the elements that belong together, for all of
/// those; the next ones are `inner` apart.
template <class Op, class Visit>
void for_each_line(const Op& op, const Visit& visit) {
  for (std::int64_t i = 0; i < op.outer; ++i) {
    for (std::int64_t k = 0; k < op.inner; ++k) visit(i * op.extent * op.inner + k);
  }
}

}  // namespace

template <class T>
void softmax(const Softmax& op, const T* x, T* y) {
  for_each_line(op, [&](std::int64_t first) {
    const auto last = first + op.extent * op.inner;
    double largest = -std::numeric_limits<double>::infinity();
    for (auto i = first; i < last; i += op.inner) largest = std::max(largest, wide(x[i]));
    double sum = 0;
    for (auto i = first; i < last; i += op.inner) sum += std::exp(wide(x[i]) - largest);
    const double logarithm = std::log(sum);
    for (auto i = first; i < last; i += op.inner) {
      const double shifted = wide(x[i]) - largest;
      y[i] = narrow_to<T>(op.kind == SoftmaxKind::softmax ? std::exp(shifted) / sum
                                                          : shifted - logarithm);
    }
  });
}

template <class T>
void softmax_backward(const SoftmaxBackward& op, const T* y, const T* dy, T* dx) {
  const bool plain = op.kind == SoftmaxKind::softmax;
  for_each_line(op, [&](std::int64_t first) {
    const auto last = first + op.extent * op.inner;
    double sum = 0;
    for (auto i = first; i < last; i += op.inner) sum += wide(dy[i]) * (plain ? wide(y[i]) : 1);
    for (auto i = first; i < last; i += op.inner) {
      dx[i] = narrow_to<T>(plain ? wide(y[i]) * (wide(dy[i]) - sum)
                                 : wide(dy[i]) - std::exp(wide(y[i])) * sum);
    }
  });
}

template void softmax(const Softmax&, const Half*, Half*);
template void softmax(const Softmax&, const BFloat16*, BFloat16*);
template void softmax(const Softmax&, const float*, float*);
template void softmax(const Softmax&, const double*, double*);
template void softmax_backward(const SoftmaxBackward&, const Half*, const Half*, Half*);
template void softmax_backward(const SoftmaxBackward&, const BFloat16*, const BFloat16*, BFloat16*);
template void softmax_backward(const SoftmaxBackward&, const float*, const float*, float*);
template void softmax_backward(const SoftmaxBackward&, const double*, const double*, double*);

}  // namespace troupe::dnn
