#include "lib/tensor/common/plan_cuda.hpp"

#include <string>
#include <utility>

#include "lib/tensor/common/descriptors_cuda.hpp"
#include "lib/tensor/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

using tensor::Binary;
using tensor::Unary;

struct TensorTraits {
  using Type = cutensorTensorDescriptor_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type tensor) { (void)cutensorDestroyTensorDescriptor(tensor); }
};
constexpr std::uint64_t kRecipe = 0x6e'616c'702d'746e;  // "nt-plan"

cutensorAlgo_t algorithm_of(tensor::Method method) {
  constexpr std::array kAll{CUTENSOR_ALGO_DEFAULT, CUTENSOR_ALGO_DEFAULT_PATIENT,
                            CUTENSOR_ALGO_GETT, CUTENSOR_ALGO_TGETT, CUTENSOR_ALGO_TTGT};
  static_assert(kAll.size() == tensor::kMethodCount);
  return kAll[static_cast<std::size_t>(method)];
}

/// Real numbers have no conjugation, which is none.
cutensorOperator_t operator_of(Unary unary, DType dtype) {
  constexpr std::array kAll{
      CUTENSOR_OP_IDENTITY,  CUTENSOR_OP_CONJ,      CUTENSOR_OP_NEG,   CUTENSOR_OP_ABS,
      CUTENSOR_OP_SQRT,      CUTENSOR_OP_RCP,       CUTENSOR_OP_RELU,  CUTENSOR_OP_EXP,
      CUTENSOR_OP_LOG,       CUTENSOR_OP_SIN,       CUTENSOR_OP_COS,   CUTENSOR_OP_TAN,
      CUTENSOR_OP_SINH,      CUTENSOR_OP_COSH,      CUTENSOR_OP_TANH,  CUTENSOR_OP_ASIN,
      CUTENSOR_OP_ACOS,      CUTENSOR_OP_ATAN,      CUTENSOR_OP_ASINH, CUTENSOR_OP_ACOSH,
      CUTENSOR_OP_ATANH,     CUTENSOR_OP_CEIL,      CUTENSOR_OP_FLOOR, CUTENSOR_OP_SIGMOID,
      CUTENSOR_OP_SOFT_PLUS, CUTENSOR_OP_SOFT_SIGN, CUTENSOR_OP_SWISH, CUTENSOR_OP_MISH};
  static_assert(kAll.size() == tensor::kUnaryCount);
  if (unary == Unary::conj && real_type(dtype) == dtype) return CUTENSOR_OP_IDENTITY;
  return kAll[static_cast<std::size_t>(unary)];
}
cutensorOperator_t operator_of(Binary binary) {
  constexpr std::array kAll{CUTENSOR_OP_ADD, CUTENSOR_OP_MUL, CUTENSOR_OP_MAX, CUTENSOR_OP_MIN};
  static_assert(kAll.size() == tensor::kBinaryCount);
  return kAll[static_cast<std::size_t>(binary)];
}

/// A tensor as cuTENSOR describes it: its modes, by their numbers.
struct Described {
  std::array<std::int32_t, tensor::kMaxModes> modes{};
  Handle<TensorTraits> descriptor;

  Result<void> describe(cutensorHandle_t handle, const PlanKey& key, std::size_t tensor) {
    tensor::PerMode extents{}, strides{};
    std::uint32_t count = 0;
    bool any = false;  // a mode that counts, of whichever tensor
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(key.loops.count); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto stride = key.loops.strides[tensor][at];
      any = any || key.loops.extents[at] > 1;
      if (stride == 0 || key.loops.extents[at] == 1) continue;
      modes[count] = i, extents[count] = key.loops.extents[at], strides[count] = stride;
      ++count;
    }
    if (!any) extents[0] = strides[0] = count = 1;  // each is one number
    TROUPE_CUDA_TRY(cutensorCreateTensorDescriptor(handle, descriptor.out(), count, extents.data(),
                                                   strides.data(), type_of(key.dtype(tensor)),
                                                   key.alignment[tensor]));
    return {};
  }
};

