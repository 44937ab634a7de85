#pragma once

#include <troupe/lib/dnn/attention.hpp>

#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/graph/view.hpp"

namespace troupe::dnn {

/// A node attention or attention_backward by the names of its parts.
struct AttentionView {
  const TensorView *q, *k, *v, *bias, *length_q, *length_kv, *dropout_mask;
  const TensorView *sink, *page_table_k, *page_table_v;  ///< of attention
  const TensorView *o, *stats;  ///< made by attention, read by attention_backward
  const TensorView* d_o;        ///< of attention_backward, as all below
  const TensorView *d_q, *d_k, *d_v, *d_bias;
  std::span<const std::int64_t> numbers;
  float scale, dropout;

  explicit AttentionView(const NodeView& node)
      : numbers(node.numbers), scale(node.real(0)), dropout(node.real(5)) {
    sink = page_table_k = page_table_v = d_o = d_q = d_k = d_v = d_bias = nullptr;
    const auto take_both = [this](const auto& in) {
      q = in.q, k = in.k, v = in.v, bias = in.bias, dropout_mask = in.dropout_mask;
      length_q = in.length_q, length_kv = in.length_kv;
    };
    if (node.kind == NodeKind::attention_backward) {
      const auto in = of_node::named<of_node::AttentionBackwardInputs>(node.inputs);
      const auto out = of_node::named<of_node::AttentionBackwardOutputs>(node.outputs);
      take_both(in);
      o = in.o, d_o = in.d_o, stats = in.stats;
      d_q = out.d_q, d_k = out.d_k, d_v = out.d_v, d_bias = out.d_bias;
    } else {
      const auto in = of_node::named<of_node::AttentionInputs>(node.inputs);
      const auto out = of_node::named<of_node::AttentionOutputs>(node.outputs);
      take_both(in);
      sink = in.sink, page_table_k = in.page_table_k, page_table_v = in.page_table_v;
      o = out.o, stats = out.stats;
    }
  }

  // Numbers: scale, diagonal, left and right (-1: none), alibi, dropout.
  static constexpr std::size_t kNumbers = 6;
  [[nodiscard]] bool bottom_right() const noexcept { return numbers[1] != 0; }
  [[nodiscard]] std::int64_t left() const noexcept { return numbers[2]; }
  [[nodiscard]] std::int64_t right() const noexcept { return numbers[3]; }
  [[nodiscard]] bool alibi() const noexcept { return numbers[4] != 0; }

  [[nodiscard]] std::int64_t batch() const noexcept { return q->extents[0]; }
  [[nodiscard]] std::int64_t heads_q() const noexcept { return q->extents[1]; }
  [[nodiscard]] std::int64_t heads_kv() const noexcept { return k->extents[1]; }
  [[nodiscard]] std::int64_t queries() const noexcept { return q->extents[2]; }
  /// Of each sequence; pages times their keys are too many before they have been checked.
  [[nodiscard]] std::int64_t keys() const noexcept {
    return k->extents[2] * (page_table_k == nullptr ? 1 : page_table_k->extents[2]);
  }
  [[nodiscard]] std::int64_t dim_qk() const noexcept { return q->extents[3]; }
  [[nodiscard]] std::int64_t dim_v() const noexcept { return v->extents[3]; }
};

}  // namespace troupe::dnn
