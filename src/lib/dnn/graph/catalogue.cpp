#include <algorithm>
#include <array>
#include <cmath>

#include "catalogue/catalogue.hpp"
#include "catalogue/layers.hpp"

// Layers of neural networks in small graphs.

namespace troupe::catalogue {
namespace {

using dnn::Mode;
using Id = Layers::Id;
using Extents = Layers::Extents;

std::int64_t draw_channels(Random& form) {
  return 8 * form.between(1, 4);
}
DType draw_weights(Random& form, DType dtype) {
  return form.one_in(2) ? dtype : DType::f32;
}

/// Adds a bias, then does this and that.
Id add_epilogue(Layers& layers, Random& form, Id x, const dnn::Layout& of_bias, DType dtype) {
  auto y = layers.pointwise(Mode::add, x, layers.input(dtype, of_bias, 2));
  for (auto left = form.below(3); left > 0; --left) {
    const auto other = [&] { return layers.input(dtype, layers.layout(y), 2); };
    switch (form.below(6)) {
      case 0: y = layers.scale(y, form.one_in(2) ? 2 : 0.5f); break;
      case 1: y = layers.pointwise(Mode::negate, y); break;
      case 2: y = layers.pointwise(Mode::abs, y); break;
      case 3: y = layers.pointwise(Mode::maximum, y, other()); break;
      case 4: y = layers.pointwise(Mode::subtract, y, other()); break;
      default: y = layers.pointwise(Mode::relu_backward, y, other());
    }
  }
  constexpr std::array kActivations{Mode::identity, Mode::relu,  Mode::gelu,
                                    Mode::tanh,     Mode::swish, Mode::sigmoid};
  return layers.pointwise(form.of(kActivations), y);
}

void elements(Trial& t, DType dtype) {
  auto form = draw_form(t);
  Layers layers(t);
  const auto batch = form.between(1, 3), rows = form.between(1, 6), channels = draw_channels(form);
  const bool images = form.one_in(2);
  const auto x = layers.input(
      dtype,
      images ? dnn::channels_last(batch, channels, {rows, 3}) : dnn::Layout{batch, rows, channels},
      2);
  const auto of_bias =
      images ? dnn::channels_last(1, channels, {1, 1}) : dnn::Layout{1, 1, channels};
  layers.output(add_epilogue(layers, form, x, of_bias, dtype), draw_weights(form, dtype));
  layers.run();
}

void products(Trial& t, DType dtype) {
  auto form = draw_form(t);
  Layers layers(t);
  const auto batch = form.between(1, 3), rows = draw_channels(form), columns = draw_channels(form),
             inner = 8 * form.between(1, 2);
  const bool shared = form.one_in(2), by_columns = form.one_in(2);
  const auto a =
      layers.input(dtype,
                   by_columns ? dnn::Layout({batch, rows, inner}, {rows * inner, 1, rows})
                              : dnn::Layout{batch, rows, inner},
                   2);
  const auto b = layers.input(dtype, {shared ? 1 : batch, inner, columns}, 1);
  auto c = layers.matmul(a, b);
  if (form.one_in(2)) c = add_epilogue(layers, form, c, {1, 1, columns}, dtype);
  layers.output(c, draw_weights(form, dtype));
  layers.run();
}

/// With what is done to its result, or one of its gradients.
void convolutions(Trial& t, DType dtype) {
  auto form = draw_form(t);
  Layers layers(t);
  const std::int64_t channels = 8, side = form.one_in(2) ? 3 : 1, padding = side / 2,
                     stride = form.between(1, 2);
  const auto batch = form.between(1, 2), filters = std::int64_t{8}, rows = form.between(3, 6),
             columns = form.between(3, 6);
  const auto places = [&](std::int64_t extent) {
    return (extent + 2 * padding - side) / stride + 1;
  };
  const dnn::ConvolutionSteps steps{.padding_before = {padding, padding},
                                    .strides = {stride, stride}};
  const auto of_x = dnn::channels_last(batch, channels, {rows, columns}),
             of_w = dnn::channels_last(filters, channels, {side, side}),
             of_y = dnn::channels_last(batch, filters, {places(rows), places(columns)});
  Id made;
  switch (form.below(3)) {
    case 0:
      made = layers.convolution_data(layers.input(dtype, of_y, 2), layers.input(dtype, of_w, 1),
                                     of_x.extents, steps);
      break;
    case 1:
      made = layers.convolution_filter(layers.input(dtype, of_y, 1), layers.input(dtype, of_x, 2),
                                       of_w.extents, steps);
      break;
    default:
      made = layers.convolution(layers.input(dtype, of_x, 2), layers.input(dtype, of_w, 1), steps);
      made = add_epilogue(layers, form, made, dnn::channels_last(1, filters, {1, 1}), dtype);
  }
  layers.output(made, dtype);
  layers.run(Answer::may_refuse);
}

/// What a norm has made, as the type of its memory has it.
std::vector<double> in_f32(const Exact& exact) {
  std::vector<double> values;
  for (const auto value : exact.value)
    values.push_back(static_cast<double>(static_cast<float>(value)));
  return values;
}

/// Forward, and the gradients in a graph of their own.
void norms(Trial& t, DType dtype) {
  auto form = draw_form(t);
  constexpr std::array kNorms{dnn::Norm::layer, dnn::Norm::layer,    dnn::Norm::rms,
                              dnn::Norm::rms,   dnn::Norm::instance, dnn::Norm::batch};
  const auto which = form.of(kNorms);
  const bool of_rows = which == dnn::Norm::layer || which == dnn::Norm::rms;
  const auto channels = of_rows ? 32 * form.between(1, 4) : 8 * form.between(1, 2);
  const auto layout =
      of_rows ? dnn::channels_last(4 * form.between(2, 4), channels, {1, 1})
              : dnn::channels_last(form.between(2, 4), channels, {form.between(4, 6), 5});
  const auto of_scale = dnn::channels_last(1, channels, {1, 1});
  const auto weights = which == dnn::Norm::batch ? DType::f32 : draw_weights(form, dtype);
  Layers forward(t);
  const auto x = forward.input(dtype, layout, 3), scale = forward.input(weights, of_scale, 2);
  const bool with_bias = which != dnn::Norm::rms || form.one_in(2);
  const auto bias = with_bias ? forward.input(weights, of_scale, 2) : Id();
  const auto made = forward.norm(which, x, scale, bias, dnn::Phase::training);
  forward.output(made.y, dtype);
  if (made.mean.present()) forward.output(made.mean, DType::f32);
  forward.output(made.inverse_deviation, DType::f32);
  forward.run();

  Layers backward(t);
  const auto of_sets = forward.layout(made.inverse_deviation);
  const auto dy = backward.input(dtype, layout, 2);
  const auto mean = made.mean.present()
                        ? backward.input(DType::f32, of_sets, in_f32(forward.exact(made.mean)))
                        : Id();
  const auto gradients = backward.norm_backward(
      which, dy, backward.input(dtype, layout, forward.exact(x).value),
      backward.input(weights, of_scale, forward.exact(scale).value), mean,
      backward.input(DType::f32, of_sets, in_f32(forward.exact(made.inverse_deviation))));
  backward.output(gradients.dx, dtype);
  backward.output(gradients.dscale, weights);
  if (gradients.dbias.present()) backward.output(gradients.dbias, weights);
  backward.run();
}

/// Forward, and together with the gradient, which cuDNN does not have.
void poolings(Trial& t, DType dtype) {
  auto form = draw_form(t);
  Layers layers(t);
  constexpr std::array kModes{dnn::Pooling::maximum, dnn::Pooling::average,
                              dnn::Pooling::average_inside};
  const auto images = dnn::channels_last(form.between(1, 2), draw_channels(form),
                                         {form.between(4, 9), form.between(4, 9)});
  const auto x = layers.input(dtype, images, 8);
  const bool overlap = form.one_in(2);
  const auto steps =
      overlap ? dnn::PoolingSteps{.window = {3, 3}, .padding_before = {1, 1}, .strides = {2, 2}}
              : dnn::PoolingSteps{.window = {2, 2}};
  const auto mode = form.of(kModes);
  const auto y = layers.pooling(mode, x, steps);
  layers.output(y, dtype);
  layers.run();
  Layers both(t);
  const auto again = both.input(dtype, images, layers.exact(x).value);
  both.output(both.pooling(mode, again, steps), dtype);
  const auto dy = both.input(dtype, layers.layout(y), 2);
  both.output(both.pooling_backward(mode, dy, again, steps), dtype);
  both.run();
}

void larger_images(Trial& t, DType dtype) {
  auto form = draw_form(t);
  const auto batch = form.between(1, 2), channels = draw_channels(form), rows = form.between(2, 6),
             columns = form.between(2, 6);
  Layers forward(t), backward(t);
  const auto x = forward.input(dtype, dnn::channels_last(batch, channels, {rows, columns}), 8);
  forward.output(forward.doubled(x), dtype);
  forward.run();
  const auto dy =
      backward.input(dtype, dnn::channels_last(batch, channels, {2 * rows, 2 * columns}), 8);
  backward.output(backward.doubled_backward(dy), dtype);
  backward.run();
}

/// Of any dimensions.
void reductions(Trial& t, DType dtype) {
  auto form = draw_form(t);
  Layers layers(t);
  constexpr std::array kReductions{dnn::ReduceOp::min, dnn::ReduceOp::max, dnn::ReduceOp::max_abs,
                                   dnn::ReduceOp::sum};
  const auto reduction = form.of(kReductions);
  Extents extents{form.between(1, 2), 8 * form.between(1, 3), draw_channels(form)};
  const auto x = layers.input(dtype, dnn::Layout(extents), 100);
  extents[2] = form.one_in(3) ? extents[2] : 1;
  extents[1] = form.one_in(2) ? extents[1] : 1;
  layers.output(layers.reduce(reduction, x, extents), DType::f32);
  layers.run();
}

void attend(Trial& t, DType dtype, Answer answer = Answer::computes) {
  auto form = draw_form(t);
  Layers layers(t);
  const auto batch = form.between(1, 2), heads_kv = form.between(1, 2),
             heads_q = heads_kv * form.between(1, 2), queries = form.between(2, 40),
             keys = queries + form.below(30), dim = std::int64_t{16} << form.below(3);
  const auto of = [&](std::int64_t heads, std::int64_t sequence) {
    return layers.input(dtype, dnn::sequence_major(batch, heads, sequence, dim), 2);
  };
  const dnn::AttentionInputs in{
      .q = of(heads_q, queries), .k = of(heads_kv, keys), .v = of(heads_kv, keys)};
  const auto mask = form.one_in(2) ? dnn::Mask::causal() : dnn::Mask();
  const auto made = layers.attention(in, {.mask = mask});
  layers.output(made.o, dtype);
  layers.output(made.stats, DType::f32);
  layers.run(answer);
}

/// What cuDNN does not have, or what an engine of it was seen to compute wrongly: it has to say so,
/// and to change nothing. The cpu engine has all of it.
void refused(Trial& t, DType dtype) {
  const bool wide = dtype == DType::f32;
  if (t.random.one_in(2)) return attend(t, dtype, wide ? Answer::may_refuse : Answer::computes);
  // Of f32, or a shared matrix by columns.
  Layers layers(t);
  const auto a = layers.input(dtype, {2, 16, 8}, 2);
  const auto b = layers.input(
      dtype, wide ? dnn::Layout{2, 8, 24} : dnn::Layout({1, 8, 24}, {8 * 24, 1, 8}), 2);
  layers.output(layers.matmul(a, b), dtype);
  layers.run(Answer::refuses);
}

void add_calls_of_layers(Catalogue& catalogue) {
  struct Layer {
    std::string_view name;
    void (*make)(Trial&, DType);
    Missing missing = Missing::library;
    bool may_refuse = false;
    bool narrow = false;  ///< f16 and bf16 only
  };
  constexpr Layer kAll[] = {
      {"elements of layers", elements},
      {"product of layers", products, Missing::library, false, true},
      {"convolution of layers", convolutions, Missing::itself, true},
      {"norms", norms},
      {"pooling", poolings},
      {"larger images", larger_images},
      {"reduction of layers", reductions},
      {"attention", [](Trial& t, DType dtype) { attend(t, dtype); }, Missing::library, false, true},
      {"refused layers", refused, Missing::library, true}};
  for_types<Half, BFloat16, float>([&]<class T>(T) {
    for (const auto& layer : kAll) {
      if (layer.narrow && sizeof(T) == sizeof(float)) continue;
      catalogue.add<T>({layer.name, "graph", layer.missing, layer.may_refuse},
                       [make = layer.make](Trial& t) { make(t, dtype_of<T>); });
    }
  });
}

const Subject kLayers("dnn", add_calls_of_layers);

}  // namespace

}  // namespace troupe::catalogue