cutensorStatus_t create(cutensorHandle_t handle, const PlanKey& key,
                        const std::array<Described, PlanKey::kInputs + 1>& tensors,
                        cutensorComputeDescriptor_t compute,
                        cutensorOperationDescriptor_t* operation) {
  const auto tensor = [&](std::size_t i) { return tensors[i].descriptor.get(); };
  const auto modes = [&](std::size_t i) { return tensors[i].modes.data(); };
  const auto unary = [&](std::size_t i) { return operator_of(key.unary[i], key.dtype(i)); };
  const auto result = key.inputs;
  const auto addend = operator_of(key.unary[PlanKey::kInputs], key.dtype(key.inputs));
  const auto f = operator_of(key.functions[0]), g = operator_of(key.functions[1]);
  switch (key.kind) {
    case PlanKind::contract:
      return cutensorCreateContraction(handle, operation, tensor(0), modes(0), unary(0), tensor(1),
                                       modes(1), unary(1), tensor(result), modes(result), addend,
                                       tensor(result), modes(result), compute);
    case PlanKind::contract_trinary:
      return cutensorCreateContractionTrinary(handle, operation, tensor(0), modes(0), unary(0),
                                              tensor(1), modes(1), unary(1), tensor(2), modes(2),
                                              unary(2), tensor(result), modes(result), addend,
                                              tensor(result), modes(result), compute);
    case PlanKind::reduce:
      return cutensorCreateReduction(handle, operation, tensor(0), modes(0), unary(0),
                                     tensor(result), modes(result), addend, tensor(result),
                                     modes(result), f, compute);
    case PlanKind::permute:
      return cutensorCreatePermutation(handle, operation, tensor(0), modes(0), unary(0),
                                       tensor(result), modes(result), compute);
    case PlanKind::elementwise_binary:
      return cutensorCreateElementwiseBinary(handle, operation, tensor(0), modes(0), unary(0),
                                             tensor(result), modes(result), addend, tensor(result),
                                             modes(result), f, compute);
    case PlanKind::elementwise_trinary:
      return cutensorCreateElementwiseTrinary(
          handle, operation, tensor(0), modes(0), unary(0), tensor(1), modes(1), unary(1),
          tensor(result), modes(result), addend, tensor(result), modes(result), f, g, compute);
  }
  return CUTENSOR_STATUS_INVALID_VALUE;
}

}  // namespace

PlanHeader PlanHeader::here(std::uint64_t magic, int multiprocessors) {
  PlanHeader header;
  int device = 0, major = 0, minor = 0;
  (void)cudaGetDevice(&device);
  (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  header.magic = magic, header.version = cutensorGetVersion();
  header.compute_capability = static_cast<std::uint32_t>(10 * major + minor);
  header.multiprocessors = static_cast<std::uint32_t>(multiprocessors);
  return header;
}

Result<Plan> Plan::make(cutensorHandle_t handle, const PlanKey& key) {
  const auto scale = tensor::permute_scale(key.dtype(0), key.dtype(key.inputs));
  std::array<Described, PlanKey::kInputs + 1> tensors;
  for (std::uint32_t i = 0; i <= key.inputs; ++i) {
    TROUPE_CUDA_PROPAGATE(tensors[i].describe(handle, key, i));
  }
  Handle<OperationTraits> operation;
  if (const auto status =
          create(handle, key, tensors, compute_of(scale, key.compute), operation.out());
      status != CUTENSOR_STATUS_SUCCESS)
    return no_plan(status, "cutensorCreate");
  // Factors are of that type, whatever cuTENSOR would take them for.
  const auto wanted = type_of(scale);
  auto expected = wanted;
  TROUPE_CUDA_TRY(cutensorOperationDescriptorGetAttribute(handle, operation.get(),
                                                          CUTENSOR_OPERATION_DESCRIPTOR_SCALAR_TYPE,
                                                          &expected, sizeof expected));
  if (expected != wanted) {
    TROUPE_CUDA_TRY(cutensorOperationDescriptorSetAttribute(
        handle, operation.get(), CUTENSOR_OPERATION_DESCRIPTOR_SCALAR_TYPE, &wanted,
        sizeof wanted));
  }

  Handle<PreferenceTraits> preference;
  const auto& algorithm = key.algorithm;
  if (const auto status = cutensorCreatePlanPreference(
          handle, preference.out(), algorithm_of(algorithm.method),
          algorithm.compiled != 0 ? CUTENSOR_JIT_MODE_DEFAULT : CUTENSOR_JIT_MODE_NONE);
      status != CUTENSOR_STATUS_SUCCESS)
    return no_plan(status, "cutensorCreatePlanPreference");
  if (const std::int32_t rank = algorithm.rank; rank > 0) {
    TROUPE_CUDA_TRY(cutensorPlanPreferenceSetAttribute(
        handle, preference.get(), CUTENSOR_PLAN_PREFERENCE_KERNEL_RANK, &rank, sizeof rank));
  }
  const auto uncached = CUTENSOR_CACHE_MODE_NONE;  // plans are cached here, by all of their key
  TROUPE_CUDA_TRY(cutensorPlanPreferenceSetAttribute(
      handle, preference.get(), CUTENSOR_PLAN_PREFERENCE_CACHE_MODE, &uncached, sizeof uncached));
  std::uint64_t most = 0, needed = 0;
  if (const auto status = cutensorEstimateWorkspaceSize(handle, operation.get(), preference.get(),
                                                        CUTENSOR_WORKSPACE_DEFAULT, &most);
      status != CUTENSOR_STATUS_SUCCESS)
    return no_plan(status, "cutensorEstimateWorkspaceSize");
  Plan plan;
  if (const auto status =
          cutensorCreatePlan(handle, plan.plan_.out(), operation.get(), preference.get(), most);
      status != CUTENSOR_STATUS_SUCCESS)
    return no_plan(status, "cutensorCreatePlan");
  TROUPE_CUDA_TRY(cutensorPlanGetAttribute(
      handle, plan.plan_.get(), CUTENSOR_PLAN_REQUIRED_WORKSPACE, &needed, sizeof needed));
  plan.workspace_bytes_ = static_cast<std::size_t>(needed);
  return plan;
}

std::vector<std::byte> Plan::recipe(const PlanKey& key, int multiprocessors) {
  const auto header = PlanHeader::here(kRecipe, multiprocessors);
  std::vector<std::byte> bytes(sizeof header + sizeof key);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &key, sizeof key);
  return bytes;
}

