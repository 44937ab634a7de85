#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <troupe/lib/operation_info.hpp>
#include <troupe/lib/tensor/types.hpp>

/// The operations on tensors, as cuTENSOR (https://docs.nvidia.com/cuda/cutensor) defines them.
///
/// No two elements of a tensor lie in one place, as far as that is easily seen: by ascending
/// stride, each mode steps over all that those before it cover. What is written overlaps no other
/// operand, but for C, which has the layout of the result and may be the result.
///
/// A mode may have no elements. A tensor that has such a mode is empty, and to write it does
/// nothing. A sum of no elements is 0, a product 1; the largest and the smallest of them are
/// `invalid`.
///
/// Factors are known to the host: of f32 for f16 and bf16, else of the tensors' type. Narrow types
/// are computed in f32 and rounded once. A repetition gives the same bits.
namespace troupe::tensor {

inline constexpr DTypes kDTypes =
    DTypes::of({DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128});

/// Bytes of a tensor that has no gaps, from its beginning; 0 where it has any.
std::uint64_t whole_bytes(std::int64_t count, const PerMode& extents, const PerMode& strides,
                          DType dtype) noexcept;
template <std::size_t Tensors>
std::uint64_t whole_bytes(const Loops<Tensors>& loops, std::size_t tensor, DType dtype) noexcept {
  return whole_bytes(loops.count, loops.extents, loops.strides[tensor], dtype);
}

/// D = alpha op(A) op(B) + beta C, summed over the modes that D does not have: both A and B have
/// these. Each mode of D is in A or B. op is identity or conj. One of A and B may be of f64 where
/// the others are of c128.
struct Contract {
  static constexpr std::string_view kName = "tensor.contract";
  static constexpr DTypes kDTypes = tensor::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::size_t kA = 0, kB = 1, kD = 2;  ///< in `loops`

  OpDType dtype;
  Compute compute{};
  RealFactor real{};
  Algorithm algorithm{};
  Unary unary_a{}, unary_b{};
  Loops<3> loops;
  Scalar alpha, beta;
  Operand a, b, c, d;  ///< c may be absent where beta is 0

  static constexpr std::array kOperands{
      read("alpha", &Contract::alpha), read("beta", &Contract::beta), read("a", &Contract::a),
      read("b", &Contract::b),         read("c", &Contract::c),       update("d", &Contract::d)};
  static constexpr auto kInPlace = std::array{InPlace{"c", "d"}};
  Result<void> check() const;
  [[nodiscard]] DType a_dtype() const noexcept {
    return real == RealFactor::a ? real_type(dtype) : dtype.value;
  }
  [[nodiscard]] DType b_dtype() const noexcept {
    return real == RealFactor::b ? real_type(dtype) : dtype.value;
  }
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return written(range) > 0 ? Access::write : declared;
  }
  /// All of D, where it has no gaps.
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &d ? whole_bytes(loops, kD, dtype) : 0;
  }
};

/// What has come of a measurement.
struct ContractTuning {
  Algorithm algorithm{};        ///< the fastest one
  std::int64_t candidates = 0;  ///< that were measured; 0: there is nothing to choose
  double seconds = 0;           ///< of one product by the fastest one
  double seconds_before = 0;    ///< of one by Algorithm{}
  std::uint64_t workspace = 0;  ///< bytes that the fastest one uses
};

/// Measures kernels for a product A B, whose result goes to scratch memory. What has been measured
/// on this rank before is answered at once, also by later device hosts, and in later runs
/// (--tuning-cache). Blocks its library meanwhile.
struct TuneContract {
  static constexpr std::string_view kName = "tensor.tune_contract";
  static constexpr DTypes kDTypes = tensor::kDTypes;
  static constexpr Traits kTraits{.repeatable = true, .blocking = true, .not_prepared = true};
  static constexpr std::uint32_t kMostCandidates = 256, kMostRepeats = 1000;

  OpDType dtype;  ///< that of the product
  std::uint32_t candidates = 0, repeats = 0;
  std::uint32_t alignment_d = 0;  ///< bytes, a power of two up to 256
  std::uint32_t again = 0;        ///< 1: also what has been measured before
  Contract product;               ///< without operands and factors
  Operand a, b, outcome;

  static constexpr std::array kOperands{read("a", &TuneContract::a), read("b", &TuneContract::b),
                                        write("outcome", &TuneContract::outcome)};
  static constexpr auto kCell = &TuneContract::outcome;
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &outcome ? sizeof(ContractTuning) : 0;
  }
};

/// E = alpha op(A) op(B) op(C) + beta D, summed over the modes that E does not have: at least two
/// of A, B and C have each of these. Each mode of E is in A, B or C. op is identity or conj.
struct ContractTrinary {
  static constexpr std::string_view kName = "tensor.contract_trinary";
  static constexpr DTypes kDTypes = tensor::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::size_t kA = 0, kB = 1, kC = 2, kE = 3;

  OpDType dtype;
  Compute compute{};
  Unary unary_a{}, unary_b{}, unary_c{};
  Loops<4> loops;
  Scalar alpha, beta;
  Operand a, b, c, d, e;  ///< d may be absent where beta is 0

