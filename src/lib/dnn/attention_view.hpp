#pragma once

#include <troupe/lib/dnn_attention.hpp>

#include "lib/dnn/graph_view.hpp"

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

  /// Inputs q k v bias length_q length_kv dropout_mask sink page_table_k page_table_v, outputs o
  /// stats; or inputs q k v o d_o stats bias length_q length_kv dropout_mask, outputs d_q d_k d_v
  /// d_bias.
  explicit AttentionView(const NodeView& node)
      : q(node.inputs[0]), k(node.inputs[1]), v(node.inputs[2]), numbers(node.numbers) {
    const bool backward = node.kind == NodeKind::attention_backward;
    const std::size_t rest = backward ? 6 : 3;
    bias = node.inputs[rest];
    length_q = node.inputs[rest + 1];
    length_kv = node.inputs[rest + 2];
    dropout_mask = node.inputs[rest + 3];
    sink = backward ? nullptr : node.inputs[7];
    page_table_k = backward ? nullptr : node.inputs[8];
    page_table_v = backward ? nullptr : node.inputs[9];
    o = backward ? node.inputs[3] : node.outputs[0];
    d_o = backward ? node.inputs[4] : nullptr;
    stats = backward ? node.inputs[5] : node.outputs[1];
    d_q = backward ? node.outputs[0] : nullptr;
    d_k = backward ? node.outputs[1] : nullptr;
    d_v = backward ? node.outputs[2] : nullptr;
    d_bias = backward ? node.outputs[3] : nullptr;
    scale = node.real(0);
    dropout = node.real(5);
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
