#include <limits>

#include "lib/dnn/attention/view.hpp"
#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::host::cuda {
namespace {

/// What both directions have; `in`: the node's inputs by name.
template <class Attributes, class Inputs>
void set_rule(Attributes& attributes, const dnn::AttentionView& view, const Inputs& in) {
  // By 0 cuDNN makes NaN of the minus infinity of keys that there are not.
  attributes.set_attn_scale(view.scale == 0 ? std::numeric_limits<float>::min() : view.scale)
      .set_alibi_mask(view.alibi())
      .set_diagonal_alignment(view.bottom_right() ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                                  : fe::DiagonalAlignment_t::TOP_LEFT);
  if (view.left() >= 0) attributes.set_diagonal_band_left_bound(static_cast<int>(view.left()));
  if (view.right() >= 0) attributes.set_diagonal_band_right_bound(static_cast<int>(view.right()));
  if (in.bias != nullptr) attributes.set_bias(in.bias);
  if (in.length_q != nullptr)
    attributes.set_padding_mask(true).set_seq_len_q(in.length_q).set_seq_len_kv(in.length_kv);
}

/// A number of the node's own, as cuDNN takes it.
Tensor factor(float value) {
  return std::make_shared<fe::graph::Tensor_attributes>(value);
}

}  // namespace

Nodes add_attention(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  const dnn::AttentionView view(node);
  auto attributes = fe::graph::SDPA_attributes().set_generate_stats(view.stats != nullptr);
  const auto in = dnn::of_node::named<dnn::of_node::AttentionInputs>(inputs);
  set_rule(attributes, view, in);
  if (view.dropout_mask != nullptr)
    attributes.set_dropout(in.dropout_mask, factor(1 / (1 - view.dropout)));
  if (view.sink != nullptr) attributes.set_sink_token(in.sink);
  if (view.page_table_k != nullptr) {
    attributes.set_paged_attention_k_table(in.page_table_k)
        .set_paged_attention_v_table(in.page_table_v)
        .set_paged_attention_max_seq_len_kv(static_cast<int>(view.keys()));
  }
  const auto made = graph.sdpa(in.q, in.k, in.v, std::move(attributes));
  return {made[0], made[1]};
}

Nodes add_attention_backward(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  const dnn::AttentionView view(node);
  // Seen with cuDNN 9.14: with a mask, the gradients of q and k come out wrong without an error.
  if (view.dropout_mask != nullptr) return {};
  auto attributes = fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(true);
  const auto in = dnn::of_node::named<dnn::of_node::AttentionBackwardInputs>(inputs);
  set_rule(attributes, view, in);
  Tensor d_bias;
  if (view.d_bias != nullptr) {
    d_bias = graph.tensor(fe::graph::Tensor_attributes());
    attributes.set_dbias(d_bias);
  }
  const auto made =
      graph.sdpa_backward(in.q, in.k, in.v, in.o, in.d_o, in.stats, std::move(attributes));
  return {made[0], made[1], made[2], d_bias};
}

}  // namespace troupe::host::cuda
