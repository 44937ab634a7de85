#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <troupe/lib/tensor.hpp>

#include "device_host/engine/cpu/library.hpp"
#include "lib/tensor/blocks/cpu.hpp"

namespace troupe::host::cpu {
namespace {

using tensor::Binary;
using tensor::Extents;
using tensor::PerMode;
using tensor::Source;
using tensor::Target;
using Kept = std::array<bool, tensor::kMaxModes>;

/// The modes that one of these tensors has.
Kept modes_of(std::initializer_list<const PerMode*> tensors) {
  Kept kept{};
  for (const auto* const strides : tensors) {
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = kept[i] || (*strides)[i] > 0;
  }
  return kept;
}

std::int64_t volume(const Extents& modes, const Kept& of) {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < modes.count; ++i) {
    if (of[i] && __builtin_mul_overflow(elements, modes.extents[i], &elements))
      return std::numeric_limits<std::int64_t>::max();
  }
  return elements;
}

/// Which two of the inputs of a trinary contraction are multiplied first: those with the smallest
/// product. `third` is the other one.
struct Order {
  std::size_t first = 0, second = 1, third = 2;
  Kept kept{};  ///< of the first product
};
Order order_of(const tensor::ContractTrinary& op) {
  using Op = tensor::ContractTrinary;
  const Extents modes(op.loops);
  const auto& strides = op.loops.strides;
  Order best;
  std::int64_t smallest = -1;
  for (const auto& [first, second, third] :
       {std::array{Op::kA, Op::kB, Op::kC}, {Op::kA, Op::kC, Op::kB}, {Op::kB, Op::kC, Op::kA}}) {
    auto kept = modes_of({&strides[first], &strides[second]});
    const auto needed = modes_of({&strides[third], &strides[Op::kE]});
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = kept[i] && needed[i];
    const auto elements = volume(modes, kept);
    if (smallest >= 0 && elements >= smallest) continue;
    smallest = elements;
    best = {first, second, third, kept};
  }
  return best;
}

Error too_large(std::string_view operation) {
  return {Errc::unsupported, 0,
          std::string(operation) + ": the cpu engine multiplies matrices with extents below 2^31"};
}

class TensorHalf final : public LibraryHalfOf<TensorHalf, tensor::Operations> {
 public:
  explicit TensorHalf(Services& services) : services_(services) {
    ::openblas_set_num_threads(std::max(1, services.threads()));
  }
  [[nodiscard]] Dependencies stands_on() const override {
    return {{"OpenBLAS", ::openblas_get_config(), &::openblas_get_config}};
  }

  Result<void> run(const tensor::Contract& op, const Call& call) {
    using Op = tensor::Contract;
    const auto& strides = op.loops.strides;
    const auto kept = modes_of({&strides[Op::kD]});
    if (!tensor::can_multiply(Extents(op.loops), strides[Op::kA], strides[Op::kB], kept))
      return too_large(Op::kName);
    return with_number(scalar_type(op.dtype), [&]<class W>(W) {
      const Source<W> a = source<W>(call, op.a, op.a_dtype(), strides[Op::kA], op.unary_a),
                      b = source<W>(call, op.b, op.b_dtype(), strides[Op::kB], op.unary_b);
      const auto target = this->target<W>(call, op.d, op.dtype, strides[Op::kD]);
      const auto addend = this->addend<W>(call, op.c, op.dtype, strides[Op::kD], op.beta);
      return services_.submit(
          call, [modes = Extents(op.loops), alpha = op.alpha.as<W>(), kept, a, b, addend, target] {
            const auto product = tensor::multiply(modes, a, b, kept);
            add(modes, product.source(alpha), addend, target);
          });
    });
  }

  /// There is one way to multiply.
  Result<void> run(const tensor::TuneContract& op, const Call& call) {
    return services_.submit(
        call, [outcome = call.at<tensor::ContractTuning>(op.outcome)] { *outcome = {}; });
  }

  Result<void> run(const tensor::ContractBlockSparse& op, const Call& call) {
    if (std::any_of(op.elements.begin(), op.elements.end(),
                    [](auto count) { return count > std::numeric_limits<int>::max(); }))
      return too_large(tensor::ContractBlockSparse::kName);
    return with_number(op.dtype, [&]<class W>(W) {
      const auto* const a = call.at<const W>(op.a);
      const auto* const b = call.at<const W>(op.b);
      auto* const d = call.at<W>(op.d);
      // Words, which are aligned as the record's bytes are.
      std::vector<std::int64_t> words(call.data().size() / sizeof(std::int64_t));
      std::memcpy(words.data(), call.data().data(), call.data().size());
      return services_.submit(call, [op, words = std::move(words), a, b, d] {
        tensor::contract_blocks(op, {op, std::as_bytes(std::span(words))}, a, b, d);
      });
    });
  }

  Result<void> run(const tensor::ContractTrinary& op, const Call& call) {
    using Op = tensor::ContractTrinary;
    const auto& strides = op.loops.strides;
    const auto order = order_of(op);
    const auto of_result = modes_of({&strides[Op::kE]});
    PerMode of_first{};  // any strides: which modes the first product has
    for (std::size_t i = 0; i < of_first.size(); ++i) of_first[i] = order.kept[i] ? 1 : 0;
    const Extents modes(op.loops);
    if (!tensor::can_multiply(modes, strides[order.first], strides[order.second], order.kept) ||
        !tensor::can_multiply(modes, of_first, strides[order.third], of_result))
      return too_large(Op::kName);
    return with_number(scalar_type(op.dtype), [&]<class W>(W) {
      const std::array<Source<W>, 3> inputs{
          source<W>(call, op.a, op.dtype, strides[Op::kA], op.unary_a),
          source<W>(call, op.b, op.dtype, strides[Op::kB], op.unary_b),
          source<W>(call, op.c, op.dtype, strides[Op::kC], op.unary_c)};
      const auto target = this->target<W>(call, op.e, op.dtype, strides[Op::kE]);
      const auto addend = this->addend<W>(call, op.d, op.dtype, strides[Op::kE], op.beta);
      return services_.submit(
          call, [modes, order, of_result, alpha = op.alpha.as<W>(), inputs, addend, target] {
            const auto first =
                tensor::multiply(modes, inputs[order.first], inputs[order.second], order.kept);
            const auto product =
                tensor::multiply(modes, first.source(), inputs[order.third], of_result);
            add(modes, product.source(alpha), addend, target);
          });
    });
  }