std::optional<PlanKey> Plan::key_in(std::span<const std::byte> bytes, int multiprocessors) {
  const auto header = PlanHeader::here(kRecipe, multiprocessors);
  if (bytes.size() != sizeof header + sizeof(PlanKey) ||
      std::memcmp(bytes.data(), &header, sizeof header) != 0)
    return std::nullopt;
  PlanKey key;
  std::memcpy(&key, bytes.data() + sizeof header, sizeof key);
  return key;
}

Result<void> Plan::execute(cutensorHandle_t handle, PlanKind kind, const PlanOperands& operands,
                           void* workspace, cudaStream_t stream) const {
  const Factors factor{operands.factors[0], operands.factors[1], operands.factors[2]};
  const auto& x = operands.inputs;
  void* const result = operands.result;
  const void* const addend = operands.addend != nullptr ? operands.addend : result;
  const auto plan = plan_.get();
  switch (kind) {
    case PlanKind::contract:
      TROUPE_CUDA_TRY(cutensorContract(handle, plan, factor[0], x[0], x[1], factor[1], addend,
                                       result, workspace, workspace_bytes_, stream));
      return {};
    case PlanKind::contract_trinary:
      TROUPE_CUDA_TRY(cutensorContractTrinary(handle, plan, factor[0], x[0], x[1], x[2], factor[1],
                                              addend, result, workspace, workspace_bytes_, stream));
      return {};
    case PlanKind::reduce:
      TROUPE_CUDA_TRY(cutensorReduce(handle, plan, factor[0], x[0], factor[1], addend, result,
                                     workspace, workspace_bytes_, stream));
      return {};
    case PlanKind::permute:
      TROUPE_CUDA_TRY(cutensorPermute(handle, plan, factor[0], x[0], result, stream));
      return {};
    case PlanKind::elementwise_binary:
      TROUPE_CUDA_TRY(cutensorElementwiseBinaryExecute(handle, plan, factor[0], x[0], factor[1],
                                                       addend, result, stream));
      return {};
    case PlanKind::elementwise_trinary:
      TROUPE_CUDA_TRY(cutensorElementwiseTrinaryExecute(handle, plan, factor[0], x[0], factor[1],
                                                        x[1], factor[2], addend, result, stream));
      return {};
  }
  return Error{Errc::library, 0, "a plan of no kind"};
}

}  // namespace troupe::host::cuda
