#pragma once

#include <utility>

#include "dnn_attention_oracle.hpp"

/// Attentions on the device, for tests of the library dnn.
namespace troupe::test {

/// The operands of a problem on the device, in T. Typed calls compute what they can. What is
/// written is 7 before.
template <class T>
class AttentionOnDevice {
 public:
  explicit AttentionOnDevice(const AttentionProblem& problem)
      : problem_(problem), options_(problem.options) {
    for (const auto* const values : {&problem.q, &problem.k, &problem.v, &problem.d_o})
      read_.push_back(put(narrowed<T>(*values)));
    for (const auto* const values : {&problem.d_o, &problem.q, &problem.k, &problem.v})
      written_.push_back(put(narrowed<T>(std::vector<double>(values->size(), 7))));
    stats_ = put(std::vector<float>(static_cast<std::size_t>(problem.queries()), 7));
    if (problem.biased()) {
      bias_ = put(narrowed<T>(problem.bias));
      d_bias_ = put(narrowed<T>(std::vector<double>(problem.bias.size(), 7)));
    }
    if (!problem.sink.empty()) sink_ = put(narrowed<float>(problem.sink));
    if (!problem.dropout_mask.empty()) dropout_mask_ = put(narrowed<T>(problem.dropout_mask));
    if (problem.length_q.empty()) return;
    options_.length_q = put(problem.length_q);
    options_.length_kv = put(problem.length_kv);
  }

  Result<void> forward(bool with_stats = true) {
    const auto &q = read_[0], &k = read_[1], &v = read_[2], &o = written_[0];
    if constexpr (dnn::Narrow<T>) {
      auto layer = dnn::on(device());
      if (!needs_graph()) {
        return done(with_stats ? layer.attention(q, k, v, o, stats_, options_)
                               : layer.attention(q, k, v, o, options_));
      }
    }
    dnn::Graph graph;
    auto in = inputs(graph);
    if (sink_) in.sink = graph.input(DType::f32, {1, options_.heads_q, 1, 1});
    const auto made = dnn::attention(graph, in, rule(), with_stats);
    graph.output(made.o, dtype_of<T>);
    auto memory = memory_of(in);
    if (sink_) memory.emplace_back(in.sink, sink_);
    memory.emplace_back(made.o, o);
    if (with_stats) {
      graph.output(made.stats, DType::f32);
      memory.emplace_back(made.stats, stats_);
    }
    return done(dnn::on(device()).run(graph, memory));
  }

  /// After forward().
  Result<void> backward() {
    if constexpr (dnn::Narrow<T>) {
      if (!needs_graph()) {
        return done(dnn::on(device()).attention_backward<T>(
            {read_[0], read_[1], read_[2], written_[0], read_[3], stats_, written_[1], written_[2],
             written_[3]},
            options_));
      }
    }
    dnn::Graph graph;
    const auto in = inputs(graph);
    const auto& shape = options_;
    const auto of_o = [&] {
      return graph.input(dtype_of<T>, dnn::sequence_major(shape.batch, shape.heads_q,
                                                          shape.sequence_q, shape.dim_v));
    };
    const auto o = of_o(), d_o = of_o();
    const auto stats = graph.input(DType::f32, {shape.batch, shape.heads_q, shape.sequence_q, 1});
    const auto made =
        dnn::attention_backward(graph, in, {o, stats}, d_o, rule(), problem_.biased());
    auto memory = memory_of(in);
    memory.insert(memory.end(), {{o, written_[0]},
                                 {d_o, read_[3]},
                                 {stats, stats_},
                                 {made.q, written_[1]},
                                 {made.k, written_[2]},
                                 {made.v, written_[3]}});
    for (const auto tensor : {made.q, made.k, made.v}) graph.output(tensor, dtype_of<T>);
    if (problem_.biased()) {
      graph.output(made.bias, dtype_of<T>);
      memory.emplace_back(made.bias, d_bias_);
    }
    return done(dnn::on(device()).run(graph, memory));
  }

