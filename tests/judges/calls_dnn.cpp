#include "calls_dnn.hpp"

namespace troupe::judge {
namespace {

const std::initializer_list<std::string_view> kModes = {"identity",
                                                        "abs",
                                                        "negate",
                                                        "reciprocal",
                                                        "sqrt",
                                                        "rsqrt",
                                                        "exp",
                                                        "log",
                                                        "erf",
                                                        "sin",
                                                        "cos",
                                                        "tan",
                                                        "ceil",
                                                        "floor",
                                                        "relu",
                                                        "sigmoid",
                                                        "tanh",
                                                        "elu",
                                                        "gelu",
                                                        "gelu_tanh",
                                                        "softplus",
                                                        "swish",
                                                        "logical_not",
                                                        "add",
                                                        "add_square",
                                                        "subtract",
                                                        "multiply",
                                                        "divide",
                                                        "maximum",
                                                        "minimum",
                                                        "modulo",
                                                        "power",
                                                        "equal",
                                                        "not_equal",
                                                        "greater",
                                                        "greater_equal",
                                                        "less",
                                                        "less_equal",
                                                        "logical_and",
                                                        "logical_or",
                                                        "relu_backward",
                                                        "sigmoid_backward",
                                                        "tanh_backward",
                                                        "elu_backward",
                                                        "gelu_backward",
                                                        "gelu_tanh_backward",
                                                        "softplus_backward",
                                                        "swish_backward",
                                                        "select"};
const std::initializer_list<std::string_view> kReductions = {
    "add",     "multiply", "minimum",
    "maximum", "max_abs",  "average",
    "norm1",   "norm2",    "multiply_without_zeros"};

ConvolutionOptions convolution_of(const Call& c) {
  return {c.integer("batch"),   c.integer("input_channels"), c.integer("output_channels"),
          c.integer("groups"),  sizes(c, "extents"),         sizes(c, "filter"),
          sizes(c, "before"),   sizes(c, "after"),           sizes(c, "strides"),
          sizes(c, "dilations")};
}
PoolingOptions pooling_of(const Call& c) {
  return {c.integer("batch"),
          c.integer("channels"),
          sizes(c, "extents"),
          {sizes(c, "window"), sizes(c, "before"), sizes(c, "after"), sizes(c, "strides")}};
}
dnn::Pooling pooling_mode(const Call& c) {
  return c.choice<dnn::Pooling>("mode", {"maximum", "average", "average_inside"});
}
ResizeOptions resize_of(const Call& c) {
  return {c.integer("batch"),
          c.integer("channels"),
          sizes(c, "extents"),
          sizes(c, "resized"),
          {c.choice<dnn::Interpolation>("interpolation", {"nearest", "linear"}),
           c.choice<dnn::Coordinates>("coordinates", {"centres", "corners", "ends"})}};
}

template <class T>
void add_images_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return dnn::on(device); });
  add("convolution", [](Call& c, auto on) {
    const auto shape = convolution_of(c);
    const auto x = c.buffer<T>("x"), w = c.buffer<T>("w"), y = c.buffer<T>("y");
    if (c.get<bool>("bias"))
      on.convolution(x, w, c.buffer<T>("b"), y, shape).get();
    else
      on.convolution(x, w, y, shape).get();
  });
  add("convolution_backward_data", [](Call& c, auto on) {
    on.convolution_backward_data(c.buffer<T>("dy"), c.buffer<T>("w"), c.buffer<T>("dx"),
                                 convolution_of(c))
        .get();
  });
  add("convolution_backward_filter", [](Call& c, auto on) {
    on.convolution_backward_filter(c.buffer<T>("dy"), c.buffer<T>("x"), c.buffer<T>("dw"),
                                   convolution_of(c))
        .get();
  });
  add("pooling", [](Call& c, auto on) {
    on.pooling(pooling_mode(c), c.buffer<T>("x"), c.buffer<T>("y"), pooling_of(c)).get();
  });
  add("max_pooling", [](Call& c, auto on) {
    on.max_pooling(c.buffer<T>("x"), c.buffer<T>("y"), c.buffer<std::int8_t>("index"),
                   pooling_of(c))
        .get();
  });
  add("pooling_backward", [](Call& c, auto on) {
    on.pooling_backward(pooling_mode(c), c.buffer<T>("dy"), c.buffer<T>("dx"), pooling_of(c)).get();
  });
  add("max_pooling_backward", [](Call& c, auto on) {
    on.max_pooling_backward(c.buffer<T>("dy"), c.buffer<std::int8_t>("index"), c.buffer<T>("dx"),
                            pooling_of(c))
        .get();
  });
  add("resize",
      [](Call& c, auto on) { on.resize(c.buffer<T>("x"), c.buffer<T>("y"), resize_of(c)).get(); });
  add("resize_backward", [](Call& c, auto on) {
    on.resize_backward(c.buffer<T>("dy"), c.buffer<T>("dx"), resize_of(c)).get();
  });
}

