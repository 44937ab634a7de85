#include <algorithm>
#include <complex>
#include <list>
#include <string>
#include <utility>

#include "lib/tensor/plan_cuda.hpp"
#include "lib/tensor/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

using tensor::Binary;
using tensor::Unary;

/// The alignment of an address that a plan may rely on.
std::uint32_t alignment_of(const void* address) {
  constexpr std::uintptr_t kMost = 256;
  const auto number = reinterpret_cast<std::uintptr_t>(address) | kMost;
  return static_cast<std::uint32_t>(number & (~number + 1));
}

/// A call as cuTENSOR carries it out.
struct Problem {
  PlanKey key;
  PlanOperands operands;

  Problem(PlanKind kind, DType dtype, DType result_dtype) {
    key.kind = kind;
    key.dtype = static_cast<std::uint32_t>(dtype);
    key.result_dtype = static_cast<std::uint32_t>(result_dtype);
  }
  /// The next input.
  Problem& input(const void* data, const tensor::PerMode& strides, Unary unary) {
    const auto i = key.inputs++;
    key.loops.strides[i] = strides, key.unary[i] = unary, key.alignment[i] = alignment_of(data);
    operands.inputs[i] = data;
    return *this;
  }
  /// The result, behind all inputs, and what is added to it; `addend` may be nullptr.
  Problem& result(void* data, const void* addend, const tensor::PerMode& strides,
                  Unary unary = Unary::identity) {
    key.loops.strides[key.inputs] = strides;
    key.unary[PlanKey::kInputs] = unary;
    key.alignment[key.inputs] = alignment_of(data);
    if (addend != nullptr)
      key.alignment[key.inputs] = std::min(key.alignment[key.inputs], alignment_of(addend));
    operands.result = data, operands.addend = addend;
    return *this;
  }
  template <std::size_t Tensors>
  Problem& modes(const tensor::Loops<Tensors>& loops) {
    key.loops.count = loops.count, key.loops.extents = loops.extents;
    return *this;
  }
};

const void* address(const Call& call, const Operand& operand) {
  return operand.present() ? call.at<const void>(operand) : nullptr;
}

/// Whether there is a mode that the tensor does not have.
template <std::size_t Tensors>
bool sums(const tensor::Loops<Tensors>& loops, std::size_t tensor) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(loops.count); ++i) {
    if (loops.extents[i] > 1 && loops.strides[tensor][i] == 0) return true;
  }
  return false;
}

/// 1, as a factor of tensors of that type.
Scalar one(DType dtype) {
  switch (dtype) {
    case DType::f64: return Scalar::of(1.0);
    case DType::c64: return Scalar::of(std::complex<float>(1));
    case DType::c128: return Scalar::of(std::complex<double>(1));
    default: return Scalar::of(1.0f);
  }
}

/// Without sums it is a product of elements.
Problem problem_of(const tensor::Contract& op, const Call& call) {
  using Op = tensor::Contract;
  const bool is_sum = sums(op.loops, Op::kD);
  Problem problem(is_sum ? PlanKind::contract : PlanKind::elementwise_trinary, op.dtype, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .input(address(call, op.b), op.loops.strides[Op::kB], op.unary_b)
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD]);
  if (is_sum) {
    problem.key.compute = op.compute;
    problem.operands.factors = {op.alpha, op.beta, {}};
    return problem;
  }
  problem.key.functions = {Binary::mul, Binary::add};
  problem.operands.factors = {op.alpha, one(op.dtype), op.beta};
  return problem;
}

Problem problem_of(const tensor::ContractTrinary& op, const Call& call) {
  using Op = tensor::ContractTrinary;
  Problem problem(PlanKind::contract_trinary, op.dtype, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .input(address(call, op.b), op.loops.strides[Op::kB], op.unary_b)
      .input(address(call, op.c), op.loops.strides[Op::kC], op.unary_c)
      .result(call.at(op.e), address(call, op.d), op.loops.strides[Op::kE]);
  problem.key.compute = op.compute;
  problem.operands.factors = {op.alpha, op.beta, {}};
  return problem;
}

/// Without a mode to reduce it is a sum of two tensors.
Problem problem_of(const tensor::Reduce& op, const Call& call) {
  using Op = tensor::Reduce;
  const bool reduces = sums(op.loops, Op::kD);
  Problem problem(reduces ? PlanKind::reduce : PlanKind::elementwise_binary, op.dtype, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD]);
  problem.key.functions[0] = reduces ? op.reduction : Binary::add;
  problem.operands.factors = {op.alpha, op.beta, {}};
  return problem;
}

