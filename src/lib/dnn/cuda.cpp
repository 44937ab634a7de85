#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <optional>
#include <utility>

#include <troupe/lib/dnn.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/dnn/common/status_cuda.hpp"
#include "lib/dnn/ctc/cuda.hpp"
#include "lib/dnn/graph/plan_cuda.hpp"
#include "lib/dnn/kernels.cuh"
#include "lib/dnn/lrn/cuda.hpp"
#include "lib/dnn/own/graph_cuda.hpp"
#include "lib/dnn/own/graph_kernels.cuh"
#include "lib/dnn/own/numbers_kernels.cuh"
#include "lib/dnn/own/spatial_kernels.cuh"
#include "lib/dnn/rnn/cuda.hpp"
#include "lib/dnn/softmax/cuda.hpp"

namespace troupe::host::cuda {
namespace {

struct CudnnTraits {
  using Type = cudnnHandle_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type handle) { (void)cudnnDestroy(handle); }
};

struct CachedPlan {
  PlanKey key;
  Plan plan;
  bool ran = false;   ///< kernels are loaded when they are first launched, which blocks
  bool told = false;  ///< take_new_plans() need not give it
  Fills fills = {};
};

Result<Fills> fills_for(const Shape& shape) {
  if (shape.opcode != opcode_of<dnn::GraphCall>) return Fills();
  const auto view = dnn::GraphView::of(shape.bytes);
  if (!view) return view.error();
  return fills_of(*view);
}

class Dnn final : public LibraryHalfOf<Dnn, dnn::Operations> {
 public:
  explicit Dnn(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuDNN", &cudnnGetProperty)};
  }
  Result<void> open(Queue queue) override;
  /// It makes a plan where none is cached, and loads kernels where that plan has not yet run.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override;
  Result<void> run(const dnn::Convolution& op, const Call& call);
  Result<void> run(const dnn::GraphCall& op, const Call& call);
  Result<void> run(const dnn::Softmax& op, const Call& call);
  Result<void> run(const dnn::SoftmaxBackward& op, const Call& call);
  Result<void> run(const dnn::Lrn& op, const Call& call);
  Result<void> run(const dnn::LrnBackward& op, const Call& call);
  Result<void> run(const dnn::CtcLoss& op, const Call& call);
  /// A recurrent network, its gradients, or what it needs.
  template <class Op>
  Result<void> run(const Op& op, const Call& call) {
    auto& own = state(call.queue());
    return own.rnns.run(op, call, {services_, call.queue(), own.handle.get(), own.workspace});
  }
  std::vector<std::vector<std::byte>> take_new_plans() override;
  void adopt_plan(std::span<const std::byte> bytes) override;

 private:
  /// What each queue has.
  struct State {
    Handle<CudnnTraits> handle;
    std::list<CachedPlan> plans;  ///< the most recently used first
    RetiredPlans<Plan> retired;
    RnnPlans rnns;
    Workspace workspace;  ///< of all plans
    /// Graphs that cuDNN has refused and kernels of troupe's own compute, the latest first.
    std::list<PlanKey> refused;
    /// Kernels of softmax that have been launched, and so are loaded: bits of kernels_of().
    std::uint32_t softmax_ran = 0;
    std::uint32_t lrn_ran = 0;  ///< the same of local response normalisations
    bool ctc_ran = false;       ///< the same

