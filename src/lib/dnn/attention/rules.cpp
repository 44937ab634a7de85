#include <troupe/lib/dnn/attention.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/dnn/attention/view.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::dnn {
namespace {

using Extents = std::array<std::int64_t, 4>;

std::vector<std::int64_t> numbers_of(const AttentionRule& rule, std::int64_t dim_qk) {
  const auto scale = rule.scale.value_or(1 / std::sqrt(static_cast<float>(dim_qk)));
  return {word_of(scale),
          static_cast<std::int64_t>(rule.mask.diagonal),
          rule.mask.left.value_or(-1),
          rule.mask.right.value_or(-1),
          rule.alibi ? 1 : 0,
          word_of(rule.dropout)};
}

/// Whether the inputs have the dimensions that the results' are taken from, and no bound is what
/// stands for none.
bool sound(Graph& graph, const AttentionInputs& inputs, const AttentionRule& rule) {
  for (const auto tensor : {inputs.q, inputs.k, inputs.v}) {
    if (graph.layout(tensor).extents.size() == 4) continue;
    graph.refuse("attention: q, k or v has not four dimensions");
    return false;
  }
  if (rule.mask.left.value_or(1) < 1 || rule.mask.right.value_or(0) < 0) {
    graph.refuse("attention: the mask's left bound is not positive, or its right one negative");
    return false;
  }
  return true;
}

bool has(const TensorView* tensor, const Extents& extents) {
  return std::equal(tensor->extents.begin(), tensor->extents.end(), extents.begin(), extents.end());
}

bool wrong_sink(const TensorView& sink, std::int64_t heads) {
  return sink.rank() != 4 || !has(&sink, {1, heads, 1, 1}) || sink.dtype != DType::f32;
}

/// What must hold for k and v that lie in pages.
std::string wrong_pages(const AttentionView& view) {
  constexpr auto kTooLong = std::int64_t{1} << 31;
  const auto *const k = view.page_table_k, *const v = view.page_table_v;
  if ((k == nullptr) != (v == nullptr)) return "there is a page table of k or of v alone";
  if (k == nullptr) return {};
  if (view.length_q == nullptr) return "there are page tables without lengths";
  for (const auto* const table : {k, v}) {
    if (table->rank() != 4 || table->dtype != DType::i32 || !table->in_memory() ||
        !has(table, {view.batch(), 1, k->extents[2], 1}))
      return "a page table has not one i32 for each page of a sequence";
  }
  if (!has(view.k, {view.k->extents[0], view.heads_kv(), view.k->extents[2], view.dim_qk()}) ||
      !has(view.v, {view.v->extents[0], view.heads_kv(), view.k->extents[2], view.dim_v()}))
    return "q and the pages of k and v do not fit one another";
  // Both are below 2^31.
  if (view.keys() >= kTooLong) return "the pages of a sequence have too many keys";
  return {};
}

/// What must hold for both kinds of nodes.
std::string wrong_shapes(const AttentionView& view) {
  constexpr auto kTooLong = std::int64_t{1} << 31;
  for (const auto* const tensor : {view.q, view.k, view.v}) {
    if (tensor->rank() != 4) return "q, k or v has not four dimensions";
  }
  if (!std::isfinite(view.scale) || view.scale < 0) return "the scale is negative or not finite";
  const auto batch = view.batch(), heads = view.heads_q(), queries = view.queries();
  if (auto message = wrong_pages(view); !message.empty()) return message;
  if (view.page_table_k == nullptr &&
      (!has(view.k, {batch, view.heads_kv(), view.keys(), view.dim_qk()}) ||
       !has(view.v, {batch, view.heads_kv(), view.keys(), view.dim_v()})))
    return "q, k and v do not fit one another";
  if (heads % view.heads_kv() != 0) return "the heads of q are no multiple of those of k and v";
  if (!has(view.o, {batch, heads, queries, view.dim_v()})) return "o has other extents";
  if (view.stats != nullptr &&
      (!has(view.stats, {batch, heads, queries, 1}) || view.stats->dtype != DType::f32))
    return "stats has other extents, or another type than f32";
  if (view.bias != nullptr) {
    const Extents whole{batch, heads, queries, view.keys()};
    if (!std::equal(view.bias->extents.begin(), view.bias->extents.end(), whole.begin(),
                    whole.end(), [](auto one, auto other) { return one == other || one == 1; }))
      return "the bias has an extent that is neither that of the scores nor 1";
  }
  if (!(view.dropout >= 0 && view.dropout < 1))
    return "the probability of dropout is negative, or not below 1";
  if (view.dropout_mask == nullptr && view.dropout != 0) return "there is dropout without a mask";
  if (view.dropout_mask != nullptr && !has(view.dropout_mask, {batch, heads, queries, view.keys()}))
    return "the mask of dropout has not the extents of the scores";
  if (view.sink != nullptr && wrong_sink(*view.sink, heads))
    return "the sink is not one f32 for each head of q";
  if ((view.length_q == nullptr) != (view.length_kv == nullptr))
    return "there is a length of queries or of keys alone";
  for (const auto* const length : {view.length_q, view.length_kv}) {
    if (length != nullptr && (!has(length, {batch, 1, 1, 1}) || length->dtype != DType::i32))
      return "lengths are not one i32 for each batch";
  }
  const auto numbers = view.numbers;
  if (numbers[1] < 0 || numbers[1] > 1 || numbers[4] < 0 || numbers[4] > 1) return "unknown mask";
  if (view.left() < -1 || view.left() == 0 || view.left() >= kTooLong || view.right() < -1 ||
      view.right() >= kTooLong)
    return "a bound of the mask is negative or too large";
  if (view.alibi() && (view.bottom_right() || view.right() != 0))
    return "alibi needs a causal mask from the top left";
  return {};
}

}  // namespace

