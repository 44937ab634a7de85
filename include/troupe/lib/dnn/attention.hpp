#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include <troupe/lib/dnn/graph.hpp>

/// Attention and its gradients.
namespace troupe::dnn {

/// Where the diagonal of queries and keys lies: it begins at the first query and the first key, or
/// ends at the last query and the last key.
enum class Diagonal : std::uint32_t { top_left, bottom_right };

/// Which keys a query sees: query i sees key j if i + d - left < j <= i + d + right. d is 0, or the
/// number of keys less that of queries if the diagonal is at the bottom right.
struct Mask {
  Diagonal diagonal = Diagonal::top_left;
  std::optional<std::int64_t> left;   ///< at least 1; none: all that come before
  std::optional<std::int64_t> right;  ///< at least 0; none: all that follow

  /// Nothing that follows.
  static Mask causal(Diagonal diagonal = Diagonal::top_left) { return {diagonal, {}, 0}; }
  /// The last `left` keys up to its own.
  static Mask window(std::int64_t left, Diagonal diagonal = Diagonal::top_left) {
    return {diagonal, left, 0};
  }
};

/// How an attention weighs keys.
struct AttentionRule {
  std::optional<float> scale = {};  ///< finite, not negative; none: 1 / sqrt(dim_qk)
  Mask mask = {};
  /// Adds slope[h] * (j - i) to scores (Press et al., Train Short, Test Long, 2022). With n heads,
  /// a power of two, slope[h] = 2^(-8 (h + 1) / n). Otherwise n is the largest power of two below,
  /// and the remaining heads have 2^(-4 (2 r + 1) / n), r = 0, 1... The mask is Mask::causal(), or
  /// a window of that diagonal.
  bool alibi = false;
  /// With which probability elements of AttentionInputs::dropout_mask are 0: at least 0, below 1.
  float dropout = 0;
};

/// Extents batch, heads, sequence, dim; packed in the order batch, sequence, heads, dim.
Layout sequence_major(std::int64_t batch, std::int64_t heads, std::int64_t sequence,
                      std::int64_t dim);

/// What attention reads.
struct AttentionInputs {
  TensorId q;          ///< batch, heads_q, sequence_q, dim_qk
  TensorId k;          ///< batch, heads_kv, sequence_kv, dim_qk; see page_table_k
  TensorId v;          ///< batch, heads_kv, sequence_kv, dim_v
  TensorId bias = {};  ///< batch, heads_q, sequence_q, sequence_kv, or 1 each: added to scores
  /// Both or none, batch, 1, 1, 1 in i32: how many queries and keys of each sequence there are,
  /// from the first ones on, at most all. The keys behind them are not seen, the queries behind
  /// them see nothing. A diagonal at the bottom right ends at the last ones that there are.
  TensorId length_q = {}, length_kv = {};
  /// 1, heads_q, 1, 1 in f32: the score of a key more, which each query sees and whose v is 0.
  TensorId sink = {};
  /// batch, heads_q, sequence_q, sequence_kv: 1 where a weight is kept and 0 where it is dropped,
  /// from dnn::dropout_mask(). What is kept is divided by 1 - AttentionRule::dropout. Both passes
  /// take the same mask.
  TensorId dropout_mask = {};
  /// Both or none, batch, 1, pages, 1 in i32, and then also lengths. k and v are pages of as many
  /// keys, in any order: pages there are, heads_kv, keys of a page, dim. Keys j * size... of a
  /// sequence are in page page_table[b, 0, j, 0]; sequence_kv is pages * size. Pages behind the
  /// last key are not read; there is no gradient.
  TensorId page_table_k = {}, page_table_v = {};
};
/// What an attention makes.
struct AttentionOutputs {
  TensorId o;      ///< batch, heads_q, sequence_q, dim_v, ordered in memory as q
  TensorId stats;  ///< batch, heads_q, sequence_q, 1
};
/// Gradients with regard to the inputs of an attention.
struct AttentionGradients {
  TensorId q, k, v;  ///< as q, k and v
  TensorId bias;     ///< as the bias: sums where it stands for many
};

/// Adds scaled dot-product attention (Vaswani et al., Attention Is All You Need, 2017), for each
/// batch b and head h:
///
///     o[b, h, i] = sum over j of p[i, j] v[b, h', j],  p[i] = softmax over j of s[i, j]
///     s[i, j] = scale * (q[b, h, i] . k[b, h', j]) + bias[b, h, i, j]
///     stats[b, h, i] = log of the sum over j of exp(s[i, j])
///
/// With dropout, o sums p[i, j] mask[b, h, i, j] / (1 - dropout) v[b, h', j]. A sink adds
/// exp(sink[h]) to the sums of the softmax and of stats.
///
/// where j runs over the keys that query i sees. heads_q is a multiple of heads_kv: head h of q
/// uses head h' = h / (heads_q / heads_kv) of k and v (grouped queries). A query that sees no key
/// has o = 0 and stats = -infinity, or sink[h] if there is a sink and the query is not behind
/// length_q.
///
/// Keys and values that a query does not see enter neither its sums nor the gradients, so they may
/// be NaN. (A bias of minus infinity is a number: it makes a weight of 0, and 0 times NaN is NaN.)
/// cuDNN multiplies masked elements by 0, so a NaN or an infinity in them may reach its results.
///
/// Computed in f32; an engine may round p to the type of q before the second sum. The cpu engine
/// has all of it. cuDNN refuses, as unsupported, some of it:
///   - f32, if it would multiply in tf32,
///   - dims that are not multiples of 8 up to 128 (on some GPUs 256),
///   - a causal mask at the bottom right together with a bias or dropout,
///   - gradients with dropout, which cuDNN 9.14 computes wrongly without an error,
///   - without lengths and with more queries than keys: such a mask, and one with `left`.
AttentionOutputs attention(Graph& graph, const AttentionInputs& inputs,
                           const AttentionRule& rule = {}, bool with_stats = false);

/// Adds the gradients of attention, from that of o, d_o. o and stats are what attention() has made.
///
///     p = exp(s - stats),  ds[i, j] = p[i, j] (d_o[i] . v[j] - d_o[i] . o[i])
///     d_v[j] = sum over i of p[i, j] d_o[i],  d_bias = ds
///     d_q[i] = scale * sum over j of ds[i, j] k[j],  d_k[j] = scale * sum over i of ds[i, j] q[i]
///
/// Those of k and v are summed over the heads that use them. A repetition gives the same bits.
/// cuDNN refuses what it refuses of attention(), and gradients of one query and one key.
/// `with_bias`: also the gradient of the bias.
AttentionGradients attention_backward(Graph& graph, const AttentionInputs& inputs,
                                      const AttentionOutputs& outputs, TensorId d_o,
                                      const AttentionRule& rule = {}, bool with_bias = false);

/// Adds the gradient of the sink, 1, heads_q, 1, 1, from what attention() has read and made:
///
///     d_sink[h] = - sum over b, i of exp(sink[h] - stats[b, h, i]) (d_o[b, h, i] . o[b, h, i])
///
/// See dnn/moving.hpp for what the cuda engine computes: it needs a graph apart from
/// attention_backward(), which needs no sink.
TensorId attention_sink_backward(Graph& graph, TensorId sink, const AttentionOutputs& outputs,
                                 TensorId d_o);

template <class T>
concept Narrow = std::same_as<T, Half> || std::same_as<T, BFloat16>;

}  // namespace troupe::dnn