    std::list<CachedPlan>::iterator find(const Shape& shape) {
      return std::find_if(plans.begin(), plans.end(),
                          [&](const CachedPlan& cached) { return cached.key == shape; });
    }
  };
  static constexpr std::size_t kPlans = 64;  ///< cached on each queue, and adopted

  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  [[nodiscard]] bool must_wait_for(const Shape& shape, Queue queue);
  /// The graph of a call, if kernels of troupe's own compute it, else nullptr; then it never has a
  /// plan.
  [[nodiscard]] std::shared_ptr<const dnn::GraphView> own_graph(const Call& call);
  /// The same of one for which cuDNN has this error: it is own from then on, if there are kernels.
  [[nodiscard]] std::shared_ptr<const dnn::GraphView> own_instead(const Call& call,
                                                                  const Error& error);
  /// The bit of State::softmax_ran for an operation's kernels.
  template <class Op>
  [[nodiscard]] static std::uint32_t kernels_of(const Op& op) {
    const auto which = std::same_as<Op, dnn::Softmax> ? 0u : 4u;
    const auto kind = static_cast<std::uint32_t>(op.kind) * 2 + (op.inner == 1 ? 0u : 1u);
    const auto type = op.dtype == DType::f16    ? 0u
                      : op.dtype == DType::bf16 ? 1u
                      : op.dtype == DType::f32  ? 2u
                                                : 3u;
    return 1u << (type * 8 + which + kind);
  }
  /// The bit of State::lrn_ran.
  template <class Op>
  [[nodiscard]] static std::uint32_t lrn_kernels_of(const Op& op) {
    const auto type = op.dtype == DType::f16 ? 0u : op.dtype == DType::f32 ? 1u : 2u;
    return 1u << (type * 4 + (op.inner == 1 ? 2u : 0u) + (std::same_as<Op, dnn::Lrn> ? 1u : 0u));
  }
  /// The plan of an operation, or of a graph's words, the first in the queue's cache from then on.
  template <class Op>
  Result<CachedPlan*> plan_for(const Op& op, Queue queue);
  /// Queues a plan.
  Result<void> execute(CachedPlan& cached, std::span<void*> operands, Queue queue);
  Result<void> add_bias(const dnn::Convolution& op, const Call& call);
  /// Caches a plan of adopt_plan() if it fits.
  void restore(State& own, const Shape& shape, std::span<const std::byte> bytes);

