#include "calls_dnn.hpp"

namespace troupe::judge {
namespace {

struct AttentionExtents {
  std::int64_t batch, heads_q, heads_kv, queries, keys, dim_qk, dim_v;

  explicit AttentionExtents(const Call& c)
      : batch(c.integer("batch")),
        heads_q(c.integer("heads_q")),
        heads_kv(c.integer("heads_kv")),
        queries(c.integer("queries")),
        keys(c.integer("keys")),
        dim_qk(c.integer("dim_qk")),
        dim_v(c.integer("dim_v")) {}
  [[nodiscard]] dnn::Layout o() const {
    return dnn::sequence_major(batch, heads_q, queries, dim_v);
  }
};

template <class T>
dnn::AttentionInputs attention_inputs(GraphOf& graph, const AttentionExtents& of) {
  const auto& c = *graph.call;
  dnn::AttentionInputs in{
      .q = graph.in<T>("q", dnn::sequence_major(of.batch, of.heads_q, of.queries, of.dim_qk)),
      .k = graph.in<T>("k", dnn::sequence_major(of.batch, of.heads_kv, of.keys, of.dim_qk)),
      .v = graph.in<T>("v", dnn::sequence_major(of.batch, of.heads_kv, of.keys, of.dim_v))};
  if (c.has("bias"))
    in.bias = graph.in<T>("bias", dnn::Layout(c.get<std::vector<std::int64_t>>("bias")));
  if (c.get<bool>("lengths")) {
    in.length_q = graph.in<std::int32_t>("length_q", {of.batch, 1, 1, 1});
    in.length_kv = graph.in<std::int32_t>("length_kv", {of.batch, 1, 1, 1});
  }
  return in;
}

dnn::AttentionRule attention_rule(const Call& c) {
  dnn::AttentionRule rule;
  rule.scale = static_cast<float>(c.get<double>("scale"));
  rule.mask.diagonal = c.choice<dnn::Diagonal>("diagonal", {"top_left", "bottom_right"});
  if (c.has("left")) rule.mask.left = c.integer("left");
  if (c.has("right")) rule.mask.right = c.integer("right");
  rule.alibi = c.get<bool>("alibi");
  return rule;
}

template <class T>
void add_attention_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return dnn::on(device); });
  add("attention", [](Call& c, auto on) {
    GraphOf graph{&c};
    const auto in = attention_inputs<T>(graph, AttentionExtents(c));
    const auto made = dnn::attention(graph.graph, in, attention_rule(c), true);
    graph.out<T>(made.o, "o");
    graph.out<float>(made.stats, "stats");
    graph.run(on);
  });
  add("attention_backward", [](Call& c, auto on) {
    GraphOf graph{&c};
    const AttentionExtents of(c);
    const auto in = attention_inputs<T>(graph, of);
    const auto o = graph.in<T>("o", of.o()), d_o = graph.in<T>("d_o", of.o()),
               stats = graph.in<float>("stats", {of.batch, of.heads_q, of.queries, 1});
    const auto made = dnn::attention_backward(graph.graph, in, {o, stats}, d_o, attention_rule(c),
                                              in.bias.present());
    graph.out<T>(made.q, "d_q");
    graph.out<T>(made.k, "d_k");
    graph.out<T>(made.v, "d_v");
    if (in.bias.present()) graph.out<T>(made.bias, "d_bias");
    graph.run(on);
  });
}

dnn::ChannelsShape channels_of(const Call& c) {
  return {c.integer("batch"), c.integer("channels"), c.get<std::vector<std::int64_t>>("spatial")};
}
float epsilon_of(const Call& c) {
  return static_cast<float>(c.get<double>("epsilon"));
}
NormStatistics statistics_of(Call& c) {
  return {c.buffer<float>("mean"), c.buffer<float>("inverse_deviation")};
}
/// What the gradients of all norms are computed from and written to.
template <class T>
struct NormArrays {
  GpuRef<T> dy, x, dx;
  GpuRef<float> scale, dscale, dbias;

  explicit NormArrays(Call& c)
      : dy(c.buffer<T>("dy")),
        x(c.buffer<T>("x")),
        dx(c.buffer<T>("dx")),
        scale(c.buffer<float>("scale")),
        dscale(c.buffer<float>("dscale")),
        dbias(c.buffer<float>("dbias")) {}
};

