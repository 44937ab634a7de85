#include <omp.h>

#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "lib/dnn/common/spatial.hpp"
#include "lib/dnn/graph/cpu.hpp"

/// Convolutions in graphs, by oneDNN in f32. It chooses the order that it computes in; the arrays
/// between nodes are row-major.
namespace troupe::dnn {
namespace {

using dnnl::memory;

/// An operand of a primitive.
struct Argument {
  int name = 0;
  memory::desc given, wanted;
  float* data = nullptr;
};

void execute(const dnnl::engine& engine, const dnnl::primitive& primitive,
             const std::array<Argument, 2>& inputs, const Argument& output) {
  dnnl::stream stream(engine);
  std::unordered_map<int, memory> arguments;
  for (const auto& input : inputs) {
    memory given(input.given, engine, input.data);
    auto used = given;
    if (input.wanted != input.given) {
      used = memory(input.wanted, engine);
      dnnl::reorder(given, used).execute(stream, given, used);
    }
    arguments.emplace(input.name, used);
  }
  memory result(output.given, engine, output.data);
  auto made = result;
  if (output.wanted != output.given) made = memory(output.wanted, engine);
  arguments.emplace(output.name, made);
  primitive.execute(stream, arguments);
  if (output.wanted != output.given) dnnl::reorder(made, result).execute(stream, made, result);
  stream.wait();
}

memory::desc any(const memory::desc& desc) {
  return {desc.dims(), memory::data_type::f32, memory::format_tag::any};
}

}  // namespace

bool convolves() noexcept {
  return true;
}

void compute_convolution(const NodeView& node, Contents& contents) {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  ::omp_set_num_threads(contents.threads);  // of this thread
  const auto view = ConvolutionView::of(node);
  const auto row_major = [](memory::dims dims) {
    memory::dims strides(dims.size());
    std::int64_t stride = 1;
    for (auto i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
    return memory::desc(dims, memory::data_type::f32, strides);
  };
  const auto dims_of = [](const TensorView& tensor) {
    return memory::dims(tensor.extents.begin(), tensor.extents.end());
  };
  auto filters = dims_of(*view.w);
  if (view.groups > 1) {
    filters[0] /= view.groups;
    filters.insert(filters.begin(), view.groups);
  }
  const auto x = row_major(dims_of(*view.x)), w = row_major(filters),
             y = row_major(dims_of(*view.y));
  const auto rank = static_cast<std::ptrdiff_t>(view.windows.rank);
  const auto list = [&](const PerDimension& numbers) {
    return memory::dims(numbers.begin(), numbers.begin() + rank);
  };
  const auto strides = list(view.windows.strides), before = list(view.windows.before),
             after = list(view.windows.after);
  auto dilations = list(view.windows.dilations);
  for (auto& dilation : dilations) --dilation;  // oneDNN: 0 is dense

  // oneDNN takes no pointer to const, and does not write to its inputs.
  std::array<float*, 2> from{};
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = const_cast<float*>(contents.of(node.inputs[i]).data());
  auto* const to = contents.make(node.outputs[0]).data();
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, any(x), any(w),
                                      any(y), strides, dilations, before, after),
      engine);
  switch (node.kind) {
    case NodeKind::convolution_data: {
      const dnnl::convolution_backward_data::primitive_desc chosen(
          dnnl::convolution_backward_data::desc(algorithm, any(x), any(w), any(y), strides,
                                                dilations, before, after),
          engine, forward);
      return execute(engine, dnnl::convolution_backward_data(chosen),
                     {{{DNNL_ARG_DIFF_DST, y, chosen.diff_dst_desc(), from[0]},
                       {DNNL_ARG_WEIGHTS, w, chosen.weights_desc(), from[1]}}},
                     {DNNL_ARG_DIFF_SRC, x, chosen.diff_src_desc(), to});
    }
    case NodeKind::convolution_filter: {
      const dnnl::convolution_backward_weights::primitive_desc chosen(
          dnnl::convolution_backward_weights::desc(algorithm, any(x), any(w), any(y), strides,
                                                   dilations, before, after),
          engine, forward);
      return execute(engine, dnnl::convolution_backward_weights(chosen),
                     {{{DNNL_ARG_DIFF_DST, y, chosen.diff_dst_desc(), from[0]},
                       {DNNL_ARG_SRC, x, chosen.src_desc(), from[1]}}},
                     {DNNL_ARG_DIFF_WEIGHTS, w, chosen.diff_weights_desc(), to});
    }
    default:
      return execute(engine, dnnl::convolution_forward(forward),
                     {{{DNNL_ARG_SRC, x, forward.src_desc(), from[0]},
                       {DNNL_ARG_WEIGHTS, w, forward.weights_desc(), from[1]}}},
                     {DNNL_ARG_DST, y, forward.dst_desc(), to});
  }
}

}  // namespace troupe::dnn
