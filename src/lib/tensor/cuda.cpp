#include <algorithm>
#include <list>
#include <string>
#include <utility>

#include "common/core/narrow.hpp"
#include "lib/tensor/blocks/cuda.hpp"
#include "lib/tensor/common/compiled_cuda.hpp"
#include "lib/tensor/common/problem_cuda.hpp"
#include "lib/tensor/status_cuda.hpp"
#include "lib/tensor/tune/cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// Calls f(op) with the operation, which is one of these.
template <class Op, class... Others, class F>
auto with_operation(const OperationInfo& info, const std::byte* op, const F& f) {
  if constexpr (sizeof...(Others) > 0) {
    if (info.opcode != opcode_of<Op>) return with_operation<Others...>(info, op, f);
  }
  return f(*reinterpret_cast<const Op*>(op));
}

constexpr std::size_t kMostElementBytes = 16;
/// The bytes of a number as an element.
std::array<std::uint8_t, kMostElementBytes> element_of(DType dtype, float value) {
  std::array<std::uint8_t, kMostElementBytes> bytes{};
  const auto put = [&](const auto& element) {
    std::memcpy(bytes.data(), &element, sizeof element);
  };
  switch (dtype) {
    case DType::f16: put(from_float<Half>(value)); break;
    case DType::bf16: put(from_float<BFloat16>(value)); break;
    case DType::f64:
    case DType::c128: put(double{value}); break;
    default: put(value); break;  // f32 and c64
  }
  return bytes;
}

struct CachedPlan {
  PlanKey key;
  Plan plan;
  bool ran = false;   ///< kernels are loaded when they are first launched, which blocks
  bool told = false;  ///< take_new_plans() need not give it
};

class TensorHalf final : public LibraryHalfOf<TensorHalf, tensor::Operations> {
 public:
  explicit TensorHalf(Services& services) : services_(services), tuner_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    const auto version = cutensorGetVersion();
    return {{"cuTENSOR",
             std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) + "." +
                 std::to_string(version % 100),
             &cutensorGetVersion}};
  }
  Result<void> open(Queue queue) override;
  /// It makes a plan where none is cached, and loads kernels where that plan has not yet run.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override;
  template <class Op>
  Result<void> run(const Op& op, const Call& call) {
    return carry_out(problem_of(op, call), call.queue());
  }
  Result<void> run(const tensor::TuneContract& op, const Call& call);
  Result<void> run(const tensor::ContractBlockSparse& op, const Call& call) {
    auto& own = state(call.queue());
    return own.blocks.run(services_, handle_.get(), own.workspace, op, call);
  }
  std::vector<std::vector<std::byte>> take_new_plans() override;
  void adopt_plan(std::span<const std::byte> bytes) override;

 private:
  /// What each queue has.
  struct State {
    bool is_open = false;
    std::list<CachedPlan> plans;  ///< the most recently used first
    RetiredPlans<Plan> retired;
    BlockPlans blocks;
    Workspace workspace;  ///< of all plans

    std::list<CachedPlan>::iterator find(const PlanKey& key) {
      return std::find_if(plans.begin(), plans.end(),
                          [&](const CachedPlan& cached) { return cached.key == key; });
    }
  };
  static constexpr std::size_t kPlans = 64;  ///< cached on each queue, and adopted

  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  Result<void> carry_out(Problem problem, Queue queue);
  /// The plan of a key, the first in the queue's cache from then on.
  Result<CachedPlan*> plan_for(const PlanKey& key, Queue queue);
  /// Makes the plan of a recipe if it fits.
  void restore(State& own, const PlanKey& key);

  Services& services_;
  Handle<CutensorTraits> handle_;
  Tuner tuner_;
  std::array<State, 2> states_;  ///< of the lane's own queue, of its detour
  std::list<PlanKey> adopted_;   ///< for queues that are opened later
};

Result<void> TensorHalf::open(Queue queue) {
  if (!handle_) TROUPE_CUDA_TRY(cutensorCreate(handle_.out()));
  auto& own = state(queue);
  own.is_open = true;
  for (const auto& key : adopted_) restore(own, key);
  return {};
}

bool TensorHalf::blocks(const OperationInfo& info, const std::byte* op, const Call& call) {
  if (info.traits.blocking) return true;
  auto& own = state(call.queue());
  const auto problem =
      with_operation<tensor::Contract, tensor::ContractTrinary, tensor::Reduce, tensor::Permute,
                     tensor::ElementwiseBinary, tensor::ElementwiseTrinary>(
          info, op, [&](const auto& it) { return problem_of(it, call); });
  if (problem.is_empty()) return false;
  const auto found = own.find(problem.key);
  return found == own.plans.end() || !found->ran;
}

