// Layers of neural networks by troupe, and by cuDNN itself: convolutions of ResNet-50 (He et al.,
// Deep Residual Learning for Image Recognition, 2016) with its strides on filters of 3x3, and
// attention and layer norm of GPT-2's smallest model, all in bf16.
//
// Both sides are measured by this one program, in turn, as in cuda_raw_bench. A figure is met if
// the interval of its ratio reaches it; of small calls the difference counts.
#include <troupe/lib/dnn.hpp>

#include <cstdio>
#include <exception>

#include "beside.hpp"
#include "local_device.hpp"
#include "raw_dnn.hpp"

namespace troupe::bench {
namespace {

using Pass = RawLayer::Pass;

/// Both sides have the same plan, which gives the same bits each time, but nobody promises that the
/// heuristics name one engine twice.
template <class T>
constexpr double kTolerance = std::is_same_v<T, BFloat16> ? 1e-2 : 1e-5;

/// The layers, and what went wrong.
class Layers {
 public:
  explicit Layers(const Bench& bench) : bench_(&bench) {}

  /// What fails is told, and the others are measured all the same. What cuDNN does not have is no
  /// failure.
  template <class Layer>
  void line(const std::string& name, const Layer& layer) {
    try {
      layer();
    } catch (const NoPlan& e) {
      fmt::print(stderr, "dnn_bench: {}: not measured, cuDNN has no plan: {}\n", name, e.what());
    } catch (const std::exception& e) {
      fmt::print(stderr, "dnn_bench: {}: {}\n", name, e.what());
      ++failed_;
    }
  }
  [[nodiscard]] int failed() const { return failed_; }

  void convolution(const std::string& name, Pass pass, int calls, const ConvolutionOptions& shape);
  void attention(const std::string& name, const RawLayer::Attention& shape, int calls);
  void layer_norm(const std::string& name, std::int64_t rows, std::int64_t columns, int calls);
  void gelu(const std::string& name, std::int64_t elements, int calls);

