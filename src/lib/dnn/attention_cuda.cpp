#include <limits>

#include "lib/dnn/attention_view.hpp"
#include "lib/dnn/frontend_cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// What both directions have, of tensors by their places in a node.
template <class Attributes>
void set_rule(Attributes& attributes, const dnn::AttentionView& view, const Tensor& bias,
              const Tensor& length_q, const Tensor& length_kv) {
  // By 0 cuDNN makes NaN of the minus infinity of keys that there are not.
  attributes.set_attn_scale(view.scale == 0 ? std::numeric_limits<float>::min() : view.scale)
      .set_alibi_mask(view.alibi())
      .set_diagonal_alignment(view.bottom_right() ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                                  : fe::DiagonalAlignment_t::TOP_LEFT);
  if (view.left() >= 0) attributes.set_diagonal_band_left_bound(static_cast<int>(view.left()));
  if (view.right() >= 0) attributes.set_diagonal_band_right_bound(static_cast<int>(view.right()));
  if (bias != nullptr) attributes.set_bias(bias);
  if (length_q != nullptr)
    attributes.set_padding_mask(true).set_seq_len_q(length_q).set_seq_len_kv(length_kv);
}

/// A number of the node's own, as cuDNN takes it.
Tensor factor(float value) {
  return std::make_shared<fe::graph::Tensor_attributes>(value);
}

}  // namespace

Nodes add_attention(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  const dnn::AttentionView view(node);
  auto attributes = fe::graph::SDPA_attributes().set_generate_stats(view.stats != nullptr);
  set_rule(attributes, view, inputs[3], inputs[4], inputs[5]);
  if (view.dropout_mask != nullptr)
    attributes.set_dropout(inputs[6], factor(1 / (1 - view.dropout)));
  if (view.sink != nullptr) attributes.set_sink_token(inputs[7]);
  if (view.page_table_k != nullptr) {
    attributes.set_paged_attention_k_table(inputs[8])
        .set_paged_attention_v_table(inputs[9])
        .set_paged_attention_max_seq_len_kv(static_cast<int>(view.keys()));
  }
  const auto made = graph.sdpa(inputs[0], inputs[1], inputs[2], std::move(attributes));
  return {made[0], made[1]};
}

Nodes add_attention_backward(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  const dnn::AttentionView view(node);
  // Seen with cuDNN 9.14: with a mask, the gradients of q and k come out wrong without an error.
  if (view.dropout_mask != nullptr) return {};
  auto attributes = fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(true);
  set_rule(attributes, view, inputs[6], inputs[7], inputs[8]);
  Tensor d_bias;
  if (view.d_bias != nullptr) {
    d_bias = graph.tensor(fe::graph::Tensor_attributes());
    attributes.set_dbias(d_bias);
  }
  const auto made = graph.sdpa_backward(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4],
                                        inputs[5], std::move(attributes));
  return {made[0], made[1], made[2], d_bias};
}

}  // namespace troupe::host::cuda