Result<CachedPlan*> TensorHalf::plan_for(const PlanKey& key, Queue queue) {
  auto& own = state(queue);
  if (const auto found = own.find(key); found != own.plans.end()) {
    own.plans.splice(own.plans.begin(), own.plans, found);
    return &own.plans.front();
  }
  if (services_.records()) return Services::not_recorded("a plan");
  TROUPE_CUDA_PROPAGATE(own.retired.destroy_ended());
  auto made = Plan::make(handle_.get(), key);
  if (!made) return made.error();
  if (own.plans.size() == kPlans) {
    TROUPE_CUDA_PROPAGATE(
        own.retired.add(std::move(own.plans.back().plan), services_.stream(queue)));
    own.plans.pop_back();
    services_.note_given_back();
  }
  own.plans.push_front({key, std::move(*made)});
  return &own.plans.front();
}

Result<void> TensorHalf::carry_out(Problem problem, Queue queue) {
  if (problem.is_empty()) return {};
  const auto found = plan_for(problem.key, queue);
  if (!found) return found.error();
  auto& cached = **found;
  auto& workspace = state(queue).workspace;
  const auto bytes = cached.plan.workspace_bytes();
  TROUPE_CUDA_PROPAGATE(
      workspace.reserve(services_, queue, problem.constant ? kMostElementBytes : bytes));
  if (problem.constant) {  // of an operation that has no other use for the workspace
    const auto dtype = problem.key.dtype(0);
    TROUPE_CUDA_PROPAGATE(services_.fill(queue, workspace.get(),
                                         element_of(dtype, *problem.constant), size_of(dtype), 1));
    problem.operands.inputs[0] = workspace.get();
  }
  TROUPE_CUDA_PROPAGATE(cached.plan.execute(handle_.get(), problem.key.kind, problem.operands,
                                            bytes > 0 ? workspace.get() : nullptr,
                                            services_.stream(queue)));
  cached.ran = true;
  return {};
}

Result<void> TensorHalf::run(const tensor::TuneContract& op, const Call& call) {
  using Op = tensor::Contract;
  const auto& loops = op.product.loops;
  tensor::ContractTuning outcome;
  // Else it is no contraction to cuTENSOR, and there is nothing to choose.
  const auto extents = std::span(loops.extents).first(static_cast<std::size_t>(loops.count));
  if (sums(loops, Op::kD) && std::ranges::find(extents, 0) == extents.end()) {
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(loops.count); ++i)
      elements += (loops.extents[i] - 1) * loops.strides[Op::kD][i];
    const auto problem = problem_of(op, call);
    const auto measured = tuner_.measure(
        handle_.get(), op, problem.key, problem.operands,
        static_cast<std::size_t>(elements) * size_of(op.product.dtype), call.queue());
    if (!measured) return measured.error();
    outcome = *measured;
  }
  std::memcpy(call.at(op.outcome), &outcome, sizeof outcome);  // nothing else uses it
  return {};
}

std::vector<std::vector<std::byte>> TensorHalf::take_new_plans() {
  auto all = tuner_.take_new();
  bool any_compiled = false;
  for (auto& own : states_) {
    for (auto& cached : own.plans) {
      if (std::exchange(cached.told, true)) continue;
      all.push_back(Plan::recipe(cached.key, services_.multiprocessors()));
      any_compiled = any_compiled || cached.key.algorithm.compiled != 0;
    }
  }
  // Behind the recipes: what was told last is adopted first.
  if (any_compiled) {
    if (auto kernels = compiled_kernels(handle_.get(), services_.multiprocessors());
        !kernels.empty())
      all.push_back(std::move(kernels));
  }
  return all;
}

void TensorHalf::adopt_plan(std::span<const std::byte> bytes) {
  if (tuner_.adopt(bytes)) return;
  if (adopt_kernels(handle_.get(), bytes, services_.multiprocessors())) return;
  const auto key = Plan::key_in(bytes, services_.multiprocessors());
  if (!key) return;
  if (adopted_.size() == kPlans) adopted_.pop_front();
  adopted_.push_back(*key);
  for (auto& own : states_) {
    if (own.is_open) restore(own, *key);
  }
}

void TensorHalf::restore(State& own, const PlanKey& key) {
  if (own.plans.size() == kPlans || own.find(key) != own.plans.end()) return;
  auto plan = Plan::make(handle_.get(), key);
  if (plan) own.plans.push_back({.key = key, .plan = std::move(*plan), .told = true});
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::TensorHalf, cuda)