 private:
  template <class T>
  Both<T> random(Raw& raw, std::int64_t count, std::uint64_t seed) const {
    return {raw, *bench_->device, numbers<T>(count, seed)};
  }
  template <class T>
  Both<T> empty(Raw& raw, std::int64_t count) const {
    return {raw, *bench_->device, count};
  }
  template <class T>
  void check(Raw& raw, const Both<T>& result, const std::string& name) const {
    check_equal(raw, result.raw, *bench_->device, result.ours, name, kTolerance<T>);
  }
  const Bench* bench_;
  int failed_ = 0;
};

void Layers::convolution(const std::string& name, Pass pass, int calls,
                         const ConvolutionOptions& shape) {
  const auto places = [&](std::size_t i) {
    const auto before = shape.padding_before.or_all(0, 2).size[i],
               stride = shape.strides.or_all(1, 2).size[i];
    return (shape.extents.size[i] + 2 * before - shape.filter.size[i]) / stride + 1;
  };
  const auto in =
                 shape.batch * shape.extents.size[0] * shape.extents.size[1] * shape.input_channels,
             filters = shape.output_channels * shape.filter.size[0] * shape.filter.size[1] *
                       shape.input_channels,
             out = shape.batch * places(0) * places(1) * shape.output_channels;
  Raw raw;
  const auto x = pass == Pass::data ? empty<BFloat16>(raw, in) : random<BFloat16>(raw, in, 1);
  const auto w =
      pass == Pass::filter ? empty<BFloat16>(raw, filters) : random<BFloat16>(raw, filters, 2);
  const auto y = pass == Pass::forward ? empty<BFloat16>(raw, out) : random<BFloat16>(raw, out, 3);
  const auto operands = pass == Pass::forward ? std::vector<void*>{x.raw, w.raw, y.raw}
                        : pass == Pass::data  ? std::vector<void*>{y.raw, w.raw, x.raw}
                                              : std::vector<void*>{y.raw, x.raw, w.raw};
  auto theirs = RawLayer::convolution(raw, pass, shape, operands);
  bench_->measure(
      name, raw, calls, [&] { theirs.run(); },
      [&] {
        auto layers = dnn::on(*bench_->device);
        if (pass == Pass::forward) return layers.convolution(x.ours, w.ours, y.ours, shape);
        if (pass == Pass::data)
          return layers.convolution_backward_data(y.ours, w.ours, x.ours, shape);
        return layers.convolution_backward_filter(y.ours, x.ours, w.ours, shape);
      });
  check(raw, pass == Pass::forward ? y : pass == Pass::data ? x : w, name);
}

void Layers::attention(const std::string& name, const RawLayer::Attention& shape, int calls) {
  const auto count = shape.batch * shape.sequence * shape.heads * shape.dim;
  Raw raw;
  const auto q = random<BFloat16>(raw, count, 1), k = random<BFloat16>(raw, count, 2),
             v = random<BFloat16>(raw, count, 3), o = empty<BFloat16>(raw, count),
             d_o = random<BFloat16>(raw, count, 4), d_q = empty<BFloat16>(raw, count),
             d_k = empty<BFloat16>(raw, count), d_v = empty<BFloat16>(raw, count);
  const auto stats = empty<float>(raw, shape.batch * shape.heads * shape.sequence);
  const AttentionOptions options{.batch = shape.batch,
                                 .heads_q = shape.heads,
                                 .sequence_q = shape.sequence,
                                 .dim_qk = shape.dim,
                                 .mask = dnn::Mask::causal()};
  auto forward = RawLayer::attention(raw, shape, {q.raw, k.raw, v.raw, o.raw, stats.raw});
  bench_->measure(
      name + ", forward", raw, calls, [&] { forward.run(); },
      [&] {
        return dnn::on(*bench_->device)
            .attention(q.ours, k.ours, v.ours, o.ours, stats.ours, options);
      });
  check(raw, o, name + ", forward");
  check(raw, stats, name + ", stats");
  auto backward = RawLayer::attention_backward(
      raw, shape, {q.raw, k.raw, v.raw, o.raw, d_o.raw, stats.raw, d_q.raw, d_k.raw, d_v.raw});
  const Dnn::Backward<BFloat16> memory{q.ours,     k.ours,   v.ours,   o.ours,  d_o.ours,
                                       stats.ours, d_q.ours, d_k.ours, d_v.ours};
  bench_->measure(
      name + ", backward", raw, calls, [&] { backward.run(); },
      [&] { return dnn::on(*bench_->device).attention_backward(memory, options); });
  for (const auto* const gradient : {&d_q, &d_k, &d_v}) check(raw, *gradient, name + ", backward");
}

void Layers::layer_norm(const std::string& name, std::int64_t rows, std::int64_t columns,
                        int calls) {
  Raw raw;
  const auto x = random<BFloat16>(raw, rows * columns, 1), y = empty<BFloat16>(raw, rows * columns),
             dy = random<BFloat16>(raw, rows * columns, 2),
             dx = empty<BFloat16>(raw, rows * columns);
  const auto scale = random<float>(raw, columns, 3), bias = random<float>(raw, columns, 4),
             mean = empty<float>(raw, rows), deviation = empty<float>(raw, rows),
             dscale = empty<float>(raw, columns), dbias = empty<float>(raw, columns);
  auto forward = RawLayer::layer_norm(raw, rows, columns,
                                      {x.raw, scale.raw, bias.raw, y.raw, mean.raw, deviation.raw});
  const NormStatistics statistics{mean.ours, deviation.ours};
  bench_->measure(
      name + ", forward", raw, calls, [&] { forward.run(); },
      [&] {
        return dnn::on(*bench_->device)
            .layer_norm(x.ours, scale.ours, bias.ours, y.ours, {.statistics = statistics});
      });
  check(raw, y, name + ", forward");
  check(raw, deviation, name + ", inverse deviation");
  auto backward = RawLayer::layer_norm_backward(
      raw, rows, columns,
      {dy.raw, x.raw, scale.raw, mean.raw, deviation.raw, dx.raw, dscale.raw, dbias.raw});
  bench_->measure(
      name + ", backward", raw, calls, [&] { backward.run(); },
      [&] {
        return dnn::on(*bench_->device)
            .layer_norm_backward(dy.ours, x.ours, scale.ours, statistics, dx.ours, dscale.ours,
                                 dbias.ours);
      });
  check(raw, dx, name + ", backward");
  for (const auto* const sums : {&dscale, &dbias}) check(raw, *sums, name + ", backward");
}

void Layers::gelu(const std::string& name, std::int64_t elements, int calls) {
  Raw raw;
  const auto x = random<BFloat16>(raw, elements, 1), y = empty<BFloat16>(raw, elements);
  auto theirs = RawLayer::gelu(raw, elements, {x.raw, y.raw});
  bench_->measure(
      name, raw, calls, [&] { theirs.run(); },
      [&] { return dnn::on(*bench_->device).pointwise(dnn::Mode::gelu, x.ours, y.ours); });
  check(raw, y, name);
  // The same with a graph that is described once.
  const auto z = empty<BFloat16>(raw, elements);
  dnn::Graph graph;
  const auto in = graph.input(DType::bf16, {1, 1, elements});
  const auto out = dnn::pointwise(graph, dnn::Mode::gelu, in);
  graph.output(out, DType::bf16);
  bench_->measure(
      name + ", a graph", raw, calls, [&] { theirs.run(); },
      [&] {
        return dnn::on(*bench_->device).run(graph, {{in, x.ours}, {out, z.ours}});
      });
  check_equal(raw, y.raw, *bench_->device, z.ours, name + ", a graph", kTolerance<BFloat16>);
}

/// A convolution of square images, padded so that only its strides make them smaller.
struct Square {
  std::int64_t in, out, edge, filter, stride;