template <class T>
void add_norms_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return dnn::on(device); });
  add("layer_norm", [](Call& c, auto on) {
    on.layer_norm(c.buffer<T>("x"), c.buffer<float>("scale"), c.buffer<float>("bias"),
                  c.buffer<T>("y"), {epsilon_of(c), statistics_of(c)})
        .get();
  });
  add("layer_norm_backward", [](Call& c, auto on) {
    const NormArrays<T> of(c);
    on.layer_norm_backward(of.dy, of.x, of.scale, statistics_of(c), of.dx, of.dscale, of.dbias)
        .get();
  });
  add("rms_norm", [](Call& c, auto on) {
    on.rms_norm(c.buffer<T>("x"), c.buffer<float>("scale"), c.buffer<float>("bias"),
                c.buffer<T>("y"), {epsilon_of(c), c.buffer<float>("inverse_deviation")})
        .get();
  });
  add("rms_norm_backward", [](Call& c, auto on) {
    const NormArrays<T> of(c);
    on.rms_norm_backward(of.dy, of.x, of.scale, c.buffer<float>("inverse_deviation"), of.dx,
                         of.dscale, of.dbias)
        .get();
  });
  add("instance_norm", [](Call& c, auto on) {
    on.instance_norm(c.buffer<T>("x"), c.buffer<float>("scale"), c.buffer<float>("bias"),
                     c.buffer<T>("y"), channels_of(c), {epsilon_of(c), statistics_of(c)})
        .get();
  });
  add("instance_norm_backward", [](Call& c, auto on) {
    const NormArrays<T> of(c);
    on.instance_norm_backward(of.dy, of.x, of.scale, statistics_of(c), of.dx, of.dscale, of.dbias,
                              channels_of(c))
        .get();
  });
  add("group_norm", [](Call& c, auto on) {
    on.group_norm(c.buffer<T>("x"), c.buffer<float>("scale"), c.buffer<float>("bias"),
                  c.buffer<T>("y"), channels_of(c),
                  {c.integer("groups"), epsilon_of(c), statistics_of(c)})
        .get();
  });
  add("group_norm_backward", [](Call& c, auto on) {
    const NormArrays<T> of(c);
    on.group_norm_backward(of.dy, of.x, of.scale, statistics_of(c), of.dx, of.dscale, of.dbias,
                           channels_of(c), c.integer("groups"))
        .get();
  });
  add("batch_norm", [](Call& c, auto on) {
    const RunningStatistics running{c.buffer<float>("running_mean"),
                                    c.buffer<float>("running_variance"),
                                    c.buffer<float>("next_mean"), c.buffer<float>("next_variance"),
                                    static_cast<float>(c.get<double>("momentum"))};
    on.batch_norm(c.buffer<T>("x"), c.buffer<float>("scale"), c.buffer<float>("bias"),
                  c.buffer<T>("y"), statistics_of(c), channels_of(c), {epsilon_of(c), running})
        .get();
  });
  add("batch_norm_backward", [](Call& c, auto on) {
    const NormArrays<T> of(c);
    on.batch_norm_backward(of.dy, of.x, of.scale, statistics_of(c), of.dx, of.dscale, of.dbias,
                           channels_of(c))
        .get();
  });
  add("batch_norm_inference", [](Call& c, auto on) {
    on.batch_norm_inference(c.buffer<T>("x"), c.buffer<float>("running_mean"),
                            c.buffer<float>("running_variance"), c.buffer<float>("scale"),
                            c.buffer<float>("bias"), c.buffer<T>("y"), channels_of(c),
                            epsilon_of(c))
        .get();
  });
}

RnnOptions rnn_of(const Call& c) {
  RnnOptions options{.cell = c.choice<dnn::RnnCell>("cell", {"relu", "tanh", "lstm", "gru"}),
                     .layers = c.get<std::uint32_t>("layers"),
                     .both_directions = c.get<bool>("both_directions"),
                     .bias = c.get<bool>("bias"),
                     .batch = c.integer("batch"),
                     .time = c.integer("time"),
                     .input = c.integer("input"),
                     .hidden = c.integer("hidden")};
  for (const auto length : c.get<std::vector<std::int64_t>>("lengths"))
    options.lengths.push_back(static_cast<std::int32_t>(length));
  return options;
}
/// A network that has computed its results; with a reserve, for gradients.
template <class T>
RnnTensors<T> rnn_made(Call& c, Dnn& on, const RnnOptions& options, bool for_gradients) {
  RnnTensors<T> of{.x = c.buffer<T>("x"),
                   .w = c.buffer<T>("w"),
                   .y = c.buffer<T>("y"),
                   .initial = c.buffer<T>("initial"),
                   .final = c.buffer<T>("final")};
  if (for_gradients) of.reserve = c.device().alloc<std::uint8_t>(on.rnn_reserve<T>(options).get());
  on.rnn(of, options).get();
  return of;
}

template <class T>
void add_rnn_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return dnn::on(device); });
  add("rnn", [](Call& c, auto on) { rnn_made<T>(c, on, rnn_of(c), false); });
  static constexpr auto backward = [](Call& c, Dnn& on, const RnnOptions& options) {
    const auto of = rnn_made<T>(c, on, options, true);
    on.rnn_backward_data(of,
                         RnnGradients<T>{.dy = c.buffer<T>("dy"),
                                         .dx = c.buffer<T>("dx"),
                                         .dfinal = c.buffer<T>("dfinal"),
                                         .dinitial = c.buffer<T>("dinitial")},
                         options)
        .get();
    return of;
  };
  add("rnn_backward_data", [](Call& c, auto on) { backward(c, on, rnn_of(c)); });
  add("rnn_backward_weights", [](Call& c, auto on) {
    const auto options = rnn_of(c);
    const auto of = backward(c, on, options);
    on.rnn_backward_weights(of, c.buffer<T>("dw"), options).get();
  });
}

}  // namespace

void add_dnn_layers(Runs& runs) {
  for_types<Half, BFloat16, float>([&runs]<class T>(T) {
    add_attention_of<T>(runs);
    add_norms_of<T>(runs);
    add_rnn_of<T>(runs);
  });
}

}  // namespace troupe::judge
