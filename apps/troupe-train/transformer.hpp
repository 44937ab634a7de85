#pragma once

#include <vector>

#include "attention.hpp"

namespace troupe::train {

/// The model's forward and backward pass on this rank's device. T: of activations, and of what
/// products are computed from; parameters and their gradients are f32.
///
/// The loss is the sum over the tokens divided by `mean_of`, which need not be their number: see
/// Training. A token whose target is below 0 adds nothing to the loss and the gradients.
///
/// All functions submit and return. Matrices of activations have a row of channels for each token;
/// to BLAS these are columns.
template <Element T>
class Transformer {
 public:
  Transformer(Device& device, const OwnKernels& kernels, Scratch& scratch, const Shape& shape,
              const Parameters& places, std::int64_t batch, double mean_of)
      : device_(device),
        kernels_(kernels),
        shape_(shape),
        places_(places),
        batch_(batch),
        tokens_(batch * shape.sequence),
        mean_of_(static_cast<float>(mean_of)),
        attention_(device, kernels, scratch, shape, batch) {
    const auto c = shape.channels;
    const auto rows = [&](std::int64_t channels, const char* name) {
      return scratch.room<T>(tokens_ * channels, name);
    };
    const auto statistics = [&] {
      return NormStatistics{scratch.room<float>(tokens_, "means"),
                            scratch.room<float>(tokens_, "inverse deviations")};
    };
    parameters_ = device.alloc<float>(places.count);
    gradients_ = scratch.room<float>(places.count, "gradients");
    if constexpr (kNarrow)
      weights_ = scratch.room<T>(places.count, "rounded parameters");
    else
      weights_ = parameters_;
    token_ = scratch.room<std::int32_t>(tokens_, "tokens");
    target_ = scratch.room<std::int32_t>(tokens_, "targets");
    losses_ = scratch.room<float>(tokens_, "losses of tokens");
    loss_ = scratch.room<float>(1, "loss");
    for (std::int64_t layer = 0; layer < shape.layers; ++layer)
      layers_.push_back({rows(c, "input"), rows(c, "norm 1"), rows(3 * c, "qkv"),
                         rows(c, "attention"), rows(c, "between"), rows(c, "norm 2"),
                         rows(4 * c, "MLP before GELU"), rows(4 * c, "MLP"), statistics(),
                         statistics()});
    result_ = rows(c, "result"), normed_ = rows(c, "last norm"), statistics_ = statistics();
    logits_ = rows(shape.vocabulary, "logits");
    one_hot_ = rows(kByteTokens, "one-hot tokens");
    d_x_ = rows(c, "gradient"), d_c_ = rows(c, "gradient of C"), d_norm_ = rows(c, "norm's");
    d_3c_ = rows(3 * c, "gradient of 3 C"), d_4c_ = rows(4 * c, "gradient of 4 C");
    column_sums_ = scratch.room<float>(OwnKernels::kParts * 4 * c, "sums of columns");
    norm_sums_ = scratch.room<float>(OwnKernels::kNormBlocks * 3 * c, "sums of norms");
    unused_ = scratch.room<float>(c, "unused sums");
  }

  // In memory as Parameters says.
  [[nodiscard]] GpuRef<float>& parameters() { return parameters_; }
  [[nodiscard]] const GpuRef<float>& gradients() const { return gradients_; }
  /// One number.
  [[nodiscard]] const GpuRef<float>& loss() const { return loss_; }
  [[nodiscard]] const GpuRef<std::int32_t>& tokens() const { return token_; }
  [[nodiscard]] const GpuRef<std::int32_t>& targets() const { return target_; }

  /// From tokens and targets the loss, and the gradients of the blocks `last` and `no_bytes`.
  void forward() {
    embed();
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) forward(layer);
    compare();
  }

