#include "lib/dnn/lrn/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/dnn/common/wide_cpu.hpp"

/// Computed in f64, and rounded once.
namespace troupe::dnn {
namespace {

/// The channels of one pixel, `inner` apart in memory.
template <class Op>
class Channels {
 public:
  explicit Channels(const Op& op)
      : op_(op),
        before_((op.rule.window - 1) / 2),
        after_(op.rule.window - 1 - before_),
        sums_(static_cast<std::size_t>(op.extent)) {}

  /// Calls visit(place of the first channel) for each pixel.
  template <class Visit>
  void for_each_pixel(const Visit& visit) const {
    for (std::int64_t i = 0; i < op_.outer; ++i) {
      for (std::int64_t j = 0; j < op_.inner; ++j) visit(i * op_.extent * op_.inner + j);
    }
  }
  /// s of all channels of a pixel; good until the next call.
  template <class T>
  const std::vector<double>& sums(const T* x) {
    for (std::int64_t c = 0; c < op_.extent; ++c) {
      double squares = 0;
      const auto last = std::min(c + after_, op_.extent - 1);
      for (auto d = std::max<std::int64_t>(c - before_, 0); d <= last; ++d)
        squares += wide(x[d * op_.inner]) * wide(x[d * op_.inner]);
      sums_[static_cast<std::size_t>(c)] = op_.rule.k + op_.rule.alpha / op_.rule.window * squares;
    }
    return sums_;
  }
  /// The channels whose windows have c, from the first to the last.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> with(std::int64_t c) const {
    return {std::max<std::int64_t>(c - after_, 0), std::min(c + before_, op_.extent - 1)};
  }

 private:
  const Op& op_;
  std::int64_t before_, after_;
  std::vector<double> sums_;
};

}  // namespace

template <class T>
void lrn(const Lrn& op, const T* x, T* y) {
  Channels channels(op);
  channels.for_each_pixel([&](std::int64_t first) {
    const auto& sums = channels.sums(x + first);
    for (std::int64_t c = 0; c < op.extent; ++c) {
      const auto at = first + c * op.inner;
      y[at] =
          narrow_to<T>(wide(x[at]) * std::pow(sums[static_cast<std::size_t>(c)], -op.rule.beta));
    }
  });
}

template <class T>
void lrn_backward(const LrnBackward& op, const T* x, const T* y, const T* dy, T* dx) {
  Channels channels(op);
  const double factor = 2 * op.rule.alpha * op.rule.beta / op.rule.window;
  channels.for_each_pixel([&](std::int64_t first) {
    const auto& sums = channels.sums(x + first);
    for (std::int64_t c = 0; c < op.extent; ++c) {
      const auto at = first + c * op.inner;
      double others = 0;
      const auto [least, most] = channels.with(c);
      for (auto d = least; d <= most; ++d) {
        const auto there = first + d * op.inner;
        others += wide(dy[there]) * wide(y[there]) / sums[static_cast<std::size_t>(d)];
      }
      dx[at] =
          narrow_to<T>(wide(dy[at]) * std::pow(sums[static_cast<std::size_t>(c)], -op.rule.beta) -
                       factor * wide(x[at]) * others);
    }
  });
}

template void lrn(const Lrn&, const Half*, Half*);
template void lrn(const Lrn&, const float*, float*);
template void lrn(const Lrn&, const double*, double*);
template void lrn_backward(const LrnBackward&, const Half*, const Half*, const Half*, Half*);
template void lrn_backward(const LrnBackward&, const float*, const float*, const float*, float*);
template void lrn_backward(const LrnBackward&, const double*, const double*, const double*,
                           double*);

}  // namespace troupe::dnn
