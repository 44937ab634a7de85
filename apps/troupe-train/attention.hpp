#pragma once

#include <cmath>
#include <vector>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/dnn.hpp>

#include "kernels.hpp"
#include "model.hpp"
#include "scratch.hpp"

namespace troupe::train {

/// Causal self-attention of all layers (Vaswani et al., "Attention Is All You Need", 2017).
/// Queries, keys and values of a token stand side by side, a row of 3 C; results and their
/// gradients have rows of C; heads are ranges of channels. `sums`: those of the columns of d_qkv,
/// of OwnKernels::kParts parts of the rows.
template <Element T>
class Attention;

/// In f32, of which cuDNN has no attention: products of matrices, and kernels for the softmax. Each
/// matrix is column-major, a column for each query, or of q, k, v and the result for each token.
template <>
class Attention<float> {
 public:
  Attention(Device& device, const OwnKernels& kernels, Scratch& scratch, const Shape& shape,
            std::int64_t batch)
      : device_(device),
        kernels_(kernels),
        shape_(shape),
        matrices_(batch * shape.heads),
        length_(batch * shape.sequence * shape.channels) {
    const auto scores = matrices_ * shape.sequence * shape.sequence;
    for (std::int64_t layer = 0; layer < shape.layers; ++layer)
      weights_.push_back(scratch.room<float>(scores, "attention weights"));
    d_weights_ = scratch.room<float>(scores, "gradients of attention weights");
    qkv_ = scratch.room<float>(3 * length_, "qkv by head");
    d_qkv_ = scratch.room<float>(3 * length_, "gradients of qkv by head");
    out_ = scratch.room<float>(length_, "attention by head");
  }

  void forward(std::int64_t layer, const GpuRef<float>& qkv, const GpuRef<float>& out) {
    const auto t = shape_.sequence, d = shape_.head_size();
    const auto& weights = weights_[static_cast<std::size_t>(layer)];
    to_heads(3, qkv, qkv_);
    multiply(keys(qkv_), kYes, queries(qkv_), kNo, weights, t, t, d);
    device_.launch(kernels_.causal_softmax, kernels_.rows(matrices_ * t, false),
                   static_cast<int>(t), scale(), update(weights));
    multiply(values(qkv_), kNo, weights, kNo, out_, d, t, t);
    from_heads(1, out_, out);
  }

  /// The gradient of qkv from that of the result.
  void backward(std::int64_t layer, const GpuRef<float>& qkv, const GpuRef<float>& /*out*/,
                const GpuRef<float>& d_out, const GpuRef<float>& d_qkv, const GpuRef<float>& sums) {
    const auto t = shape_.sequence, d = shape_.head_size();
    const auto& weights = weights_[static_cast<std::size_t>(layer)];
    to_heads(3, qkv, qkv_);
    to_heads(1, d_out, out_);
    multiply(values(qkv_), kYes, out_, kNo, d_weights_, t, t, d);
    multiply(out_, kNo, weights, kYes, values(d_qkv_), d, t, t);
    device_.launch(kernels_.causal_softmax_backward, kernels_.rows(matrices_ * t, false),
                   static_cast<int>(t), scale(), read(weights), update(d_weights_));
    multiply(keys(qkv_), kNo, d_weights_, kNo, queries(d_qkv_), d, t, t);
    multiply(queries(qkv_), kNo, d_weights_, kYes, keys(d_qkv_), d, t, t);
    from_heads(3, d_qkv_, d_qkv);
    const auto columns = 3 * shape_.channels;
    device_.launch(kernels_.column_sums, kernels_.sums(columns), static_cast<int>(columns),
                   d_qkv.length() / columns, read(d_qkv), write(sums));
  }

 private:
  static constexpr auto kNo = blas::Transpose::no, kYes = blas::Transpose::yes;

  [[nodiscard]] GpuRef<float> queries(const GpuRef<float>& all) const {
    return all.slice(0, length_);
  }
  [[nodiscard]] GpuRef<float> keys(const GpuRef<float>& all) const {
    return all.slice(length_, length_);
  }
  [[nodiscard]] GpuRef<float> values(const GpuRef<float>& all) const {
    return all.slice(2 * length_, length_);
  }
  void to_heads(int parts, const GpuRef<float>& rows, const GpuRef<float>& heads) {
    device_.launch(kernels_.to_heads, OwnKernels::each(rows.length()), parts, rows.length(),
                   read(rows), write(heads));
  }
  void from_heads(int parts, const GpuRef<float>& heads, const GpuRef<float>& rows) {
    device_.launch(kernels_.from_heads, OwnKernels::each(rows.length()), parts, rows.length(),
                   read(heads), write(rows));
  }
  /// Of all heads of all sequences: c, m x n, from k products each.
  void multiply(const GpuRef<float>& a, blas::Transpose transpose_a, const GpuRef<float>& b,
                blas::Transpose transpose_b, const GpuRef<float>& c, std::int64_t m, std::int64_t n,
                std::int64_t k) {
    device_.blas().gemm_batched<float>(
        a, b, c, {.m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b},
        {.batch = matrices_, .stride_a = m * k, .stride_b = k * n, .stride_c = m * n});
  }
  [[nodiscard]] float scale() const {
    return 1 / std::sqrt(static_cast<float>(shape_.head_size()));
  }