  /// The gradients of a layer, when those of all behind it are there. That of its last bias comes
  /// with these.
  void backward(std::int64_t layer) {
    const auto& of = places_.layers[static_cast<std::size_t>(layer)];
    auto& a = layers_[static_cast<std::size_t>(layer)];
    const auto c = shape_.channels;
    product_of_rows(a.hidden, 4 * c, d_x_, c, gradient(of.fall));
    back_through(of.fall, 4 * c, d_x_, c, d_4c_,
                 {.epilogue = blas::Epilogue::dgelu, .aux = a.before_gelu});
    device_.launch(kernels_.column_sums, kernels_.sums(4 * c), static_cast<int>(4 * c), tokens_,
                   read(d_4c_), write(sums_of(4 * c)));
    add_up_columns(4 * c, of.rise_bias);
    product_of_rows(a.norm2, c, d_4c_, 4 * c, gradient(of.rise));
    back_through(of.rise, c, d_4c_, 4 * c, d_norm_);
    norm_backward(a.between, of.norm2_scale, of.norm2_bias, a.statistics2,
                  gradient(of.projection_bias));

    product_of_rows(a.attention, c, d_x_, c, gradient(of.projection));
    back_through(of.projection, c, d_x_, c, d_c_);
    attention_.backward(layer, a.qkv, a.attention, d_c_, d_3c_, sums_of(3 * c));
    add_up_columns(3 * c, of.qkv_bias);
    product_of_rows(a.norm1, c, d_3c_, 3 * c, gradient(of.qkv));
    back_through(of.qkv, c, d_3c_, 3 * c, d_norm_);
    norm_backward(a.input, of.norm1_scale, of.norm1_bias, a.statistics1,
                  layer > 0
                      ? gradient(places_.layers[static_cast<std::size_t>(layer - 1)].fall_bias)
                      : unused_);
  }

  /// The gradients of the embeddings, when those of all layers are there.
  void backward_embeddings() {
    const auto c = shape_.channels, positions = c * shape_.sequence;
    device_.launch(kernels_.one_hot, OwnKernels::each(tokens_ * kByteTokens / 8),
                   static_cast<int>(kByteTokens), tokens_ * kByteTokens / 8, read(token_),
                   write(one_hot_));
    const MatrixRef sum(gradient(places_.token_embedding).slice(0, c * kByteTokens), c,
                        kByteTokens);
    multiply_and_add<float>({d_x_, c, tokens_}, {one_hot_, kByteTokens, tokens_}, sum, sum,
                            {.transpose_b = blas::Transpose::yes});
    device_.launch(kernels_.sum_parts, OwnKernels::each(positions), static_cast<int>(batch_),
                   positions, read(d_x_), write(gradient(places_.position_embedding)));
  }

 private:
  static constexpr bool kNarrow = std::is_same_v<T, BFloat16>;

  /// What a layer's forward pass leaves for its backward pass.
  struct Layer {
    GpuRef<T> input, norm1, qkv, attention, between, norm2, before_gelu, hidden;
    NormStatistics statistics1, statistics2;
  };

