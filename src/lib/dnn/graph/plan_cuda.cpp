#include "lib/dnn/graph/plan_cuda.hpp"

#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/common/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// What stands before the bytes of a plan: then come those of its shape.
struct SerializedHeader {
  static constexpr std::uint64_t kMagic = 0x6e'616c'702d'6e64;  // "dn-plan"

  std::uint64_t magic = kMagic;
  std::uint64_t cudnn_version = cudnnGetVersion();
  std::uint32_t frontend_version = CUDNN_FRONTEND_VERSION;
  std::uint32_t compute_capability = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t bias_apart = 0;
  std::uint32_t opcode = 0, optional_operand = 0;
  std::uint64_t shape_bytes = 0;
};
static_assert(std::has_unique_object_representations_v<SerializedHeader>);

/// The header for plans of the current device, of no shape.
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
  const bool with_bias = op.bias.present();
  auto described = describe(op, with_bias);
  Plan plan(std::move(described.graph), false);
  auto status = build(*plan.graph_, handle, described.barred);
  if (status.is_bad() && with_bias) {
    plan = Plan(describe(op, false).graph, true);
    status = build(*plan.graph_, handle, described.barred);
  }
  if (status.is_bad()) return no_plan(status, dnn::Convolution::kName);
  if (auto measured = plan.measure(); !measured) return measured.error();
  return plan;
}

Result<Plan> Plan::make(cudnnHandle_t handle, std::span<const std::byte> words) {
  const auto view = dnn::GraphView::of(words);
  if (!view) return view.error();
  auto described = describe(*view);
  if (!described) return described.error();
  Plan plan(std::move(described->graph), false);
  if (const auto status = build(*plan.graph_, handle, described->barred); status.is_bad())
    return no_plan(status, dnn::GraphCall::kName);
  if (auto measured = plan.measure(); !measured) return measured.error();
  return plan;
}

std::vector<std::byte> Plan::serialized(const PlanKey& key, int multiprocessors) const try {
  std::vector<std::uint8_t> plan;
  if (graph_->serialize(plan, false).is_bad()) return {};
  auto header = header_here(multiprocessors);
  header.bias_apart = bias_apart_ ? 1 : 0;
  header.opcode = key.opcode;
  header.optional_operand = key.optional_operand;
  header.shape_bytes = key.bytes.size();
  std::vector<std::byte> bytes(sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.insert(bytes.end(), key.bytes.begin(), key.bytes.end());
  const auto of_plan = std::as_bytes(std::span(plan));
  bytes.insert(bytes.end(), of_plan.begin(), of_plan.end());
  return bytes;
} catch (const std::exception&) {
  return {};
}

std::optional<Shape> Plan::shape_in(std::span<const std::byte> bytes, int multiprocessors) {
  if (bytes.size() <= sizeof(SerializedHeader)) return std::nullopt;
  const auto header = header_in(bytes);
  auto fitting = header_here(multiprocessors);
  fitting.bias_apart = header.bias_apart;
  fitting.opcode = header.opcode;
  fitting.optional_operand = header.optional_operand;
  fitting.shape_bytes = header.shape_bytes;
  if (std::memcmp(&header, &fitting, sizeof header) != 0 ||
      header.shape_bytes >= bytes.size() - sizeof header) {
    return std::nullopt;
  }
  return Shape{header.opcode, header.optional_operand,
               bytes.subspan(sizeof header, header.shape_bytes)};
}

std::optional<Plan> Plan::restored(cudnnHandle_t handle, std::span<const std::byte> bytes) try {
  const auto header = header_in(bytes);
  const auto of_plan = bytes.subspan(sizeof header + header.shape_bytes);
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(of_plan.data());
  const std::vector<std::uint8_t> serialized(begin, begin + of_plan.size());
  Plan plan(std::make_unique<Graph>(), header.bias_apart != 0);
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