  Device& device_;
  const OwnKernels& kernels_;
  const Shape shape_;
  const std::int64_t matrices_, length_;
  std::vector<GpuRef<float>> weights_;  ///< of each layer: batch, heads, queries, keys
  GpuRef<float> d_weights_, qkv_, d_qkv_, out_;
};

/// In bf16 by dnn: cuDNN's fused attention, which keeps no matrix of weights.
template <>
class Attention<BFloat16> {
 public:
  Attention(Device& device, const OwnKernels& kernels, Scratch& scratch, const Shape& shape,
            std::int64_t batch)
      : device_(device),
        kernels_(kernels),
        shape_(shape),
        batch_(batch),
        length_(batch * shape.sequence * shape.channels),
        of_qkv_({batch, shape.heads, shape.sequence, shape.head_size()},
                {3 * shape.channels * shape.sequence, shape.head_size(), 3 * shape.channels, 1}) {
    for (std::int64_t layer = 0; layer < shape.layers; ++layer)
      stats_.push_back(
          scratch.room<float>(batch * shape.sequence * shape.heads, "statistics of attention"));
    d_qkv_ = scratch.room<BFloat16>(3 * length_, "gradients of q, of k, of v");
  }

  void forward(std::int64_t layer, const GpuRef<BFloat16>& qkv, const GpuRef<BFloat16>& out) {
    dnn::Graph graph;
    const auto in = inputs(graph);
    const auto made = dnn::attention(graph, in, kRule, true);
    graph.output(made.o, DType::bf16);
    graph.output(made.stats, DType::f32);
    auto memory = bound(in, qkv);
    memory.emplace_back(made.o, out);
    memory.emplace_back(made.stats, stats_[static_cast<std::size_t>(layer)]);
    dnn::on(device_).run(graph, memory);
  }

  /// The gradient of qkv from that of the result.
  void backward(std::int64_t layer, const GpuRef<BFloat16>& qkv, const GpuRef<BFloat16>& out,
                const GpuRef<BFloat16>& d_out, const GpuRef<BFloat16>& d_qkv,
                const GpuRef<float>& sums) {
    dnn::Graph graph;
    const auto in = inputs(graph);
    const auto of_out =
        dnn::sequence_major(batch_, shape_.heads, shape_.sequence, shape_.head_size());
    const auto o = graph.input(DType::bf16, of_out), d_o = graph.input(DType::bf16, of_out);
    const auto stats = graph.input(DType::f32, {batch_, shape_.heads, shape_.sequence, 1});
    const auto made = dnn::attention_backward(graph, in, {o, stats}, d_o, kRule);
    auto memory = bound(in, qkv);
    memory.emplace_back(o, out), memory.emplace_back(d_o, d_out);
    memory.emplace_back(stats, stats_[static_cast<std::size_t>(layer)]);
    std::int64_t first = 0;
    for (const auto tensor : {made.q, made.k, made.v}) {
      graph.output(tensor, DType::bf16);
      memory.emplace_back(tensor, d_qkv_.slice(first, length_));
      first += length_;
    }
    dnn::on(device_).run(graph, memory);
    // Outputs are ranges apart from one another: each has come by itself, in rows of one head.
    device_.launch(kernels_.join_qkv, kernels_.sums(3 * shape_.channels), batch_ * shape_.sequence,
                   read(d_qkv_), write(d_qkv), write(sums));
  }

 private:
  static inline const dnn::AttentionRule kRule{.mask = dnn::Mask::causal()};

  [[nodiscard]] dnn::AttentionInputs inputs(dnn::Graph& graph) const {
    return {.q = graph.input(DType::bf16, of_qkv_),
            .k = graph.input(DType::bf16, of_qkv_),
            .v = graph.input(DType::bf16, of_qkv_)};
  }
  [[nodiscard]] std::vector<dnn::Bound> bound(const dnn::AttentionInputs& in,
                                              const GpuRef<BFloat16>& qkv) const {
    const auto part = [&](std::int64_t which) {
      return qkv.slice(shape_.channels * which, qkv.length() - 2 * shape_.channels);
    };
    return {{in.q, part(0)}, {in.k, part(1)}, {in.v, part(2)}};
  }

  Device& device_;
  const OwnKernels& kernels_;
  const Shape shape_;
  const std::int64_t batch_, length_;
  const dnn::Layout of_qkv_;
  std::vector<GpuRef<float>> stats_;
  GpuRef<BFloat16> d_qkv_;
};

}  // namespace troupe::train
