#pragma once

#include <algorithm>
#include <complex>
#include <optional>

#include "lib/tensor/common/plan_cuda.hpp"

/// What calls are to cuTENSOR.
namespace troupe::host::cuda {

/// The alignment of an address that a plan may rely on.
inline std::uint32_t alignment_of(const void* address) {
  constexpr std::uintptr_t kMost = 256;
  const auto number = reinterpret_cast<std::uintptr_t>(address) | kMost;
  return static_cast<std::uint32_t>(number & (~number + 1));
}

/// A call as cuTENSOR carries it out.
struct Problem {
  PlanKey key;
  PlanOperands operands;
  /// The first input is this number, which has no place yet.
  std::optional<float> constant = {};

  Problem(PlanKind kind, DType dtype) : dtype_(dtype) { key.kind = kind; }
  /// The next input.
  Problem& input(const void* data, const tensor::PerMode& strides, tensor::Unary unary) {
    return input(data, strides, unary, dtype_);
  }
  Problem& input(const void* data, const tensor::PerMode& strides, tensor::Unary unary,
                 DType dtype) {
    const auto i = key.inputs++;
    key.dtypes[i] = static_cast<std::uint32_t>(dtype);
    key.loops.strides[i] = strides, key.unary[i] = unary, key.alignment[i] = alignment_of(data);
    operands.inputs[i] = data;
    return *this;
  }
  /// The result, behind all inputs, and what is added to it; `addend` may be nullptr.
  Problem& result(void* data, const void* addend, const tensor::PerMode& strides,
                  tensor::Unary unary = tensor::Unary::identity) {
    key.loops.strides[key.inputs] = strides;
    key.dtypes[key.inputs] = static_cast<std::uint32_t>(dtype_);
    key.unary[PlanKey::kInputs] = unary;
    key.alignment[key.inputs] = alignment_of(data);
    if (addend != nullptr)
      key.alignment[key.inputs] = std::min(key.alignment[key.inputs], alignment_of(addend));
    operands.result = data, operands.addend = addend;
    return *this;
  }
  /// The type of the result, where it is another one.
  Problem& result_of(DType dtype) {
    key.dtypes[key.inputs] = static_cast<std::uint32_t>(dtype);
    return *this;
  }
  /// True if the result has no elements.
  [[nodiscard]] bool is_empty() const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(key.loops.count); ++i) {
      if (key.loops.extents[i] == 0 && key.loops.strides[key.inputs][i] > 0) return true;
    }
    return false;
  }
  template <std::size_t Tensors>
  Problem& modes(const tensor::Loops<Tensors>& loops) {
    key.loops.count = loops.count, key.loops.extents = loops.extents;
    return *this;
  }

 private:
  DType dtype_;  ///< of all tensors, unless another one is told
};

inline const void* address(const Call& call, const Operand& operand) {
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

/// True if there is a mode of no elements that the tensor does not have.
template <std::size_t Tensors>
bool sums_nothing(const tensor::Loops<Tensors>& loops, std::size_t tensor) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(loops.count); ++i) {
    if (loops.extents[i] == 0 && loops.strides[tensor][i] == 0) return true;
  }
  return false;
}

/// result = alpha * constant + beta * addend, where cuTENSOR would have to reduce no elements,
/// which it refuses. Op has alpha and beta.
template <class Op>
Problem of_nothing(const Op& op, const tensor::PerMode& strides, float constant, void* result,
                   const void* addend) {
  Problem problem(PlanKind::elementwise_binary, op.dtype);
  problem.modes(op.loops)
      .input(nullptr, {}, tensor::Unary::identity)
      .result(result, addend, strides);
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.loops.count); ++i) {
    if (strides[i] == 0) problem.key.loops.extents[i] = 1;
  }
  problem.key.functions[0] = tensor::Binary::add;
  problem.operands.factors = {op.alpha, op.beta, {}};
  problem.constant = constant;
  return problem;
}

/// 1, as a factor of tensors of that type.
inline Scalar one(DType dtype) {
  switch (dtype) {
    case DType::f64: return Scalar::of(1.0);
    case DType::c64: return Scalar::of(std::complex<float>(1));
    case DType::c128: return Scalar::of(std::complex<double>(1));
    default: return Scalar::of(1.0f);
  }
}