  [[nodiscard]] std::string name() const {
    return fmt::format("conv {}x{}{} {}->{}, {}^2", filter, filter,
                       stride == 1 ? "" : fmt::format(" s{}", stride), in, out, edge);
  }
  [[nodiscard]] ConvolutionOptions options(std::int64_t batch) const {
    return {.batch = batch,
            .input_channels = in,
            .output_channels = out,
            .extents = {edge, edge},
            .filter = {filter, filter},
            .padding_before = {filter / 2, filter / 2},
            .strides = {stride, stride}};
  }
};

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "15", "N", "measurements of each side", {}, "1", "1000"},
      {"batch", OptionType::integer, "64", "N", "images of a convolution", {}, "1", "1024"},
      {"sequence", OptionType::integer, "1024", "N", "keys of each query", {}, "8", "65536"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  LocalDevice device(config, "cuda");
  std::vector<Comparison> lines;
  const Bench bench{&*device, config.integer("repetitions"), &lines};
  const auto batch = config.integer("batch");
  Layers layers(bench);
  const auto convolve = [&](const Square& square, std::int64_t images, int calls, bool with_data) {
    const auto of = [&](const char* what, Pass pass) {
      const auto name = fmt::format("{}, {}", square.name(), what);
      layers.line(name, [&] { layers.convolution(name, pass, calls, square.options(images)); });
    };
    of("forward", Pass::forward);
    if (with_data) of("data", Pass::data);
    of("filter", Pass::filter);
  };
  constexpr int kLarge = 200, kSmall = 4000;
  convolve({3, 64, 224, 7, 2}, batch, kLarge, false);  // nobody wants the gradient of images
  convolve({64, 256, 56, 1, 1}, batch, kLarge, true);
  convolve({64, 64, 56, 3, 1}, batch, kLarge, true);
  convolve({128, 128, 28, 3, 1}, batch, kLarge, true);
  convolve({128, 128, 56, 3, 2}, batch, kLarge, true);
  convolve({256, 512, 56, 1, 2}, batch, kLarge, true);
  convolve({256, 256, 14, 3, 1}, batch, kLarge, true);
  convolve({512, 512, 7, 3, 1}, batch, kLarge, true);
  const auto sequence = config.integer("sequence");
  const auto attention = fmt::format("attention 8x12x{}x64", sequence);
  layers.line(attention, [&] { layers.attention(attention, {8, 12, sequence, 64}, kLarge); });
  const std::string norm = "layer norm 8192x768", small_norm = "layer norm 16x256";
  layers.line(norm, [&] { layers.layer_norm(norm, 8192, 768, 4 * kLarge); });
  layers.line(small_norm, [&] { layers.layer_norm(small_norm, 16, 256, kSmall); });
  layers.line("gelu 4096", [&] { layers.gelu("gelu 4096", 4096, kSmall); });
  convolve({16, 16, 8, 3, 1}, 1, kSmall, true);
  print(fmt::format("{}: cuDNN's own calls and troupe in bf16, {} images, medians of {} pairs",
                    device->info().name, batch, bench.repetitions),
        lines);
  write_json(config.text("json"), lines).take();
  return layers.failed() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "dnn_bench",
                                      "Layers of neural networks, by troupe and directly.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