Layout sequence_major(std::int64_t batch, std::int64_t heads, std::int64_t sequence,
                      std::int64_t dim) {
  const auto in_memory = Layout{batch, sequence, heads, dim}.strides;
  return {{batch, heads, sequence, dim}, {in_memory[0], in_memory[2], in_memory[1], in_memory[3]}};
}

AttentionOutputs attention(Graph& graph, const AttentionInputs& inputs, const AttentionRule& rule,
                           bool with_stats) {
  if (!sound(graph, inputs, rule)) return {};
  const auto q = graph.layout(inputs.q);
  auto extents = q.extents;
  extents[3] = graph.layout(inputs.v).extents[3];
  AttentionOutputs made;
  made.o = graph.between(packed_like(q, std::move(extents)));
  if (with_stats) made.stats = graph.between({q.extents[0], q.extents[1], q.extents[2], 1});
  graph.add(NodeKind::attention,
            {inputs.q, inputs.k, inputs.v, inputs.bias, inputs.length_q, inputs.length_kv,
             inputs.dropout_mask, inputs.sink, inputs.page_table_k, inputs.page_table_v},
            {made.o, made.stats}, numbers_of(rule, q.extents[3]));
  return made;
}

AttentionGradients attention_backward(Graph& graph, const AttentionInputs& inputs,
                                      const AttentionOutputs& outputs, TensorId d_o,
                                      const AttentionRule& rule, bool with_bias) {
  if (!sound(graph, inputs, rule)) return {};
  if (inputs.page_table_k.present() || inputs.page_table_v.present())
    graph.refuse("attention: there is no gradient of pages");
  const auto like = [&](TensorId tensor) {
    const auto layout = graph.layout(tensor);
    return graph.between(packed_like(layout, layout.extents));
  };
  AttentionGradients made{like(inputs.q), like(inputs.k), like(inputs.v), {}};
  if (with_bias) made.bias = like(inputs.bias);
  graph.add(NodeKind::attention_backward,
            {inputs.q, inputs.k, inputs.v, outputs.o, d_o, outputs.stats, inputs.bias,
             inputs.length_q, inputs.length_kv, inputs.dropout_mask},
            {made.q, made.k, made.v, made.bias},
            numbers_of(rule, graph.layout(inputs.q).extents[3]));
  return made;
}

