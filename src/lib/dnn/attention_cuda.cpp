#include <limits>

#include "lib/dnn/frontend_cuda.hpp"

/// Attention as a graph of cuDNN.
namespace troupe::host::cuda {
namespace {

/// What cuDNN calls the operands. Addresses are given in this order.
namespace of_attention {
enum : std::int64_t { q = 1, k, v, o, stats };
}  // namespace of_attention

}  // namespace

Described describe(const dnn::Attention& op) {
  auto graph = graph_of(op.dtype);
  // Extents as cuDNN orders them, the heads second, where the sequence varies more slowly.
  const auto dims = [&](std::int64_t sequence, std::int64_t heads, std::int64_t dim) {
    return Numbers{op.batch, heads, sequence, dim};
  };
  const auto strides = [](std::int64_t sequence, std::int64_t heads, std::int64_t dim) {
    return Numbers{sequence * heads * dim, dim, heads * dim, 1};
  };
  const auto input = [&](std::int64_t id, std::int64_t sequence, std::int64_t heads,
                         std::int64_t dim) {
    return graph->tensor(fe::graph::Tensor_attributes()
                             .set_dim(dims(sequence, heads, dim))
                             .set_stride(strides(sequence, heads, dim))
                             .set_uid(id));
  };
  const auto q = input(of_attention::q, op.sequence_q, op.heads_q, op.dim_qk);
  const auto k = input(of_attention::k, op.sequence_kv, op.heads_kv, op.dim_qk);
  const auto v = input(of_attention::v, op.sequence_kv, op.heads_kv, op.dim_v);
  // By 0 cuDNN makes NaN of the minus infinity of keys that there are not.
  const float scale = op.scale == 0 ? std::numeric_limits<float>::min() : op.scale;
  auto attributes =
      fe::graph::SDPA_attributes().set_generate_stats(op.stats.present()).set_attn_scale(scale);
  if (op.mask == dnn::Mask::causal) {
    attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  }
  const auto outputs = graph->sdpa(q, k, v, std::move(attributes));
  outputs[0]
      ->set_output(true)
      .set_dim(dims(op.sequence_q, op.heads_q, op.dim_v))
      .set_stride(strides(op.sequence_q, op.heads_q, op.dim_v))
      .set_uid(of_attention::o);
  if (op.stats.present()) {
    outputs[1]
        ->set_output(true)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({op.batch, op.heads_q, op.sequence_q, 1})
        .set_stride({op.heads_q * op.sequence_q, op.sequence_q, 1, 1})
        .set_uid(of_attention::stats);
  }
  return {std::move(graph), {Note::NONDETERMINISTIC}};
}

}  // namespace troupe::host::cuda
