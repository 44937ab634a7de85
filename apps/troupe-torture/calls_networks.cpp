#include <algorithm>
#include <cmath>

#include "layers.hpp"
#include "reference/recurrent.hpp"

// What dnn has beside graphs: softmax, and networks that recur.

namespace troupe::torture {
namespace {

template <class T>
void expect(Trial& t, const GpuRef<T>& memory, Exact exact) {
  t.check([&t, memory, exact = std::move(exact)] {
    return difference(t.got(memory), exact, Trial::epsilon<T>());
  });
}

/// Of any dimension, and its gradient, from numbers of which T has all.
template <class T>
void softmax(Trial& t) {
  auto form = draw_form(t);
  const SoftmaxShape shape{form.between(1, 40), form.one_in(2) ? 1 : form.between(2, 9)};
  const auto inner = static_cast<std::size_t>(shape.inner),
             each = static_cast<std::size_t>(shape.extent) * inner;
  const auto count = static_cast<std::size_t>(form.between(1, 5)) * each;
  const bool logarithm = form.one_in(2);
  const auto x = t.numbers<T>(static_cast<std::int64_t>(count)),
             dy = t.numbers<T>(static_cast<std::int64_t>(count));
  std::vector<Wide> y;
  for (std::size_t i = 0; i < count; ++i)
    y.emplace_back(static_cast<double>(t.random.between(1, 16)) / (logarithm ? -16 : 16));
  Exact made(count), gradient(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = i / each * each + i % inner;
    double sum = 0, of_dy = 0, sizes = 0;
    for (auto j = first; j < first + each; j += inner) {
      sum += std::exp(x[j].real());
      const auto term = dy[j].real() * (logarithm ? 1 : y[j].real());
      of_dy += term, sizes += std::abs(term);
    }
    made.value[i] = logarithm ? x[i].real() - std::log(sum) : std::exp(x[i].real()) / sum;
    made.slack[i] = 0x1p-18 * (logarithm ? 4 : made.value[i]);
    const auto result = y[i].real(), share = logarithm ? std::exp(result) : result;
    gradient.value[i] = logarithm ? dy[i].real() - share * of_dy : share * (dy[i].real() - of_dy);
    gradient.slack[i] = 0x1p-18 * share * (std::abs(dy[i].real()) + sizes);
  }
  const auto x_there = t.put<T>(x), y_there = t.put<T>(y), dy_there = t.put<T>(dy);
  const auto to = t.room<T>(static_cast<std::int64_t>(count)),
             dx = t.room<T>(static_cast<std::int64_t>(count));
  t.call_or_record([&] {
    auto layers = dnn::on(t.device());
    return logarithm ? layers.log_softmax(x_there, to, shape) : layers.softmax(x_there, to, shape);
  });
  t.call_or_record([&] {
    auto layers = dnn::on(t.device());
    return logarithm ? layers.log_softmax_backward(dy_there, y_there, dx, shape)
                     : layers.softmax_backward(dy_there, y_there, dx, shape);
  });
  expect(t, to, std::move(made));
  expect(t, dx, std::move(gradient));
}

RnnOptions draw_network(Random& form) {
  RnnOptions options{.cell = test::kRnnCells[form.below(std::ssize(test::kRnnCells))],
                     .layers = static_cast<std::uint32_t>(form.between(1, 2)),
                     .both_directions = form.one_in(2),
                     .bias = form.one_in(2),
                     .batch = form.between(1, 3),
                     .time = form.between(1, 4),
                     .input = form.between(1, 4),
                     .hidden = form.between(2, 4)};
  const bool of_lengths = form.one_in(2);
  for (std::int64_t b = 0; of_lengths && b < options.batch; ++b)
    options.lengths.push_back(static_cast<std::int32_t>(form.between(1, options.time)));
  return options;
}

/// What a network makes, and its gradients, which are those of differences.
template <class T>
void networks(Trial& t) {
  auto form = draw_form(t);
  const auto options = draw_network(form);
  const auto shape = options.shape();
  // Eighths: T has them, and no gate is saturated.
  const auto draw = [&t](std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (auto& value : values) value = static_cast<double>(t.random.between(-6, 6)) / 8;
    return values;
  };
  const auto put = [&t](const std::vector<double>& values) {
    return t.put<T>(std::vector<Wide>(values.begin(), values.end()));
  };
  const auto near = [&t](const GpuRef<T>& memory, const std::vector<double>& values) {
    Exact exact(values);
    double largest = 1;
    for (const auto value : values) largest = std::max(largest, std::abs(value));
    std::fill(exact.slack.begin(), exact.slack.end(), 16 * Trial::epsilon<T>() * largest);
    expect(t, memory, std::move(exact));
  };
  const test::RnnNumbers numbers{draw(shape.x_elements()), draw(shape.w_elements()),
                                 draw(shape.state_elements())};
  RnnTensors<T> tensors{.x = put(numbers.x),
                        .w = put(numbers.w),
                        .y = t.room<T>(shape.y_elements()),
                        .initial = put(numbers.initial),
                        .final = t.room<T>(shape.state_elements())};
  const auto results = test::exact_rnn(options, numbers);
  near(tensors.y, results.y);
  near(tensors.final, results.final);
  // The sum of eighths may be 0, where relu has no gradient.
  if (options.cell == dnn::RnnCell::relu)
    return t.call_or_record([&] { return dnn::on(t.device()).rnn(tensors, options); });

  auto layers = dnn::on(t.device());
  tensors.reserve = t.device().alloc<std::uint8_t>(layers.template rnn_reserve<T>(options).get());
  const auto dy = draw(shape.y_elements()), dfinal = draw(shape.state_elements()),
             dw = draw(shape.w_elements());
  const RnnGradients<T> gradients{.dy = put(dy),
                                  .dx = t.room<T>(shape.x_elements()),
                                  .dfinal = put(dfinal),
                                  .dinitial = t.room<T>(shape.state_elements())};
  const auto dw_there = put(dw);
  t.call(layers.rnn(tensors, options));
  t.call(layers.rnn_backward_data(tensors, gradients, options));
  t.call(layers.rnn_backward_weights(tensors, dw_there, options));
  test::RnnDifferences differences(options, numbers, dy, dfinal);
  near(gradients.dx, differences.of(&test::RnnNumbers::x));
  near(gradients.dinitial, differences.of(&test::RnnNumbers::initial));
  auto of_w = differences.of(&test::RnnNumbers::w);
  for (std::size_t i = 0; i < of_w.size(); ++i) of_w[i] += dw[i];
  near(dw_there, of_w);
}

}  // namespace

void add_networks(Calls& calls) {
  for_types<Half, BFloat16, float>([&]<class T>(T) {
    calls.add<T>("networks", networks<T>);
    calls.add<T>("softmax", softmax<T>);
  });
  calls.add<double>("softmax", softmax<double>);
}

}  // namespace troupe::torture