namespace troupe {

/// The shape of an attention, and what it computes.
struct AttentionOptions {
  std::int64_t batch = 1;
  std::int64_t heads_q = 1;
  std::int64_t heads_kv = 0;  ///< 0: heads_q
  std::int64_t sequence_q = 0;
  std::int64_t sequence_kv = 0;  ///< 0: sequence_q
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;  ///< 0: dim_qk
  dnn::Mask mask = {};
  std::optional<float> scale = {};  ///< none: 1 / sqrt(dim_qk)
  bool alibi = false;               ///< see dnn::AttentionRule
  /// Both or none: `batch` numbers; see dnn::AttentionInputs.
  GpuRef<std::int32_t> length_q = {}, length_kv = {};

  [[nodiscard]] dnn::AttentionRule rule() const { return {scale, mask, alibi, 0}; }
};

/// Attention and its gradients as calls of their own; see dnn::attention() and
/// dnn::attention_backward() for the formulas. All operands are row-major and packed, the last
/// index varies fastest:
///   q      batch, sequence_q, heads_q, dim_qk
///   k      batch, sequence_kv, heads_kv, dim_qk
///   v      batch, sequence_kv, heads_kv, dim_v
///   o      batch, sequence_q, heads_q, dim_v
///   stats  batch, heads_q, sequence_q in f32
/// A gradient has the shape of what it is the gradient of. A graph takes other layouts, a bias,
/// dropout, a sink and pages.
class DnnAttention {
 public:
  explicit DnnAttention(detail::Submitter& submitter) : graphs_(submitter) {}