  /// The gradient of the sink. After forward().
  std::vector<float> d_sink() {
    const auto& shape = options_;
    dnn::Graph graph;
    const auto sink = graph.input(DType::f32, {1, shape.heads_q, 1, 1});
    const auto of_o = [&] {
      return graph.input(dtype_of<T>, dnn::sequence_major(shape.batch, shape.heads_q,
                                                          shape.sequence_q, shape.dim_v));
    };
    const auto o = of_o(), d_o = of_o();
    const auto stats = graph.input(DType::f32, {shape.batch, shape.heads_q, shape.sequence_q, 1});
    const auto made = dnn::attention_sink_backward(graph, sink, {o, stats}, d_o);
    graph.output(made, DType::f32);
    const auto gradient = device().alloc<float>(shape.heads_q);
    dnn::on(device())
        .run(graph,
             {{sink, sink_}, {o, written_[0]}, {d_o, read_[3]}, {stats, stats_}, {made, gradient}})
        .get();
    return device().download(gradient);
  }

  [[nodiscard]] std::vector<T> o() const { return device().download(written_[0]); }
  [[nodiscard]] std::vector<float> stats() const { return device().download(stats_); }
  [[nodiscard]] std::vector<T> d_q() const { return device().download(written_[1]); }
  [[nodiscard]] std::vector<T> d_k() const { return device().download(written_[2]); }
  [[nodiscard]] std::vector<T> d_v() const { return device().download(written_[3]); }
  [[nodiscard]] std::vector<T> d_bias() const {
    return d_bias_ ? device().download(d_bias_) : std::vector<T>();
  }
  /// Whether what is read is still what it was.
  [[nodiscard]] bool untouched() const {
    return widened(device().download(read_[0])) == problem_.q &&
           widened(device().download(read_[1])) == problem_.k &&
           widened(device().download(read_[2])) == problem_.v &&
           widened(device().download(read_[3])) == problem_.d_o;
  }

 private:
  [[nodiscard]] bool needs_graph() const { return problem_.biased() || sink_ || dropout_mask_; }
  [[nodiscard]] dnn::AttentionRule rule() const {
    auto rule = options_.rule();
    rule.dropout = problem_.dropout;
    return rule;
  }
  dnn::AttentionInputs inputs(dnn::Graph& graph) const {
    const auto& shape = options_;
    const auto input = [&](std::int64_t heads, std::int64_t sequence, std::int64_t dim) {
      return graph.input(dtype_of<T>, dnn::sequence_major(shape.batch, heads, sequence, dim));
    };
    dnn::AttentionInputs in{.q = input(shape.heads_q, shape.sequence_q, shape.dim_qk),
                            .k = input(shape.heads_kv, shape.sequence_kv, shape.dim_qk),
                            .v = input(shape.heads_kv, shape.sequence_kv, shape.dim_v)};
    if (const auto& extents = problem_.bias_extents; problem_.biased())
      in.bias = graph.input(dtype_of<T>, {extents[0], extents[1], extents[2], extents[3]});
    if (dropout_mask_) {
      in.dropout_mask = graph.input(
          dtype_of<T>, {shape.batch, shape.heads_q, shape.sequence_q, shape.sequence_kv});
    }
    if (!shape.length_q) return in;
    in.length_q = graph.input(DType::i32, {shape.batch, 1, 1, 1});
    in.length_kv = graph.input(DType::i32, {shape.batch, 1, 1, 1});
    return in;
  }
  std::vector<dnn::Bound> memory_of(const dnn::AttentionInputs& in) const {
    std::vector<dnn::Bound> memory{{in.q, read_[0]}, {in.k, read_[1]}, {in.v, read_[2]}};
    if (in.bias.present()) memory.emplace_back(in.bias, bias_);
    if (in.dropout_mask.present()) memory.emplace_back(in.dropout_mask, dropout_mask_);
    if (in.length_q.present()) {
      memory.emplace_back(in.length_q, options_.length_q);
      memory.emplace_back(in.length_kv, options_.length_kv);
    }
    return memory;
  }
  static Result<void> done(const Future<void>& future) {
    auto result = future.wait();
    if (!result.ok()) (void)device().take_error();
    return result;
  }

  const AttentionProblem& problem_;
  AttentionOptions options_;
  std::vector<GpuRef<T>> read_, written_;  ///< q k v d_o; o d_q d_k d_v
  GpuRef<T> bias_, d_bias_, dropout_mask_;
  GpuRef<float> stats_, sink_;
};

}  // namespace troupe::test