  /// The first layer's input.
  void embed() {
    if constexpr (kNarrow)
      device_.launch(kernels_.narrow, OwnKernels::each(places_.count / 8), places_.count / 8,
                     read(parameters_), write(weights_));
    const auto c = shape_.channels;
    device_.launch(kernels_.embed, OwnKernels::each(tokens_ * c / 8), tokens_ * c / 8, read(token_),
                   read(parameter(places_.token_embedding)),
                   read(parameter(places_.position_embedding)), write(input_of(0)));
  }
  /// From the last layer's output.
  void compare() {
    const auto c = shape_.channels;
    norm(result_, places_.final_scale, places_.final_bias, normed_, statistics_);
    multiply<T>({weight(places_.token_embedding), c, shape_.vocabulary}, {normed_, c, tokens_},
                {logits_, shape_.vocabulary, tokens_}, {.transpose_a = blas::Transpose::yes});
    device_.launch(kernels_.cross_entropy, kernels_.logits(tokens_),
                   static_cast<int>(shape_.vocabulary), kernels_.keeps_row(), 1 / mean_of_,
                   read(target_), update(logits_), write(losses_));
    device_.launch(kernels_.mean, kernels_.rows(1), tokens_, mean_of_, read(losses_), write(loss_));
    // The product's part of the token embedding's gradient; that of the first layer comes last.
    product_of_rows(normed_, c, logits_, shape_.vocabulary, gradient(places_.token_embedding));
    back_through(places_.token_embedding, c, logits_, shape_.vocabulary, d_norm_);
    norm_backward(result_, places_.final_scale, places_.final_bias, statistics_,
                  gradient(places_.layers.back().fall_bias), false);
  }
  void forward(std::int64_t layer) {
    const auto& of = places_.layers[static_cast<std::size_t>(layer)];
    auto& a = layers_[static_cast<std::size_t>(layer)];
    const auto c = shape_.channels;
    norm(a.input, of.norm1_scale, of.norm1_bias, a.norm1, a.statistics1);
    linear(of.qkv, of.qkv_bias, a.norm1, c, a.qkv, 3 * c, {.epilogue = blas::Epilogue::bias});
    attention_.forward(layer, a.qkv, a.attention);
    linear_and_add(of.projection, of.projection_bias, a.attention, c, a.input, a.between);
    norm(a.between, of.norm2_scale, of.norm2_bias, a.norm2, a.statistics2);
    linear(of.rise, of.rise_bias, a.norm2, c, a.hidden, 4 * c,
           {.epilogue = blas::Epilogue::gelu_aux_bias, .aux = a.before_gelu});
    linear_and_add(of.fall, of.fall_bias, a.hidden, 4 * c, a.between, input_of(layer + 1));
  }

  [[nodiscard]] const GpuRef<T>& input_of(std::int64_t layer) const {
    return layer < shape_.layers ? layers_[static_cast<std::size_t>(layer)].input : result_;
  }
  [[nodiscard]] GpuRef<float> parameter(const Place& place) const {
    return parameters_.slice(place.first, place.length);
  }
  [[nodiscard]] GpuRef<float> gradient(const Place& place) const {
    return gradients_.slice(place.first, place.length);
  }
  [[nodiscard]] GpuRef<T> weight(const Place& place) const {
    return weights_.slice(place.first, place.length);
  }

  void norm(const GpuRef<T>& x, const Place& scale, const Place& bias, const GpuRef<T>& y,
            const NormStatistics& statistics) {
    device_.launch(kernels_.norm, kernels_.norm_rows(tokens_), tokens_, read(x),
                   read(parameter(scale)), read(parameter(bias)), write(y), write(statistics.mean),
                   write(statistics.inverse_deviation));
  }
  /// Makes d_x_ of d_norm_, or adds to it if it `adds`, and the gradients of scale and bias. The
  /// last that was added to make x has had a bias, whose gradient is the sum of d_x_.
  void norm_backward(const GpuRef<T>& x, const Place& scale, const Place& bias,
                     const NormStatistics& statistics, const GpuRef<float>& bias_before,
                     bool adds = true) {
    constexpr auto kBlocks = OwnKernels::kNormBlocks;
    device_.launch(kernels_.norm_backward, kernels_.norm_blocks(), tokens_, adds ? 1 : 0,
                   read(d_norm_), read(x), read(parameter(scale)), read(statistics.mean),
                   read(statistics.inverse_deviation), adds ? update(d_x_) : write(d_x_),
                   write(norm_sums_));
    device_.launch(kernels_.norm_sums, kernels_.sums_of_sums(shape_.channels, 3),
                   static_cast<int>(kBlocks), read(norm_sums_), write(bias_before),
                   write(gradient(scale)), write(gradient(bias)));
  }
  /// Room for the sums of kernels that OwnKernels::sums() launches.
  [[nodiscard]] GpuRef<float> sums_of(std::int64_t columns) const {
    return column_sums_.slice(0, OwnKernels::kParts * columns);
  }
  void add_up_columns(std::int64_t columns, const Place& to) {
    device_.launch(kernels_.sum_sums, kernels_.sums_of_sums(columns), static_cast<int>(columns),
                   OwnKernels::kParts, read(sums_of(columns)), write(gradient(to)));
  }