template <class T>
void add_elements_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return dnn::on(device); });
  add("pointwise", [](Call& c, auto on) {
    GraphOf graph{&c};
    const auto mode = c.choice<dnn::Mode>("mode", kModes);
    const dnn::Layout row{1, 1, c.integer("length")};
    const auto part = [&](const char* name) { return static_cast<float>(c.get<double>(name)); };
    const dnn::PointwiseOptions options{part("slope"), part("upper"), part("alpha"), part("beta")};
    const auto a = graph.in<T>("a", row);
    if (dnn::inputs_of(mode) == 1) {
      graph.out<T>(dnn::pointwise(graph.graph, mode, a, options), "y");
    } else {
      const auto b = graph.in<T>("b", row);
      graph.out<T>(dnn::inputs_of(mode) == 2
                       ? dnn::pointwise(graph.graph, mode, a, b, options)
                       : dnn::pointwise(graph.graph, mode, a, b, graph.in<T>("c", row)),
                   "y");
    }
    graph.run(on);
  });
  add("reduce", [](Call& c, auto on) {
    on.reduce(c.choice<dnn::ReduceOp>("reduction", kReductions), c.buffer<T>("x"), c.buffer<T>("y"),
              c.get<std::vector<std::int64_t>>("extents"),
              c.get<std::vector<std::int64_t>>("reduced"))
        .get();
  });
  add("matmul", [](Call& c, auto on) {
    on.matmul(c.buffer<T>("a"), c.buffer<T>("b"), c.buffer<T>("c"),
              {c.integer("batch"), c.integer("rows"), c.integer("columns"), c.integer("inner"),
               c.get<bool>("by_columns_a"), c.get<bool>("by_columns_b"), c.get<bool>("shared_a"),
               c.get<bool>("shared_b")})
        .get();
  });
}

template <class T>
void add_softmax_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return dnn::on(device); });
  static constexpr auto shape_of = [](const Call& c) {
    return SoftmaxShape{c.integer("extent"), c.integer("inner")};
  };
  add("softmax",
      [](Call& c, auto on) { on.softmax(c.buffer<T>("x"), c.buffer<T>("y"), shape_of(c)).get(); });
  add("log_softmax", [](Call& c, auto on) {
    on.log_softmax(c.buffer<T>("x"), c.buffer<T>("y"), shape_of(c)).get();
  });
  add("softmax_backward", [](Call& c, auto on) {
    on.softmax_backward(c.buffer<T>("dy"), c.buffer<T>("y"), c.buffer<T>("dx"), shape_of(c)).get();
  });
  add("log_softmax_backward", [](Call& c, auto on) {
    on.log_softmax_backward(c.buffer<T>("dy"), c.buffer<T>("y"), c.buffer<T>("dx"), shape_of(c))
        .get();
  });
}

}  // namespace

void add_dnn(Runs& runs) {
  const auto add = [&runs]<class T>(T) {
    add_images_of<T>(runs);
    add_elements_of<T>(runs);
  };
  for_types<Half, BFloat16, float>(add);
  for_types<Half, BFloat16, float, double>([&runs]<class T>(T) { add_softmax_of<T>(runs); });
}

}  // namespace troupe::judge