TensorId attention_sink_backward(Graph& graph, TensorId sink, const AttentionOutputs& outputs,
                                 TensorId d_o) {
  const auto layout = graph.layout(sink);
  const auto result = graph.between(packed_like(layout, layout.extents));
  graph.add(NodeKind::sink_backward, {sink, outputs.o, d_o, outputs.stats}, {result}, {});
  return result;
}

std::string wrong_sink_backward(const NodeView& node) {
  const auto in = of_node::named<of_node::SinkBackwardInputs>(node.inputs);
  const auto &sink = *in.sink, &o = *in.o, &d_o = *in.d_o, &stats = *in.stats;
  if (o.rank() != 4 || !same_extents(o, d_o)) return "o and its gradient do not fit one another";
  if (wrong_sink(sink, o.extents[1]) || !same_extents(*node.outputs[0], sink))
    return "the sink is not one f32 for each head of q";
  if (stats.rank() != 4 || !has(&stats, {o.extents[0], o.extents[1], o.extents[2], 1}) ||
      stats.dtype != DType::f32)
    return "stats has other extents, or another type than f32";
  return {};
}

std::string wrong_attention(const NodeView& node) {
  return wrong_shapes(AttentionView(node));
}

std::string wrong_attention_backward(const NodeView& node) {
  const AttentionView view(node);
  if (auto message = wrong_shapes(view); !message.empty()) return message;
  if (!same_extents(*view.d_o, *view.o) || !same_extents(*view.d_q, *view.q) ||
      !same_extents(*view.d_k, *view.k) || !same_extents(*view.d_v, *view.v))
    return "a gradient has other extents";
  if (view.d_bias != nullptr && (view.bias == nullptr || !same_extents(*view.d_bias, *view.bias)))
    return "the gradient of the bias has other extents, or there is no bias";
  return {};
}

}  // namespace troupe::dnn

namespace troupe {

dnn::AttentionInputs DnnAttention::inputs(dnn::Graph& graph, DType dtype,
                                          const AttentionOptions& shape) {
  const auto heads_kv = shape.heads_kv == 0 ? shape.heads_q : shape.heads_kv;
  const auto keys = shape.sequence_kv == 0 ? shape.sequence_q : shape.sequence_kv;
  const auto dim_v = shape.dim_v == 0 ? shape.dim_qk : shape.dim_v;
  const auto input = [&](std::int64_t heads, std::int64_t sequence, std::int64_t dim) {
    return graph.input(dtype, dnn::sequence_major(shape.batch, heads, sequence, dim));
  };
  dnn::AttentionInputs in{.q = input(shape.heads_q, shape.sequence_q, shape.dim_qk),
                          .k = input(heads_kv, keys, shape.dim_qk),
                          .v = input(heads_kv, keys, dim_v)};
  if (shape.length_q) in.length_q = graph.input(DType::i32, {shape.batch, 1, 1, 1});
  if (shape.length_kv) in.length_kv = graph.input(DType::i32, {shape.batch, 1, 1, 1});
  return in;
}

dnn::TensorId DnnAttention::result(dnn::Graph& graph, DType dtype, const AttentionOptions& shape) {
  return graph.input(dtype, dnn::sequence_major(shape.batch, shape.heads_q, shape.sequence_q,
                                                shape.dim_v == 0 ? shape.dim_qk : shape.dim_v));
}

Future<void> DnnAttention::compute(const dnn::Graph& graph, const dnn::AttentionInputs& in,
                                   const AttentionOptions& shape,
                                   std::vector<dnn::Bound> memory) const {
  if (in.length_q.present()) memory.emplace_back(in.length_q, shape.length_q);
  if (in.length_kv.present()) memory.emplace_back(in.length_kv, shape.length_kv);
  return graphs_.run(graph, memory);
}

}  // namespace troupe
