#include "lib/dnn/ctc/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "common/core/extremes.hpp"

/// Forward and backward variables of the paper, as logarithms in f64.
namespace troupe::dnn {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

/// log(exp(a) + exp(b))
double log_sum(double a, double b) {
  const auto most = larger(a, b);
  return most == kNone ? kNone : most + std::log1p(std::exp(smaller(a, b) - most));
}

/// One sequence and its label.
class Sequence {
 public:
  /// `first`: its first step in x. The steps are batch * classes apart.
  Sequence(const CtcLoss& op, const float* first, std::int64_t steps,
           std::span<const std::int32_t> label)
      : classes_(static_cast<std::size_t>(op.classes)),
        steps_(static_cast<std::size_t>(steps)),
        stride_(classes_ * static_cast<std::size_t>(op.batch)),
        logarithms_(steps_ * classes_) {
    places_.assign(2 * label.size() + 1, 0);  // blanks between all classes, and around them
    for (std::size_t i = 0; i < label.size(); ++i)
      places_[2 * i + 1] = static_cast<std::size_t>(label[i]);
    for (std::size_t t = 0; t < steps_; ++t) {
      const auto* const row = first + t * stride_;
      double sum = 0;
      const double largest = *std::max_element(row, row + classes_);
      for (std::size_t k = 0; k < classes_; ++k) sum += std::exp(row[k] - largest);
      for (std::size_t k = 0; k < classes_; ++k)
        logarithms_[t * classes_ + k] = row[k] - largest - std::log(sum);
    }
    forward_.assign(steps_ * places_.size(), kNone);
    backward_ = forward_;
    go_forward();
    go_backward();
  }

  [[nodiscard]] double cost() const {
    const auto* const last = forward_.data() + (steps_ - 1) * places_.size();
    const auto end = places_.size();
    return -log_sum(last[end - 1], end > 1 ? last[end - 2] : kNone);
  }
  /// Of all of its steps; they are where those of x are.
  void write_gradients(float* first) const {
    const auto total = -cost();
    if (total == kNone) return;
    std::vector<double> shares(classes_);
    for (std::size_t t = 0; t < steps_; ++t) {
      std::fill(shares.begin(), shares.end(), 0);
      for (std::size_t s = 0; s < places_.size(); ++s) {
        const auto at = t * places_.size() + s;
        shares[places_[s]] += std::exp(forward_[at] + backward_[at] - total);
      }
      for (std::size_t k = 0; k < classes_; ++k) {
        first[t * stride_ + k] =
            static_cast<float>(std::exp(logarithms_[t * classes_ + k]) - shares[k]);
      }
    }
  }

 private:
  /// Whether a path goes from place s - 2 to s: over the blank between different classes.
  [[nodiscard]] bool skips_to(std::size_t s) const {
    return s >= 2 && places_[s] != 0 && places_[s] != places_[s - 2];
  }
  [[nodiscard]] double logarithm(std::size_t t, std::size_t s) const {
    return logarithms_[t * classes_ + places_[s]];
  }

  /// Of all ways to place s at step t, with that step.
  void go_forward() {
    const auto count = places_.size();
    for (std::size_t s = 0; s < std::min<std::size_t>(count, 2); ++s) forward_[s] = logarithm(0, s);
    for (std::size_t t = 1; t < steps_; ++t) {
      const auto* const before = forward_.data() + (t - 1) * count;
      for (std::size_t s = 0; s < count; ++s) {
        auto sum = before[s];
        if (s >= 1) sum = log_sum(sum, before[s - 1]);
        if (skips_to(s)) sum = log_sum(sum, before[s - 2]);
        forward_[t * count + s] = sum + logarithm(t, s);
      }
    }
  }
  /// Of all ways from place s at step t to the end, without that step.
  void go_backward() {
    const auto count = places_.size();
    auto* const last = backward_.data() + (steps_ - 1) * count;
    for (std::size_t s = count - std::min<std::size_t>(count, 2); s < count; ++s) last[s] = 0;
    for (std::size_t t = steps_ - 1; t-- > 0;) {
      const auto* const behind = backward_.data() + (t + 1) * count;
      for (std::size_t s = 0; s < count; ++s) {
        auto sum = behind[s] + logarithm(t + 1, s);
        if (s + 1 < count) sum = log_sum(sum, behind[s + 1] + logarithm(t + 1, s + 1));
        if (s + 2 < count && skips_to(s + 2))
          sum = log_sum(sum, behind[s + 2] + logarithm(t + 1, s + 2));
        backward_[t * count + s] = sum;
      }
    }
  }

  std::size_t classes_, steps_, stride_;
  std::vector<double> logarithms_;   ///< of the softmax, by step and class
  std::vector<std::size_t> places_;  ///< the classes of the label, with blanks
  std::vector<double> forward_, backward_;
};

}  // namespace

void ctc_loss(const CtcLoss& op, const CtcMemory& memory) {
  if (memory.gradients != nullptr)
    std::fill_n(memory.gradients, op.time * op.batch * op.classes, 0.0f);
  std::int64_t begin = 0;
  for (std::int64_t b = 0; b < op.batch; ++b) {
    const std::int64_t length = memory.label_lengths[b], steps = memory.input_lengths[b];
    const bool fits = begin >= 0 && length >= 1 && length <= op.max_label &&
                      begin + length <= op.labels_count && steps >= 1 && steps <= op.time;
    const std::span label(memory.labels + (fits ? begin : 0),
                          static_cast<std::size_t>(fits ? length : 0));
    begin = fits ? begin + length : -1;  // where the next labels are is not known
    const bool sound = fits && std::all_of(label.begin(), label.end(), [&](std::int32_t number) {
                         return number >= 1 && number < op.classes;
                       });
    if (!sound) {
      memory.costs[b] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const Sequence sequence(op, memory.x + b * op.classes, steps, label);
    memory.costs[b] = static_cast<float>(sequence.cost());
    if (memory.gradients != nullptr) sequence.write_gradients(memory.gradients + b * op.classes);
  }
}

}  // namespace troupe::dnn