  // y = W x + b, for each token. W has a row of `in` channels for each of `out`: to BLAS that is
  // its transpose.

  void linear(const Place& weights, const Place& bias, const GpuRef<T>& x, std::int64_t in,
              const GpuRef<T>& y, std::int64_t out, MatmulOptions options) {
    options.transpose_a = blas::Transpose::yes;
    options.bias = weight(bias);
    multiply<T>({weight(weights), in, out}, {x, in, tokens_}, {y, out, tokens_}, options);
  }
  /// y = W x + b + z, all but x with as many channels as the model.
  void linear_and_add(const Place& weights, const Place& bias, const GpuRef<T>& x, std::int64_t in,
                      const GpuRef<T>& z, const GpuRef<T>& y) {
    const auto out = shape_.channels;
    multiply_and_add<T>({weight(weights), in, out}, {x, in, tokens_}, {z, out, tokens_},
                        {y, out, tokens_},
                        {.transpose_a = blas::Transpose::yes,
                         .epilogue = blas::Epilogue::bias,
                         .bias = weight(bias)});
  }
  /// d_x = W^T d_y
  void back_through(const Place& weights, std::int64_t in, const GpuRef<T>& d_y, std::int64_t out,
                    const GpuRef<T>& d_x, const MatmulOptions& options = {}) {
    multiply<T>({weight(weights), in, out}, {d_y, out, tokens_}, {d_x, in, tokens_}, options);
  }
  /// The sum over tokens of x[i] d_y[j], a row for each j.
  void product_of_rows(const GpuRef<T>& x, std::int64_t in, const GpuRef<T>& d_y, std::int64_t out,
                       const GpuRef<float>& sums) {
    multiply<float>({x, in, tokens_}, {d_y, out, tokens_}, {sums, in, out},
                    {.transpose_b = blas::Transpose::yes});
  }

  /// d = a b, with what the options say.
  template <Element D>
  void multiply(const MatrixRef<GpuRef<T>>& a, const MatrixRef<GpuRef<T>>& b,
                const MatrixRef<GpuRef<D>>& d, const MatmulOptions& options) {
    device_.blas().template matmul<T, T, D>(a, b, d, options);
  }
  /// d = a b + c
  template <Element D>
  void multiply_and_add(const MatrixRef<GpuRef<T>>& a, const MatrixRef<GpuRef<T>>& b,
                        const MatrixRef<GpuRef<D>>& c, const MatrixRef<GpuRef<D>>& d,
                        const MatmulOptions& options) {
    device_.blas().template matmul<T, T, D, D>(1.0f, a, b, 1.0f, c, d, options);
  }

  Device& device_;
  const OwnKernels& kernels_;
  const Shape shape_;
  const Parameters& places_;
  const std::int64_t batch_, tokens_;
  const float mean_of_;
  Attention<T> attention_;
  GpuRef<float> parameters_, gradients_;
  GpuRef<T> weights_;  ///< the parameters as products read them
  GpuRef<std::int32_t> token_, target_;
  GpuRef<float> losses_, loss_;
  std::vector<Layer> layers_;
  GpuRef<T> result_, normed_, logits_, one_hot_;
  NormStatistics statistics_;
  GpuRef<T> d_x_;  ///< the gradient of what goes from layer to layer
  GpuRef<T> d_c_, d_norm_, d_3c_, d_4c_;
  GpuRef<float> column_sums_, norm_sums_, unused_;
};

}  // namespace troupe::train
