#include <algorithm>
#include <cmath>

#include "catalogue/catalogue.hpp"
#include "catalogue/layers.hpp"
#include "reference/recurrent.hpp"

// What dnn has beside graphs: softmax, and networks that recur.

namespace troupe::catalogue {
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

/// Local response normalisation and its gradient.
template <class T>
void local_responses(Trial& t) {
  auto form = draw_form(t);
  const LrnShape shape{form.between(1, 12),
                       form.one_in(2) ? 1 : form.between(2, 5),
                       {.window = static_cast<std::int32_t>(form.between(1, 5)),
                        .alpha = 0.5,
                        .beta = 0.75,
                        .k = 1}};
  const auto inner = static_cast<std::size_t>(shape.inner),
             channels = static_cast<std::size_t>(shape.channels);
  const auto count = static_cast<std::size_t>(form.between(1, 3)) * channels * inner;
  const auto x = t.numbers<T>(static_cast<std::int64_t>(count)),
             dy = t.numbers<T>(static_cast<std::int64_t>(count));
  /// Calls visit(d) for each channel of the window of channel c, both as places in the arrays.
  const auto window = [&](std::size_t i, const auto& visit) {
    const auto c = static_cast<std::int64_t>(i / inner % channels);
    for (std::int64_t d = c - (shape.rule.window - 1) / 2, end = d + shape.rule.window; d < end;
         ++d) {
      if (d >= 0 && d < shape.channels)
        visit(i - (static_cast<std::size_t>(c) - static_cast<std::size_t>(d)) * inner);
    }
  };
  std::vector<double> s(count, shape.rule.k);
  Exact y(count), dx(count);
  const auto share = shape.rule.alpha / shape.rule.window;
  for (std::size_t i = 0; i < count; ++i) {
    window(i, [&](std::size_t d) { s[i] += share * x[d].real() * x[d].real(); });
    y.value[i] = x[i].real() * std::pow(s[i], -shape.rule.beta);
    y.slack[i] = 0x1p-16 * std::abs(y.value[i]);
    dx.value[i] = dy[i].real() * std::pow(s[i], -shape.rule.beta);
    dx.slack[i] = 0x1p-16 * std::abs(dx.value[i]);
  }
  // y is rounded to T before its gradient is computed.
  for (std::size_t i = 0; i < count; ++i) {
    window(i, [&](std::size_t c) {
      const auto term =
          2 * share * shape.rule.beta * x[c].real() * dy[i].real() * y.value[i] / s[i];
      dx.value[c] -= term;
      dx.slack[c] += (0x1p-16 + Trial::epsilon<T>()) * std::abs(term);
    });
  }
  const auto x_there = t.put<T>(x), dy_there = t.put<T>(dy);
  const auto y_there = t.room<T>(static_cast<std::int64_t>(count)),
             dx_there = t.room<T>(static_cast<std::int64_t>(count));
  t.call_or_record([&] { return dnn::on(t.device()).lrn(x_there, y_there, shape); });
  t.call_or_record([&] {
    return dnn::on(t.device()).lrn_backward(x_there, y_there, dy_there, dx_there, shape);
  });
  expect(t, y_there, std::move(y));
  expect(t, dx_there, std::move(dx));
}

/// Of one step each: the cost is that of its class.
void labels_of_sequences(Trial& t) {
  auto form = draw_form(t);
  const CtcShape shape{1, form.between(1, 4), form.between(2, 6)};
  const auto batch = static_cast<std::size_t>(shape.batch),
             classes = static_cast<std::size_t>(shape.classes);
  const auto x = t.numbers<float>(shape.batch * shape.classes);
  std::vector<std::int32_t> labels(batch);
  const std::vector<std::int32_t> ones(batch, 1);
  Exact costs(batch), gradients(batch * classes);
  for (std::size_t b = 0; b < batch; ++b) {
    labels[b] = static_cast<std::int32_t>(t.random.between(1, shape.classes - 1));
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(x[b * classes + c].real());
    const auto label = static_cast<std::size_t>(labels[b]);
    costs.value[b] = std::log(sum) - x[b * classes + label].real();
    costs.slack[b] = 0x1p-16;
    for (std::size_t c = 0; c < classes; ++c) {
      gradients.value[b * classes + c] =
          std::exp(x[b * classes + c].real()) / sum - (c == label ? 1 : 0);
      gradients.slack[b * classes + c] = 0x1p-16;
    }
  }
  const CtcTensors tensors{.x = t.put<float>(x),
                           .labels = t.put_values(labels),
                           .label_lengths = t.put_values(ones),
                           .input_lengths = t.put_values(ones),
                           .costs = t.room<float>(shape.batch),
                           .gradients = t.room<float>(shape.batch * shape.classes)};
  t.call_or_record([&] { return dnn::on(t.device()).ctc_loss(tensors, shape); });
  expect(t, tensors.costs, std::move(costs));
  expect(t, tensors.gradients, std::move(gradients));
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

void add_calls_of_networks(Catalogue& catalogue) {
  for_types<Half, BFloat16, float>([&]<class T>(T) {
    catalogue.add<T>(
        {"networks", "rnn_space rnn rnn_backward_data rnn_backward_weights", Missing::library},
        networks<T>);
    catalogue.add<T>({"softmax", "softmax softmax_backward", Missing::library}, softmax<T>);
  });
  catalogue.add<double>({"softmax", "softmax softmax_backward", Missing::library}, softmax<double>);
  for_types<Half, float, double>([&]<class T>(T) {
    catalogue.add<T>({"local responses", "lrn lrn_backward", Missing::library}, local_responses<T>);
  });
  catalogue.add<float>({"labels of sequences", "ctc_loss", Missing::library}, labels_of_sequences);
}

const Subject kNetworks("dnn", add_calls_of_networks);

}  // namespace

}  // namespace troupe::catalogue