  Result<void> run(const tensor::Reduce& op, const Call& call) {
    using Op = tensor::Reduce;
    const auto& strides = op.loops.strides;
    return with_number(scalar_type(op.dtype), [&]<class W>(W) {
      const auto a = source<W>(call, op.a, op.dtype, strides[Op::kA], op.unary_a);
      const auto target = this->target<W>(call, op.d, op.dtype, strides[Op::kD]);
      const auto addend = this->addend<W>(call, op.c, op.dtype, strides[Op::kD], op.beta);
      return services_.submit(
          call, [modes = Extents(op.loops), reduction = op.reduction, alpha = op.alpha.as<W>(), a,
                 addend, target] { tensor::reduce(modes, reduction, alpha, a, addend, target); });
    });
  }

  Result<void> run(const tensor::Permute& op, const Call& call) {
    using Op = tensor::Permute;
    return with_number(tensor::permute_scale(op.dtype, op.b_dtype), [&]<class W>(W) {
      const std::vector sources{
          source<W>(call, op.a, op.dtype, op.loops.strides[Op::kA], op.unary_a, op.alpha.as<W>())};
      return combine(op.loops, call, sources, {},
                     target<W>(call, op.b, op.b_dtype, op.loops.strides[Op::kB]));
    });
  }

  Result<void> run(const tensor::ElementwiseBinary& op, const Call& call) {
    using Op = tensor::ElementwiseBinary;
    const auto& [in_a, in_d] = op.loops.strides;
    static_assert(Op::kA == 0 && Op::kD == 1);
    return with_number(scalar_type(op.dtype), [&]<class W>(W) {
      const std::vector sources{
          source<W>(call, op.a, op.dtype, in_a, op.unary_a, op.alpha.as<W>()),
          source<W>(call, op.c, op.d_dtype, in_d, op.unary_c, op.gamma.as<W>())};
      return combine(op.loops, call, sources, {op.function},
                     target<W>(call, op.d, op.d_dtype, in_d));
    });
  }

  Result<void> run(const tensor::ElementwiseTrinary& op, const Call& call) {
    using Op = tensor::ElementwiseTrinary;
    const auto& [in_a, in_b, in_d] = op.loops.strides;
    static_assert(Op::kA == 0 && Op::kB == 1 && Op::kD == 2);
    return with_number(scalar_type(op.dtype), [&]<class W>(W) {
      const std::vector sources{
          source<W>(call, op.a, op.dtype, in_a, op.unary_a, op.alpha.as<W>()),
          source<W>(call, op.b, op.dtype, in_b, op.unary_b, op.beta.as<W>()),
          source<W>(call, op.c, op.d_dtype, in_d, op.unary_c, op.gamma.as<W>())};
      return combine(op.loops, call, sources, {op.function_ab, op.function_abc},
                     target<W>(call, op.d, op.d_dtype, in_d));
    });
  }

 private:
  template <class W>
  static Source<W> source(const Call& call, const Operand& operand, DType dtype,
                          const PerMode& strides, tensor::Unary unary, W factor = W(1)) {
    return {call.at<const std::byte>(operand), dtype, strides, unary, factor};
  }
  template <class W>
  static Target<W> target(const Call& call, const Operand& operand, DType dtype,
                          const PerMode& strides) {
    return {call.at<std::byte>(operand), dtype, strides};
  }
  /// beta C; nothing where beta is 0.
  template <class W>
  static std::vector<Source<W>> addend(const Call& call, const Operand& operand, DType dtype,
                                       const PerMode& strides, const Scalar& beta) {
    const auto factor = beta.as<W>();
    if (factor == W(0)) return {};
    return {source<W>(call, operand, dtype, strides, tensor::Unary::identity, factor)};
  }
  /// target = product + addend
  template <class W>
  static void add(const Extents& modes, const Source<W>& product,
                  const std::vector<Source<W>>& addend, const Target<W>& target) {
    std::vector<Source<W>> sources{product};
    sources.insert(sources.end(), addend.begin(), addend.end());
    tensor::elementwise(of_target(modes, target), sources, {Binary::add, Binary::add}, target);
  }
  /// The modes that the target has.
  template <class W>
  static Extents of_target(Extents modes, const Target<W>& target) {
    for (std::size_t i = 0; i < modes.count; ++i) {
      if (target.strides[i] == 0) modes.extents[i] = 1;
    }
    return modes;
  }
  template <class W, std::size_t Tensors>
  Result<void> combine(const tensor::Loops<Tensors>& loops, const Call& call,
                       const std::vector<Source<W>>& sources, std::array<Binary, 2> functions,
                       const Target<W>& target) {
    return services_.submit(call, [modes = Extents(loops), sources, functions, target] {
      tensor::elementwise(modes, sources, functions, target);
    });
  }

  Services& services_;
};

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::TensorHalf, cpu)
