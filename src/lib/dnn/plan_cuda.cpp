#include "lib/dnn/plan_cuda.hpp"

#include <cudnn_frontend_shim.h>
#include <dlfcn.h>

// The frontend has kernels of its own, which nothing here uses. For these it needs NVRTC: loaded
// when it is used, which is never, instead of linked.
#define HMODULE void*
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend/experimental/nvrtc_shim.h>
#undef NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#undef HMODULE

#include <cudnn_frontend.h>

#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "lib/dnn/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using Note = fe::NumericalNote_t;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Numbers = std::vector<std::int64_t>;

/// What cuDNN calls the operands. Addresses are given in this order.
namespace uid {
enum : std::int64_t { x = 1, w, bias, y };
enum : std::int64_t { q = 1, k, v, o, stats };
}  // namespace uid

/// What stands before the bytes of a plan.
struct SerializedHeader {
  static constexpr std::uint64_t kMagic = 0x6e'616c'702d'6e64;  // "dn-plan"

  std::uint64_t magic = kMagic;
  std::uint64_t cudnn_version = cudnnGetVersion();
  std::uint32_t frontend_version = CUDNN_FRONTEND_VERSION;
  std::uint32_t compute_capability = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t bias_apart = 0;
  PlanKey key;
};
static_assert(std::has_unique_object_representations_v<SerializedHeader>);

/// The header for plans of the current device, without a key.
SerializedHeader header_here(int multiprocessors) {
  SerializedHeader header;
  int device = 0, major = 0, minor = 0;
  (void)cudaGetDevice(&device);
  (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  header.compute_capability = static_cast<std::uint32_t>(10 * major + minor);
  header.multiprocessors = static_cast<std::uint32_t>(multiprocessors);
  return header;
}

SerializedHeader header_in(std::span<const std::byte> bytes) {
  SerializedHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

Error error_of(const fe::error_t& status, Errc code, std::string_view call) {
  return prefer_context(make_error(code, static_cast<int>(status.code), call, status.err_msg));
}

/// Why there is no plan. The shape is sound: what cuDNN refuses, it does not have.
Error no_plan(const fe::error_t& status, std::string_view operation) {
  const bool broken = status.code == fe::error_code_t::CUDA_API_FAILED ||
                      status.code == fe::error_code_t::HANDLE_ERROR ||
                      status.code == fe::error_code_t::INVALID_CUDA_DEVICE;
  return error_of(status, broken ? Errc::library : Errc::unsupported, operation);
}

/// The first failure of several steps; those behind it are not done.
template <class... Steps>
fe::error_t first_failure(Steps&&... steps) {
  fe::error_t status;
  (void)(... && (status = steps(), status.is_good()));
  return status;
}

/// Chooses an algorithm without these notes, and compiles it.
fe::error_t build(Graph& graph, cudnnHandle_t handle, const std::vector<Note>& barred) try {
  return first_failure(
      [&] { return graph.validate(); }, [&] { return graph.build_operation_graph(handle); },
      [&] {
        return graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
      },
      [&] {
        graph.deselect_numeric_notes(barred);
        return graph.check_support();
      },
      [&] { return graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE); });
} catch (const std::exception& error) {
  return {fe::error_code_t::GRAPH_EXECUTION_PLAN_CREATION_FAILED, error.what()};
}

fe::DataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return fe::DataType_t::HALF;
    case DType::bf16: return fe::DataType_t::BFLOAT16;
    default: return fe::DataType_t::FLOAT;  // check() lets no other one pass
  }
}

