#include "raw_dnn.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "lib/dnn/common/frontend_cuda.hpp"

namespace troupe::bench {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Numbers = std::vector<std::int64_t>;
using Note = fe::NumericalNote_t;
constexpr auto kFloat = fe::DataType_t::FLOAT, kBFloat16 = fe::DataType_t::BFLOAT16;
constexpr float kEpsilon = 1e-5f;  // what troupe's norms have unless told

void must(const fe::error_t& status) {
  if (status.is_bad()) throw std::runtime_error("cuDNN: " + status.err_msg);
}
void must(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(cudnnGetErrorString(status));
}

void must_plan(const fe::error_t& status) {
  if (status.is_bad()) throw NoPlan(status.err_msg);
}

/// How a tensor lies in memory.
struct Layout {
  Numbers extents, strides;
};
/// Of images; of rows as images of one pixel.
Layout channels_last(std::int64_t batch, std::int64_t channels, std::int64_t height = 1,
                     std::int64_t width = 1) {
  return {{batch, channels, height, width},
          {height * width * channels, 1, width * channels, channels}};
}
/// One number for each row.
Layout of_rows(std::int64_t rows) {
  return {{rows, 1, 1, 1}, {1, 1, 1, 1}};
}

struct Handle {
  cudnnHandle_t its = nullptr;

  Handle() { must(cudnnCreate(&its)); }
  ~Handle() { (void)cudnnDestroy(its); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

}  // namespace

struct RawLayer::Plan {
  Handle handle;
  fe::graph::Graph graph;
  std::vector<Note> barred{Note::NONDETERMINISTIC};

  Plan() {
    graph.set_io_data_type(kBFloat16).set_intermediate_data_type(kFloat).set_compute_data_type(
        kFloat);
  }

  /// Tensors are numbered in the order of these calls, as their addresses are.
  Tensor input(const Layout& layout, fe::DataType_t type = kBFloat16) {
    fe::graph::Tensor_attributes tensor;
    set(tensor, layout, type);
    return graph.tensor(tensor);
  }
  void output(const Tensor& tensor, const Layout& layout, fe::DataType_t type = kBFloat16) {
    set(*tensor, layout, type);
    tensor->set_output(true);
  }