  template <dnn::Narrow T>
  Future<void> attention(const GpuRef<T>& q, const GpuRef<T>& k, const GpuRef<T>& v,
                         const GpuRef<T>& o, const AttentionOptions& shape) const {
    return attend(q, k, v, o, nullptr, shape);
  }
  /// Also computes stats, which the gradients need.
  template <dnn::Narrow T>
  Future<void> attention(const GpuRef<T>& q, const GpuRef<T>& k, const GpuRef<T>& v,
                         const GpuRef<T>& o, const GpuRef<float>& stats,
                         const AttentionOptions& shape) const {
    return attend(q, k, v, o, &stats, shape);
  }

  /// What the gradients are computed from and written to.
  template <dnn::Narrow T>
  struct Backward {
    GpuRef<T> q, k, v, o, d_o;
    GpuRef<float> stats;
    GpuRef<T> d_q, d_k, d_v;
  };
  template <dnn::Narrow T>
  Future<void> attention_backward(const Backward<T>& memory, const AttentionOptions& shape) const {
    dnn::Graph graph;
    const auto in = inputs(graph, dtype_of<T>, shape);
    const auto o = result(graph, dtype_of<T>, shape), d_o = result(graph, dtype_of<T>, shape);
    const auto stats = graph.input(DType::f32, {shape.batch, shape.heads_q, shape.sequence_q, 1});
    const auto made = dnn::attention_backward(graph, in, {o, stats}, d_o, shape.rule());
    for (const auto tensor : {made.q, made.k, made.v}) graph.output(tensor, dtype_of<T>);
    return compute(graph, in, shape,
                   {{in.q, memory.q},
                    {in.k, memory.k},
                    {in.v, memory.v},
                    {o, memory.o},
                    {d_o, memory.d_o},
                    {stats, memory.stats},
                    {made.q, memory.d_q},
                    {made.k, memory.d_k},
                    {made.v, memory.d_v}});
  }

 private:
  static dnn::AttentionInputs inputs(dnn::Graph& graph, DType dtype, const AttentionOptions& shape);
  /// A tensor of the shape of o that is read.
  static dnn::TensorId result(dnn::Graph& graph, DType dtype, const AttentionOptions& shape);
  Future<void> compute(const dnn::Graph& graph, const dnn::AttentionInputs& in,
                       const AttentionOptions& shape, std::vector<dnn::Bound> memory) const;

  template <class T>
  Future<void> attend(const GpuRef<T>& q, const GpuRef<T>& k, const GpuRef<T>& v,
                      const GpuRef<T>& o, const GpuRef<float>* stats,
                      const AttentionOptions& shape) const {
    dnn::Graph graph;
    const auto in = inputs(graph, dtype_of<T>, shape);
    const auto made = dnn::attention(graph, in, shape.rule(), stats != nullptr);
    graph.output(made.o, dtype_of<T>);
    std::vector<dnn::Bound> memory{{in.q, q}, {in.k, k}, {in.v, v}, {made.o, o}};
    if (stats != nullptr) {
      graph.output(made.stats, DType::f32);
      memory.emplace_back(made.stats, *stats);
    }
    return compute(graph, in, shape, std::move(memory));
  }

  DnnGraphs graphs_;
};

}  // namespace troupe