std::unique_ptr<Graph> graph_of(DType dtype) {
  auto graph = std::make_unique<Graph>();
  graph->set_io_data_type(type_of(dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

/// Numbers of spatial dimensions as cuDNN takes them: it has two dimensions or three.
Numbers spatial(const dnn::Convolution& op, const dnn::Convolution::PerDimension& numbers,
                std::int64_t of_missing) {
  Numbers all(numbers.begin(), numbers.begin() + op.rank);
  if (op.rank == 1) all.insert(all.begin(), of_missing);
  return all;
}

/// Names the extents as cuDNN orders them, the channels second, where these vary fastest.
template <class Attributes>
void set_channels_last(Attributes& tensor, std::int64_t batch, std::int64_t channels,
                       const Numbers& extents) {
  Numbers dims{batch, channels}, strides(extents.size() + 2);
  dims.insert(dims.end(), extents.begin(), extents.end());
  strides[1] = 1;
  auto stride = channels;
  for (auto i = dims.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  strides[0] = stride;
  tensor.set_dim(dims).set_stride(strides);
}

std::unique_ptr<Graph> graph_of(const dnn::Convolution& op, bool with_bias) {
  auto graph = graph_of(op.dtype);
  const auto input = [&](std::int64_t id, std::int64_t batch, std::int64_t channels,
                         const Numbers& extents) {
    fe::graph::Tensor_attributes tensor;
    set_channels_last(tensor, batch, channels, extents);
    return graph->tensor(tensor.set_uid(id));
  };
  const auto x = input(uid::x, op.batch, op.input_channels, spatial(op, op.extents, 1));
  const auto w =
      input(uid::w, op.output_channels, op.input_channels / op.groups, spatial(op, op.filter, 1));
  auto y = graph->conv_fprop(x, w,
                             fe::graph::Conv_fprop_attributes()
                                 .set_pre_padding(spatial(op, op.padding_before, 0))
                                 .set_post_padding(spatial(op, op.padding_after, 0))
                                 .set_stride(spatial(op, op.strides, 1))
                                 .set_dilation(spatial(op, op.dilations, 1)));
  const auto output = spatial(op, op.output_extents(), 1);
  if (with_bias) {
    set_channels_last(*y, op.batch, op.output_channels, output);
    const auto bias = input(uid::bias, 1, op.output_channels, Numbers(output.size(), 1));
    y = graph->pointwise(y, bias,
                         fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
  }
  set_channels_last(*y, op.batch, op.output_channels, output);
  y->set_output(true).set_data_type(type_of(op.dtype)).set_uid(uid::y);
  return graph;
}

/// Algorithms that convolve with less than f32, or differently from one run to the next.
std::vector<Note> barred_notes(DType dtype) {
  std::vector<Note> notes{Note::DOWN_CONVERT_INPUTS,
                          Note::REDUCED_PRECISION_REDUCTION,
                          Note::FFT,
                          Note::NONDETERMINISTIC,
                          Note::WINOGRAD,
                          Note::WINOGRAD_TILE_4x4,
                          Note::WINOGRAD_TILE_6x6,
                          Note::WINOGRAD_TILE_13x13};
  if (dtype == DType::f32) notes.push_back(Note::TENSOR_CORE);  // that would be tf32
  return notes;
}

std::unique_ptr<Graph> graph_of(const dnn::Attention& op) {
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
  const auto q = input(uid::q, op.sequence_q, op.heads_q, op.dim_qk);
  const auto k = input(uid::k, op.sequence_kv, op.heads_kv, op.dim_qk);
  const auto v = input(uid::v, op.sequence_kv, op.heads_kv, op.dim_v);
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
      .set_uid(uid::o);
  if (op.stats.present()) {
    outputs[1]
        ->set_output(true)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({op.batch, op.heads_q, op.sequence_q, 1})
        .set_stride({op.heads_q * op.sequence_q, op.sequence_q, 1, 1})
        .set_uid(uid::stats);
  }
  return graph;
}

}  // namespace

Plan::Plan(std::unique_ptr<Graph> graph, bool bias_apart)
    : graph_(std::move(graph)), bias_apart_(bias_apart) {}
Plan::Plan(Plan&& other) noexcept = default;
Plan& Plan::operator=(Plan&& other) noexcept = default;
Plan::~Plan() = default;

Result<void> Plan::measure() {
  std::int64_t bytes = 0;
  if (const auto status = graph_->get_workspace_size(bytes); status.is_bad())
    return error_of(status, Errc::library, "get_workspace_size");
  workspace_bytes_ = static_cast<std::size_t>(bytes);
  return {};
}

Result<Plan> Plan::make(cudnnHandle_t handle, const dnn::Convolution& op) {
  const auto barred = barred_notes(op.dtype);
  const bool with_bias = op.bias.present();
  Plan plan(graph_of(op, with_bias), false);
  auto status = build(*plan.graph_, handle, barred);
  if (status.is_bad() && with_bias) {
    plan = Plan(graph_of(op, false), true);
    status = build(*plan.graph_, handle, barred);
  }
  if (status.is_bad()) return no_plan(status, dnn::Convolution::kName);
  if (auto measured = plan.measure(); !measured) return measured.error();
  return plan;
}

Result<Plan> Plan::make(cudnnHandle_t handle, const dnn::Attention& op) {
  Plan plan(graph_of(op), false);
  if (const auto status = build(*plan.graph_, handle, {Note::NONDETERMINISTIC}); status.is_bad())
    return no_plan(status, dnn::Attention::kName);
  if (auto measured = plan.measure(); !measured) return measured.error();
  return plan;
}

std::vector<std::byte> Plan::serialized(const PlanKey& key, int multiprocessors) const try {
  std::vector<std::uint8_t> plan;
  if (graph_->serialize(plan, false).is_bad()) return {};
  auto header = header_here(multiprocessors);
  header.bias_apart = bias_apart_ ? 1 : 0;
  header.key = key;
  std::vector<std::byte> bytes(sizeof header + plan.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, plan.data(), plan.size());
  return bytes;
} catch (const std::exception&) {
  return {};
}

std::optional<PlanKey> Plan::key_in(std::span<const std::byte> bytes, int multiprocessors) {
  if (bytes.size() <= sizeof(SerializedHeader)) return std::nullopt;
  const auto header = header_in(bytes);
  auto fitting = header_here(multiprocessors);
  fitting.bias_apart = header.bias_apart;
  fitting.key = header.key;
  if (std::memcmp(&header, &fitting, sizeof header) != 0) return std::nullopt;
  return header.key;
}

std::optional<Plan> Plan::restored(cudnnHandle_t handle, std::span<const std::byte> bytes) try {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::vector<std::uint8_t> serialized(begin + sizeof(SerializedHeader),
                                             begin + bytes.size());
  Plan plan(std::make_unique<Graph>(), header_in(bytes).bias_apart != 0);
  // Without the frontend's warm-up, which would capture the stream while marks are made on it.
  if (plan.graph_->deserialize(handle, serialized, true, false).is_bad()) return std::nullopt;
  if (!plan.measure()) return std::nullopt;
  return plan;
} catch (const std::exception&) {
  return std::nullopt;
}

Result<void> Plan::execute(cudnnHandle_t handle, std::span<void*> operands, void* workspace) const {
  const auto status =
      graph_->execute(handle, operands.data(), static_cast<int>(operands.size()), workspace);
  if (status.is_bad()) [[unlikely]]
    return error_of(status, Errc::library, "cudnnBackendExecute");
  return {};
}

}  // namespace troupe::host::cuda