 private:
  void set(fe::graph::Tensor_attributes& tensor, const Layout& layout, fe::DataType_t type) {
    tensor.set_dim(layout.extents).set_stride(layout.strides).set_data_type(type).set_uid(++last_);
  }
  std::int64_t last_ = 0;
};

RawLayer::RawLayer(Raw& raw, std::unique_ptr<Plan> plan, std::vector<void*> operands)
    : raw_(&raw), plan_(std::move(plan)), operands_(std::move(operands)) {
  auto& graph = plan_->graph;
  must(cudnnSetStream(plan_->handle.its, raw.stream()));
  must(graph.validate());
  must(graph.build_operation_graph(plan_->handle.its));
  must_plan(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
  graph.deselect_numeric_notes(plan_->barred);
  must_plan(graph.check_support());
  must_plan(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE));
  std::int64_t bytes = 0;
  must(graph.get_workspace_size(bytes));
  if (bytes > 0) workspace_ = raw.device(static_cast<std::size_t>(bytes));
}
RawLayer::~RawLayer() {
  (void)cudaStreamSynchronize(raw_->stream());
}

void RawLayer::run() {
  must(plan_->graph.execute(plan_->handle.its, operands_.data(), static_cast<int>(operands_.size()),
                            workspace_));
}

RawLayer RawLayer::convolution(Raw& raw, Pass pass, const ConvolutionOptions& shape,
                               std::vector<void*> operands) {
  const auto padding = shape.padding_before.or_all(0, 2), steps = shape.strides.or_all(1, 2);
  const auto places = [&](std::size_t i) {
    return (shape.extents.size[i] + 2 * padding.size[i] - shape.filter.size[i]) / steps.size[i] + 1;
  };
  const auto x = channels_last(shape.batch, shape.input_channels, shape.extents.size[0],
                               shape.extents.size[1]);
  const auto w = channels_last(shape.output_channels, shape.input_channels, shape.filter.size[0],
                               shape.filter.size[1]);
  const auto y = channels_last(shape.batch, shape.output_channels, places(0), places(1));
  const auto attributes = [&]<class Attributes>(Attributes made) {
    const auto numbers_of = [](const dnn::Sizes& sizes) {
      return Numbers{sizes.size[0], sizes.size[1]};
    };
    return made.set_pre_padding(numbers_of(padding))
        .set_post_padding(numbers_of(padding))
        .set_stride(numbers_of(steps))
        .set_dilation({1, 1});
  };
  auto plan = std::make_unique<Plan>();
  plan->barred = {Note::DOWN_CONVERT_INPUTS,
                  Note::REDUCED_PRECISION_REDUCTION,
                  Note::FFT,
                  Note::NONDETERMINISTIC,
                  Note::WINOGRAD,
                  Note::WINOGRAD_TILE_4x4,
                  Note::WINOGRAD_TILE_6x6,
                  Note::WINOGRAD_TILE_13x13};
  auto& graph = plan->graph;
  if (pass == Pass::forward) {
    const auto in = plan->input(x), filters = plan->input(w);
    plan->output(graph.conv_fprop(in, filters, attributes(fe::graph::Conv_fprop_attributes())), y);
  } else if (pass == Pass::data) {
    const auto dy = plan->input(y), filters = plan->input(w);
    plan->output(graph.conv_dgrad(dy, filters, attributes(fe::graph::Conv_dgrad_attributes())), x);
  } else {
    const auto dy = plan->input(y), in = plan->input(x);
    plan->output(graph.conv_wgrad(dy, in, attributes(fe::graph::Conv_wgrad_attributes())), w);
  }
  return {raw, std::move(plan), std::move(operands)};
}

namespace {

/// In memory batch, sequence, heads, dim.
Layout sequence_major(const RawLayer::Attention& shape) {
  const auto [batch, heads, sequence, dim] = shape;
  return {{batch, heads, sequence, dim}, {sequence * heads * dim, dim, heads * dim, 1}};
}
Layout of_queries(const RawLayer::Attention& shape) {
  const auto [batch, heads, sequence, dim] = shape;
  return {{batch, heads, sequence, 1}, {heads * sequence, sequence, 1, 1}};
}
template <class Attributes>
Attributes causal(Attributes attributes, const RawLayer::Attention& shape) {
  attributes.set_attn_scale(1 / std::sqrt(static_cast<float>(shape.dim)))
      .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
      .set_diagonal_band_right_bound(0);
  return attributes;
}

}  // namespace

RawLayer RawLayer::attention(Raw& raw, const Attention& shape, std::vector<void*> operands) {
  auto plan = std::make_unique<Plan>();
  const auto layout = sequence_major(shape);
  const auto q = plan->input(layout), k = plan->input(layout), v = plan->input(layout);
  const auto made = plan->graph.sdpa(
      q, k, v, causal(fe::graph::SDPA_attributes().set_generate_stats(true), shape));
  plan->output(made[0], layout);
  plan->output(made[1], of_queries(shape), kFloat);
  return {raw, std::move(plan), std::move(operands)};
}

RawLayer RawLayer::attention_backward(Raw& raw, const Attention& shape,
                                      std::vector<void*> operands) {
  auto plan = std::make_unique<Plan>();
  const auto layout = sequence_major(shape);
  const auto q = plan->input(layout), k = plan->input(layout), v = plan->input(layout),
             o = plan->input(layout), d_o = plan->input(layout),
             stats = plan->input(of_queries(shape), kFloat);
  const auto made = plan->graph.sdpa_backward(
      q, k, v, o, d_o, stats,
      causal(fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(true), shape));
  for (const auto& gradient : made) plan->output(gradient, layout);
  return {raw, std::move(plan), std::move(operands)};
}

RawLayer RawLayer::layer_norm(Raw& raw, std::int64_t rows, std::int64_t columns,
                              std::vector<void*> operands) {
  auto plan = std::make_unique<Plan>();
  const auto of_all = channels_last(rows, columns), of_columns = channels_last(1, columns);
  const auto x = plan->input(of_all), scale = plan->input(of_columns, kFloat),
             bias = plan->input(of_columns, kFloat);
  fe::graph::Tensor_attributes number(kEpsilon);
  number.set_dim({1, 1, 1, 1}).set_stride({1, 1, 1, 1}).set_data_type(kFloat).set_uid(100);
  auto epsilon = plan->graph.tensor(number);
  const auto made = plan->graph.layernorm(x, scale, bias,
                                          fe::graph::Layernorm_attributes()
                                              .set_forward_phase(fe::NormFwdPhase_t::TRAINING)
                                              .set_epsilon(epsilon));
  plan->output(made[0], of_all);
  for (std::size_t i = 1; i < 3; ++i) plan->output(made[i], of_rows(rows), kFloat);
  return {raw, std::move(plan), std::move(operands)};
}

RawLayer RawLayer::layer_norm_backward(Raw& raw, std::int64_t rows, std::int64_t columns,
                                       std::vector<void*> operands) {
  auto plan = std::make_unique<Plan>();
  const auto of_all = channels_last(rows, columns), of_columns = channels_last(1, columns);
  const auto dy = plan->input(of_all), x = plan->input(of_all),
             scale = plan->input(of_columns, kFloat), mean = plan->input(of_rows(rows), kFloat),
             inverse_deviation = plan->input(of_rows(rows), kFloat);
  const auto made = plan->graph.layernorm_backward(
      dy, x, scale,
      fe::graph::Layernorm_backward_attributes().set_saved_mean_and_inv_variance(
          mean, inverse_deviation));
  plan->output(made[0], of_all);
  for (std::size_t i = 1; i < 3; ++i) plan->output(made[i], of_columns, kFloat);
  return {raw, std::move(plan), std::move(operands)};
}

RawLayer RawLayer::gelu(Raw& raw, std::int64_t elements, std::vector<void*> operands) {
  auto plan = std::make_unique<Plan>();
  const Layout row{{1, 1, elements}, {elements, elements, 1}};
  const auto x = plan->input(row);
  plan->output(plan->graph.pointwise(
                   x, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::GELU_FWD)),
               row);
  return {raw, std::move(plan), std::move(operands)};
}

}  // namespace troupe::bench
