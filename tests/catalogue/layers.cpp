#include "catalogue/layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "catalogue/tensor_places.hpp"

namespace troupe::catalogue {
namespace {

using dnn::Mode;
using Extents = Layers::Extents;
using Id = Layers::Id;

/// Functions of one element, as PyTorch's documentation has them.
double function_of(Mode mode, double x) {
  const auto logistic = [](double z) { return 1 / (1 + std::exp(-z)); };
  switch (mode) {
    case Mode::identity: return x;
    case Mode::abs: return std::abs(x);
    case Mode::negate: return -x;
    case Mode::relu: return std::max(x, 0.0);
    case Mode::sigmoid: return logistic(x);
    case Mode::tanh: return std::tanh(x);
    case Mode::gelu: return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    case Mode::swish: return x * logistic(x);
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}
double function_of(Mode mode, double a, double b) {
  switch (mode) {
    case Mode::add: return a + b;
    case Mode::subtract: return a - b;
    case Mode::multiply: return a * b;
    case Mode::maximum: return std::max(a, b);
    case Mode::minimum: return std::min(a, b);
    case Mode::relu_backward: return b > 0 ? a : 0;
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}
/// Whether an engine may compute it by an approximation: cuDNN's tanh is good to 2^-17.
bool is_smooth(Mode mode) {
  return mode == Mode::sigmoid || mode == Mode::tanh || mode == Mode::gelu || mode == Mode::swish;
}
/// The slack of a number that f32 need not have.
double rounded_off(double value, double slack) {
  const bool exact = static_cast<double>(static_cast<float>(value)) == value;
  return slack + (exact && slack == 0 ? 0 : kF32 * std::abs(value));
}

template <class T>
constexpr double kEpsilonOf = Trial::epsilon<T>();

}  // namespace

std::string difference(const std::vector<Wide>& actual, const Exact& exact, double epsilon) {
  if (actual.size() != exact.size())
    return fmt::format("there are {} elements, not {}", actual.size(), exact.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto value = exact.value[i];
    // A number of so many bits is stored as it is.
    int exponent = 0;
    const auto fraction = std::frexp(value, &exponent) * 2 / epsilon;
    const bool stored = exact.slack[i] == 0 && fraction == std::trunc(fraction);
    const auto tolerance = exact.slack[i] + (stored ? 0 : epsilon * std::abs(value));
    if (actual[i].real() == value || std::abs(actual[i].real() - value) <= tolerance) continue;
    return fmt::format("element {} is {}, not {} within {}", i, actual[i].real(), value, tolerance);
  }
  return {};
}

Id Layers::keep(Id tensor, Exact exact) {
  if (!tensor.present()) throw Exception({Errc::internal, 0, "a node of a graph was refused"});
  const auto number = static_cast<std::size_t>(tensor.number);
  if (exact_.size() <= number) exact_.resize(number + 1);
  exact_[number] = std::move(exact);
  return tensor;
}

Exact Layers::laid(const dnn::Layout& layout, const Exact& rows) const {
  Exact memory(rows.size());  // packed: no gaps
  for_each(layout.extents, [&](const Extents& index, std::size_t place) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * layout.strides[d];
    memory.value[static_cast<std::size_t>(at)] = rows.value[place];
    memory.slack[static_cast<std::size_t>(at)] = rows.slack[place];
  });
  return memory;
}

void Layers::bind(Id tensor, DType dtype, Exact before, Exact after) {
  const std::vector<Wide> values(before.value.begin(), before.value.end());
  Memory memory;
  if (dtype == DType::f16)
    memory = trial_->put<Half>(values);
  else if (dtype == DType::bf16)
    memory = trial_->put<BFloat16>(values);
  else
    memory = trial_->put<float>(values);
  std::visit([&](const auto& ref) { bound_.emplace_back(tensor, ref); }, memory);
  watched_.push_back({memory, std::move(before), std::move(after)});
}

Id Layers::input(DType dtype, const dnn::Layout& layout, std::int64_t largest) {
  std::vector<double> values(volume(layout.extents));
  for (auto& value : values) value = static_cast<double>(trial_->random.between(-largest, largest));
  return input(dtype, layout, values);
}

Id Layers::input(DType dtype, const dnn::Layout& layout, const std::vector<double>& values) {
  const auto tensor = keep(graph_.input(dtype, layout), Exact(values));
  const auto memory = laid(layout, exact(tensor));
  bind(tensor, dtype, memory, memory);
  return tensor;
}

void Layers::output(Id tensor, DType dtype) {
  graph_.output(tensor, dtype);
  auto memory = laid(layout(tensor), exact(tensor));
  Exact sevens(std::vector<double>(memory.size(), 7));
  bind(tensor, dtype, std::move(sevens), std::move(memory));
}

void Layers::run(Answer answer) {
  auto& device = trial_->device();
  const bool on_cuda = device.info().engine == "cuda";
  if (!on_cuda) answer = Answer::computes;
  const auto once = [&] { return dnn::on(device).run(graph_, bound_); };
  std::shared_ptr<const bool> refused = std::make_shared<bool>(false);
  if (answer != Answer::computes) {
    refused = trial_->call_or_refuse(once(), answer == Answer::refuses);
  } else {
    trial_->call_or_record(once);
  }
  for (const auto& watched : watched_) {
    std::visit(
        [&]<class T>(const GpuRef<T>& ref) {
          trial_->check(
              [trial = trial_, ref, before = watched.before, after = watched.after, refused] {
                return difference(trial->got(ref), *refused ? before : after, kEpsilonOf<T>);
              });
        },
        watched.memory);
  }
}

// Nodes

Id Layers::pointwise(Mode mode, Id a, Id b) {
  const auto made =
      b.present() ? dnn::pointwise(graph_, mode, a, b) : dnn::pointwise(graph_, mode, a);
  const auto of_a = layout(a).extents, of_b = layout(b.present() ? b : a).extents;
  const auto extents = layout(made).extents;
  Exact result(volume(extents));
  for_each(extents, [&](const Extents& index, std::size_t i) {
    const auto at_a = place_in(of_a, index), at_b = place_in(of_b, index);
    const auto x = exact(a).value[at_a], slack = exact(a).slack[at_a];
    auto& value = result.value[i];
    if (!b.present()) {
      value = function_of(mode, x);
      // None of these is steeper than 1.2.
      result.slack[i] = 1.2 * slack;
      if (is_smooth(mode)) result.slack[i] += 0x1p-16 * std::max(1.0, std::abs(x));
    } else {
      const auto y = exact(b).value[at_b], slack_y = exact(b).slack[at_b];
      value = function_of(mode, x, y);
      result.slack[i] = mode == Mode::multiply
                            ? std::abs(x) * slack_y + std::abs(y) * slack + slack * slack_y
                            : slack + slack_y;
    }
    result.slack[i] = rounded_off(value, result.slack[i]);
  });
  return keep(made, std::move(result));
}

Id Layers::scale(Id a, float factor) {
  const auto constant = graph_.constant(factor, layout(a).extents.size());
  keep(constant, Exact(std::vector<double>{static_cast<double>(factor)}));
  return pointwise(Mode::multiply, a, constant);
}

Id Layers::reduce(dnn::ReduceOp reduction, Id x, const Extents& extents) {
  const auto from = layout(x).extents;
  Exact result(volume(extents));
  std::vector<bool> begun(result.size());
  for_each(from, [&](const Extents& index, std::size_t i) {
    const auto to = place_in(extents, index);
    auto value = exact(x).value[i];
    if (reduction == dnn::ReduceOp::max_abs) value = std::abs(value);
    auto& all = result.value[to];
    if (!begun[to])
      all = value;
    else if (reduction == dnn::ReduceOp::sum)
      all += value;
    else
      all = reduction == dnn::ReduceOp::min ? std::min(all, value) : std::max(all, value);
    begun[to] = true;
  });
  return keep(dnn::reduce(graph_, reduction, x, extents), std::move(result));
}

Id Layers::matmul(Id a, Id b) {
  const auto made = dnn::matmul(graph_, a, b);
  const auto of_a = layout(a).extents, of_b = layout(b).extents, extents = layout(made).extents;
  Exact result(volume(extents));
  const auto rank = extents.size();
  for_each(extents, [&](const Extents& index, std::size_t i) {
    auto in_a = index, in_b = index;
    for (std::int64_t l = 0; l < of_a[rank - 1]; ++l) {
      in_a[rank - 1] = in_b[rank - 2] = l;
      result.value[i] +=
          exact(a).value[place_in(of_a, in_a)] * exact(b).value[place_in(of_b, in_b)];
    }
  });
  return keep(made, std::move(result));
}

}  // namespace troupe::catalogue