  Services& services_;
  std::array<State, 2> states_;                ///< of the lane's own queue, of its detour
  std::list<std::vector<std::byte>> adopted_;  ///< for queues that are opened later
};

/// Warms up only what takes no search: what a standby has adopted.
Result<void> Dnn::open(Queue queue) {
  auto& own = state(queue);
  if (!own.handle) TROUPE_CUDA_TRY(cudnnCreate(own.handle.out()));
  TROUPE_CUDA_TRY(cudnnSetStream(own.handle.get(), services_.stream(queue)));
  TROUPE_CUDA_TRY(kernels::preload_dnn());
  TROUPE_CUDA_TRY(kernels::preload_own_graphs());
  TROUPE_CUDA_TRY(kernels::preload_own_numbers());
  TROUPE_CUDA_TRY(kernels::preload_own_spatial());
  for (const auto& bytes : adopted_) {
    if (const auto shape = Plan::shape_in(bytes, services_.multiprocessors()); shape)
      restore(own, *shape, bytes);
  }
  return {};
}

bool Dnn::must_wait_for(const Shape& shape, Queue queue) {
  auto& own = state(queue);
  const auto found = own.find(shape);
  return found == own.plans.end() || !found->ran;
}

bool Dnn::blocks(const OperationInfo& info, const std::byte* op, const Call& call) {
  if (info.opcode == opcode_of<dnn::Convolution>) {
    const auto& convolution = *reinterpret_cast<const dnn::Convolution*>(op);
    return convolution.batch > 0 && must_wait_for(shape_of(convolution), call.queue());
  }
  const auto loads = [&](const auto& softmax) {
    return (state(call.queue()).softmax_ran & kernels_of(softmax)) == 0;
  };
  if (info.opcode == opcode_of<dnn::Softmax>)
    return loads(*reinterpret_cast<const dnn::Softmax*>(op));
  if (info.opcode == opcode_of<dnn::SoftmaxBackward>)
    return loads(*reinterpret_cast<const dnn::SoftmaxBackward*>(op));
  const auto loads_lrn = [&](const auto& lrn) {
    return (state(call.queue()).lrn_ran & lrn_kernels_of(lrn)) == 0;
  };
  if (info.opcode == opcode_of<dnn::Lrn>) return loads_lrn(*reinterpret_cast<const dnn::Lrn*>(op));
  if (info.opcode == opcode_of<dnn::LrnBackward>)
    return loads_lrn(*reinterpret_cast<const dnn::LrnBackward*>(op));
  if (info.opcode == opcode_of<dnn::CtcLoss>) return !state(call.queue()).ctc_ran;
  const auto rnn_blocks = [&](const auto& rnn) {
    return state(call.queue()).rnns.must_wait_for(rnn, call);
  };
  if (info.opcode == opcode_of<dnn::Rnn>) return rnn_blocks(*reinterpret_cast<const dnn::Rnn*>(op));
  if (info.opcode == opcode_of<dnn::RnnBackwardData>)
    return rnn_blocks(*reinterpret_cast<const dnn::RnnBackwardData*>(op));
  if (info.opcode == opcode_of<dnn::RnnBackwardWeights>)
    return rnn_blocks(*reinterpret_cast<const dnn::RnnBackwardWeights*>(op));
  if (info.opcode == opcode_of<dnn::RnnSpace>) return true;
  return must_wait_for(shape_of(call.data()), call.queue()) && !own_graph(call);
}

Result<void> Dnn::run(const dnn::Convolution& op, const Call& call) {
  if (op.batch == 0) return {};
  const auto found = plan_for(op, call.queue());
  if (!found) return found.error();
  auto& cached = **found;
  const bool fused = op.bias.present() && !cached.plan.bias_apart();
  std::array<void*, 4> operands{call.at(op.x), call.at(op.w)};
  std::size_t count = 2;
  if (fused) operands[count++] = call.at(op.bias);
  operands[count++] = call.at(op.y);
  TROUPE_CUDA_PROPAGATE(execute(cached, std::span(operands).first(count), call.queue()));
  return op.bias.present() && !fused ? add_bias(op, call) : Result<void>();
}

std::shared_ptr<const dnn::GraphView> Dnn::own_graph(const Call& call) {
  auto& own = state(call.queue());
  if (own.find(shape_of(call.data())) != own.plans.end()) return nullptr;
  const auto known = dnn::known_graph(call.data());  // which check_parts() has let pass
  if (!known.ok()) return nullptr;
  const bool refused = std::ranges::any_of(
      own.refused, [&](const PlanKey& key) { return key == shape_of(call.data()); });
  return refused || is_own(**known) ? *known : nullptr;
}

std::shared_ptr<const dnn::GraphView> Dnn::own_instead(const Call& call, const Error& error) {
  // While a graph is recorded nothing is looked for.
  if (error.code != Errc::unsupported || services_.records()) return nullptr;
  const auto known = dnn::known_graph(call.data());
  if (!known.ok() || !has_own_kernels(**known)) return nullptr;
  auto& refused = state(call.queue()).refused;
  if (refused.size() == kPlans) refused.pop_back();
  refused.emplace_front(shape_of(call.data()));
  return *known;
}

Result<void> Dnn::run(const dnn::GraphCall&, const Call& call) {
  std::array<void*, dnn::Graph::kMaxTensors> operands{};
  std::size_t count = 0;
  for (const auto& operand : call.tail()) operands[count++] = call.at(operand.range);
  const auto run_alone = [&](const dnn::GraphView& graph) {
    return run_own(graph, std::span(operands).first(count), services_, call.queue(),
                   state(call.queue()).workspace);
  };
  if (const auto graph = own_graph(call)) return run_alone(*graph);
  const auto found = plan_for(call.data(), call.queue());
  if (!found) {
    const auto graph = own_instead(call, found.error());
    return graph ? run_alone(*graph) : found.error();
  }
  for (const auto& fill : (*found)->fills.outputs) {
    std::array<std::uint8_t, 16> pattern{};
    std::memcpy(pattern.data(), &fill.pattern, sizeof fill.pattern);
    // In 16 bits at a time: there is one of zeros for types of any size.
    const std::size_t unit = fill.pattern == 0 ? 2 : sizeof fill.pattern;
    TROUPE_CUDA_PROPAGATE(
        services_.fill(call.queue(), operands[fill.operand], pattern, unit, fill.bytes / unit));
  }
  return execute(**found, std::span(operands).first(count), call.queue());
}

Result<void> Dnn::run(const dnn::Softmax& op, const Call& call) {
  auto& own = state(call.queue());
  TROUPE_CUDA_PROPAGATE(softmax(own.handle.get(), op, call.at(op.x), call.at(op.y)));
  own.softmax_ran |= kernels_of(op);
  return {};
}

Result<void> Dnn::run(const dnn::SoftmaxBackward& op, const Call& call) {
  auto& own = state(call.queue());
  TROUPE_CUDA_PROPAGATE(
      softmax_backward(own.handle.get(), op, call.at(op.y), call.at(op.dy), call.at(op.dx)));
  own.softmax_ran |= kernels_of(op);
  return {};
}

Result<void> Dnn::run(const dnn::Lrn& op, const Call& call) {
  auto& own = state(call.queue());
  TROUPE_CUDA_PROPAGATE(lrn(own.handle.get(), op, call.at(op.x), call.at(op.y)));
  own.lrn_ran |= lrn_kernels_of(op);
  return {};
}

Result<void> Dnn::run(const dnn::LrnBackward& op, const Call& call) {
  auto& own = state(call.queue());
  TROUPE_CUDA_PROPAGATE(lrn_backward(own.handle.get(), op, call.at(op.x), call.at(op.y),
                                     call.at(op.dy), call.at(op.dx)));
  own.lrn_ran |= lrn_kernels_of(op);
  return {};
}

Result<void> Dnn::run(const dnn::CtcLoss& op, const Call& call) {
  auto& own = state(call.queue());
  TROUPE_CUDA_PROPAGATE(ctc_loss(own.handle.get(), op, call, services_, own.workspace));
  own.ctc_ran = true;
  return {};
}

template <class Op>
Result<CachedPlan*> Dnn::plan_for(const Op& op, Queue queue) {
  auto& own = state(queue);
  const auto shape = shape_of(op);
  if (const auto found = own.find(shape); found != own.plans.end()) {
    own.plans.splice(own.plans.begin(), own.plans, found);
    return &own.plans.front();
  }
  if (services_.records()) return Services::not_recorded("a plan");
  TROUPE_CUDA_PROPAGATE(own.retired.destroy_ended());
  auto fills = fills_for(shape);
  if (!fills) return fills.error();
  auto made = Plan::make(own.handle.get(), op);
  if (!made) return made.error();
  if (own.plans.size() == kPlans) {
    TROUPE_CUDA_PROPAGATE(
        own.retired.add(std::move(own.plans.back().plan), services_.stream(queue)));
    own.plans.pop_back();
    services_.note_given_back();
  }
  own.plans.push_front({PlanKey(shape), std::move(*made)});
  own.plans.front().fills = std::move(*fills);
  return &own.plans.front();
}

Result<void> Dnn::execute(CachedPlan& cached, std::span<void*> operands, Queue queue) {
  auto& own = state(queue);
  const auto bytes = cached.plan.workspace_bytes();
  TROUPE_CUDA_PROPAGATE(own.workspace.reserve(services_, queue, bytes));
  if (cached.fills.workspace && bytes > 0)
    TROUPE_CUDA_PROPAGATE(services_.fill(queue, own.workspace.get(), {}, 1, bytes));
  TROUPE_CUDA_PROPAGATE(
      cached.plan.execute(own.handle.get(), operands, bytes > 0 ? own.workspace.get() : nullptr));
  cached.ran = true;
  return {};
}

Result<void> Dnn::add_bias(const dnn::Convolution& op, const Call& call) {
  const auto launch = services_.launch(call.queue());
  const auto channels = static_cast<std::uint64_t>(op.output_channels);
  const auto elements = op.written(op.y) / size_of(op.dtype);
  const auto add = [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(
        kernels::add_bias(launch, elements, channels, call.at<const T>(op.bias), call.at<T>(op.y)));
    return {};
  };
  switch (op.dtype) {
    case DType::f16: return add(__half{});
    case DType::bf16: return add(__nv_bfloat16{});
    default: return add(float{});  // check() lets no other one pass
  }
}

std::vector<std::vector<std::byte>> Dnn::take_new_plans() {
  std::vector<std::vector<std::byte>> all;
  for (auto& own : states_) {
    for (auto& cached : own.plans) {
      if (std::exchange(cached.told, true)) continue;
      auto bytes = cached.plan.serialized(cached.key, services_.multiprocessors());
      if (!bytes.empty()) all.push_back(std::move(bytes));
    }
  }
  return all;
}

void Dnn::adopt_plan(std::span<const std::byte> bytes) {
  const auto shape = Plan::shape_in(bytes, services_.multiprocessors());
  if (!shape) return;
  if (adopted_.size() == kPlans) adopted_.pop_front();
  adopted_.emplace_back(bytes.begin(), bytes.end());
  for (auto& own : states_) {
    if (own.handle) restore(own, *shape, bytes);
  }
}

void Dnn::restore(State& own, const Shape& shape, std::span<const std::byte> bytes) {
  if (own.plans.size() == kPlans || own.find(shape) != own.plans.end()) return;
  auto plan = Plan::restored(own.handle.get(), bytes);
  auto fills = fills_for(shape);
  if (!plan || !fills) return;
  own.plans.push_back(
      {.key = PlanKey(shape), .plan = std::move(*plan), .told = true, .fills = std::move(*fills)});
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Dnn, cuda)