Problem problem_of(const tensor::Permute& op, const Call& call) {
  using Op = tensor::Permute;
  Problem problem(PlanKind::permute, op.dtype, op.b_dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .result(call.at(op.b), nullptr, op.loops.strides[Op::kB]);
  problem.operands.factors = {op.alpha, {}, {}};
  return problem;
}

Problem problem_of(const tensor::ElementwiseBinary& op, const Call& call) {
  using Op = tensor::ElementwiseBinary;
  Problem problem(PlanKind::elementwise_binary, op.dtype, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD], op.unary_c);
  problem.key.functions[0] = op.function;
  problem.operands.factors = {op.alpha, op.gamma, {}};
  return problem;
}

Problem problem_of(const tensor::ElementwiseTrinary& op, const Call& call) {
  using Op = tensor::ElementwiseTrinary;
  Problem problem(PlanKind::elementwise_trinary, op.dtype, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .input(address(call, op.b), op.loops.strides[Op::kB], op.unary_b)
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD], op.unary_c);
  problem.key.functions = {op.function_ab, op.function_abc};
  problem.operands.factors = {op.alpha, op.beta, op.gamma};
  return problem;
}

/// Calls f(op) with the operation, which is one of these.
template <class Op, class... Others, class F>
auto with_operation(const OperationInfo& info, const std::byte* op, const F& f) {
  if constexpr (sizeof...(Others) > 0) {
    if (info.opcode != opcode_of<Op>) return with_operation<Others...>(info, op, f);
  }
  return f(*reinterpret_cast<const Op*>(op));
}

struct CachedPlan {
  PlanKey key;
  Plan plan;
  bool ran = false;   ///< kernels are loaded when they are first launched, which blocks
  bool told = false;  ///< take_new_plans() need not give it
};

class TensorHalf final
    : public LibraryHalfOf<TensorHalf, tensor::Contract, tensor::ContractTrinary, tensor::Reduce,
                           tensor::Permute, tensor::ElementwiseBinary, tensor::ElementwiseTrinary> {
 public:
  explicit TensorHalf(Services& services) : services_(services) {}
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
  std::vector<std::vector<std::byte>> take_new_plans() override;
  void adopt_plan(std::span<const std::byte> bytes) override;

 private:
  /// What each queue has.
  struct State {
    bool is_open = false;
    std::list<CachedPlan> plans;  ///< the most recently used first
    RetiredPlans<Plan> retired;
    Workspace workspace;  ///< of all plans

    std::list<CachedPlan>::iterator find(const PlanKey& key) {
      return std::find_if(plans.begin(), plans.end(),
                          [&](const CachedPlan& cached) { return cached.key == key; });
    }
  };
  static constexpr std::size_t kPlans = 64;  ///< cached on each queue, and adopted

  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  Result<void> carry_out(const Problem& problem, Queue queue);
  /// The plan of a key, the first in the queue's cache from then on.
  Result<CachedPlan*> plan_for(const PlanKey& key, Queue queue);
  /// Makes the plan of a recipe if it fits.
  void restore(State& own, const PlanKey& key);

  Services& services_;
  Handle<CutensorTraits> handle_;
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
  auto& own = state(call.queue());
  const auto key =
      with_operation<tensor::Contract, tensor::ContractTrinary, tensor::Reduce, tensor::Permute,
                     tensor::ElementwiseBinary, tensor::ElementwiseTrinary>(
          info, op, [&](const auto& it) { return problem_of(it, call).key; });
  const auto found = own.find(key);
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

Result<void> TensorHalf::carry_out(const Problem& problem, Queue queue) {
  const auto found = plan_for(problem.key, queue);
  if (!found) return found.error();
  auto& cached = **found;
  auto& workspace = state(queue).workspace;
  const auto bytes = cached.plan.workspace_bytes();
  TROUPE_CUDA_PROPAGATE(workspace.reserve(services_, queue, bytes));
  TROUPE_CUDA_PROPAGATE(cached.plan.execute(handle_.get(), problem.key.kind, problem.operands,
                                            bytes > 0 ? workspace.get() : nullptr,
                                            services_.stream(queue)));
  cached.ran = true;
  return {};
}

std::vector<std::vector<std::byte>> TensorHalf::take_new_plans() {
  std::vector<std::vector<std::byte>> all;
  for (auto& own : states_) {
    for (auto& cached : own.plans) {
      if (!std::exchange(cached.told, true))
        all.push_back(Plan::recipe(cached.key, services_.multiprocessors()));
    }
  }
  return all;
}

void TensorHalf::adopt_plan(std::span<const std::byte> bytes) {
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

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cuda::Services& services) {
  return new troupe::host::cuda::TensorHalf(services);
}