  static constexpr std::array kOperands{
      read("alpha", &ContractTrinary::alpha), read("beta", &ContractTrinary::beta),
      read("a", &ContractTrinary::a),         read("b", &ContractTrinary::b),
      read("c", &ContractTrinary::c),         read("d", &ContractTrinary::d),
      update("e", &ContractTrinary::e)};
  static constexpr auto kInPlace = std::array{InPlace{"d", "e"}};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return written(range) > 0 ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &e ? whole_bytes(loops, kE, dtype) : 0;
  }
};

/// D = alpha R op(A) + beta C, where R adds up, multiplies, or takes the largest or the smallest of
/// the elements along the modes that D does not have. A has every mode. op is identity or conj.
struct Reduce {
  static constexpr std::string_view kName = "tensor.reduce";
  static constexpr DTypes kDTypes = tensor::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::size_t kA = 0, kD = 1;

  OpDType dtype;
  Binary reduction{};
  Unary unary_a{};
  Loops<2> loops;
  Scalar alpha, beta;
  Operand a, c, d;  ///< c may be absent where beta is 0

  static constexpr std::array kOperands{read("alpha", &Reduce::alpha), read("beta", &Reduce::beta),
                                        read("a", &Reduce::a), read("c", &Reduce::c),
                                        update("d", &Reduce::d)};
  static constexpr auto kInPlace = std::array{InPlace{"c", "d"}};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return written(range) > 0 ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &d ? whole_bytes(loops, kD, dtype) : 0;
  }
};

/// B = alpha op(A), whose modes may have another order, and which may be of another type: see
/// converts(). B has every mode; along those that A does not have, all of its elements are the
/// same. alpha is of permute_scale().
struct Permute {
  static constexpr std::string_view kName = "tensor.permute";
  static constexpr DTypes kDTypes = tensor::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::size_t kA = 0, kB = 1;

  OpDType dtype;  ///< of A
  OpDType b_dtype;
  Unary unary_a{};
  std::uint32_t reserved = 0;
  Loops<2> loops;
  Scalar alpha;
  Operand a, b;

  static constexpr std::array kOperands{read("alpha", &Permute::alpha), read("a", &Permute::a),
                                        update("b", &Permute::b)};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return written(range) > 0 ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &b ? whole_bytes(loops, kB, b_dtype) : 0;
  }
};

/// D = f(alpha op(A), gamma op(C)), where C has every mode and D the layout of C. Along modes that
/// A does not have, its elements are repeated. C and D may be of fewer bits than A.
struct ElementwiseBinary {
  static constexpr std::string_view kName = "tensor.elementwise_binary";
  static constexpr DTypes kDTypes = tensor::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::size_t kA = 0, kD = 1;

  OpDType dtype;    ///< of A, and of the factors as scalar_type() says
  OpDType d_dtype;  ///< of C and D, see combines()
  Binary function{};
  Unary unary_a{}, unary_c{};
  std::uint32_t reserved = 0;
  Loops<2> loops;
  Scalar alpha, gamma;
  Operand a, c, d;

  static constexpr std::array kOperands{
      read("alpha", &ElementwiseBinary::alpha), read("gamma", &ElementwiseBinary::gamma),
      read("a", &ElementwiseBinary::a), read("c", &ElementwiseBinary::c),
      update("d", &ElementwiseBinary::d)};
  static constexpr auto kInPlace = std::array{InPlace{"c", "d"}};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return written(range) > 0 ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &d ? whole_bytes(loops, kD, d_dtype) : 0;
  }
};

/// D = g(f(alpha op(A), beta op(B)), gamma op(C)), where C has every mode and D the layout of C.
/// Along modes that A or B does not have, its elements are repeated. C and D may be of fewer bits
/// than A and B.
struct ElementwiseTrinary {
  static constexpr std::string_view kName = "tensor.elementwise_trinary";
  static constexpr DTypes kDTypes = tensor::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::size_t kA = 0, kB = 1, kD = 2;

  OpDType dtype;                         ///< of A and B, and of the factors as scalar_type() says
  OpDType d_dtype;                       ///< of C and D, see combines()
  Binary function_ab{}, function_abc{};  ///< f and g
  Unary unary_a{}, unary_b{}, unary_c{};
  std::uint32_t reserved = 0;
  Loops<3> loops;
  Scalar alpha, beta, gamma;
  Operand a, b, c, d;

  static constexpr std::array kOperands{
      read("alpha", &ElementwiseTrinary::alpha), read("beta", &ElementwiseTrinary::beta),
      read("gamma", &ElementwiseTrinary::gamma), read("a", &ElementwiseTrinary::a),
      read("b", &ElementwiseTrinary::b),         read("c", &ElementwiseTrinary::c),
      update("d", &ElementwiseTrinary::d)};
  static constexpr auto kInPlace = std::array{InPlace{"c", "d"}};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return written(range) > 0 ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &d ? whole_bytes(loops, kD, d_dtype) : 0;
  }
};

/// All of them; whoever includes this header knows them.
using Operations = List<Contract, ContractTrinary, Reduce, Permute, ElementwiseBinary,
                        ElementwiseTrinary, TuneContract, ContractBlockSparse>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::tensor