/// Without sums it is a product of elements, of one type.
inline Problem problem_of(const tensor::Contract& op, const Call& call) {
  using Op = tensor::Contract;
  if (sums_nothing(op.loops, Op::kD))
    return of_nothing(op, op.loops.strides[Op::kD], 0, call.at(op.d), address(call, op.c));
  const bool is_sum = op.real != tensor::RealFactor::none || sums(op.loops, Op::kD);
  Problem problem(is_sum ? PlanKind::contract : PlanKind::elementwise_trinary, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a, op.a_dtype())
      .input(address(call, op.b), op.loops.strides[Op::kB], op.unary_b, op.b_dtype())
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD]);
  if (is_sum) {
    problem.key.compute = op.compute, problem.key.algorithm = op.algorithm;
    problem.operands.factors = {op.alpha, op.beta, {}};
    return problem;
  }
  problem.key.functions = {tensor::Binary::mul, tensor::Binary::add};
  problem.operands.factors = {op.alpha, one(op.dtype), op.beta};
  return problem;
}

/// What is measured for it; its result has no place yet.
inline Problem problem_of(const tensor::TuneContract& op, const Call& call) {
  using Op = tensor::Contract;
  const auto& product = op.product;
  Problem problem(PlanKind::contract, product.dtype);
  problem.modes(product.loops)
      .input(address(call, op.a), product.loops.strides[Op::kA], product.unary_a, product.a_dtype())
      .input(address(call, op.b), product.loops.strides[Op::kB], product.unary_b, product.b_dtype())
      .result(nullptr, nullptr, product.loops.strides[Op::kD]);
  problem.key.alignment[problem.key.inputs] = op.alignment_d;
  problem.key.compute = product.compute, problem.key.algorithm = product.algorithm;
  problem.operands.factors = {one(product.dtype), {}, {}};
  return problem;
}

inline Problem problem_of(const tensor::ContractTrinary& op, const Call& call) {
  using Op = tensor::ContractTrinary;
  if (sums_nothing(op.loops, Op::kE))
    return of_nothing(op, op.loops.strides[Op::kE], 0, call.at(op.e), address(call, op.d));
  Problem problem(PlanKind::contract_trinary, op.dtype);
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
inline Problem problem_of(const tensor::Reduce& op, const Call& call) {
  using Op = tensor::Reduce;
  if (sums_nothing(op.loops, Op::kD)) {
    return of_nothing(op, op.loops.strides[Op::kD], op.reduction == tensor::Binary::mul ? 1 : 0,
                      call.at(op.d), address(call, op.c));
  }
  const bool reduces = sums(op.loops, Op::kD);
  Problem problem(reduces ? PlanKind::reduce : PlanKind::elementwise_binary, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD]);
  problem.key.functions[0] = reduces ? op.reduction : tensor::Binary::add;
  problem.operands.factors = {op.alpha, op.beta, {}};
  return problem;
}

inline Problem problem_of(const tensor::Permute& op, const Call& call) {
  using Op = tensor::Permute;
  Problem problem(PlanKind::permute, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .result(call.at(op.b), nullptr, op.loops.strides[Op::kB])
      .result_of(op.b_dtype);
  problem.operands.factors = {op.alpha, {}, {}};
  return problem;
}

inline Problem problem_of(const tensor::ElementwiseBinary& op, const Call& call) {
  using Op = tensor::ElementwiseBinary;
  Problem problem(PlanKind::elementwise_binary, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD], op.unary_c)
      .result_of(op.d_dtype);
  problem.key.functions[0] = op.function;
  problem.operands.factors = {op.alpha, op.gamma, {}};
  return problem;
}

inline Problem problem_of(const tensor::ElementwiseTrinary& op, const Call& call) {
  using Op = tensor::ElementwiseTrinary;
  Problem problem(PlanKind::elementwise_trinary, op.dtype);
  problem.modes(op.loops)
      .input(address(call, op.a), op.loops.strides[Op::kA], op.unary_a)
      .input(address(call, op.b), op.loops.strides[Op::kB], op.unary_b)
      .result(call.at(op.d), address(call, op.c), op.loops.strides[Op::kD], op.unary_c)
      .result_of(op.d_dtype);
  problem.key.functions = {op.function_ab, op.function_abc};
  problem.operands.factors = {op.alpha, op.beta, op.gamma};
  return problem;
}

}  // namespace troupe::host::cuda
