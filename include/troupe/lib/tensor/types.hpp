#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include <troupe/gpu_ref.hpp>
#include <troupe/lib/matrix.hpp>
#include <troupe/lib/operation.hpp>

/// What tensors are to calls and operations: arrays of any number of dimensions, whose dimensions
/// have names.
namespace troupe::tensor {

/// Modes of one operation, and of one tensor. Those of extent 1 do not count for an operation.
inline constexpr std::size_t kMaxModes = 16;
/// A number for each mode; 0 behind the last.
using PerMode = std::array<std::int64_t, kMaxModes>;

/// A function of one number. Complex numbers have the first two alone. At infinities the last five
/// have their limits; cuTENSOR's formulas may give NaN there.
enum class Unary : std::uint32_t {
  identity,
  conj,  ///< of real numbers the same as identity
  neg,
  abs,
  sqrt,
  rcp,   ///< 1 / x
  relu,  ///< max(x, 0)
  exp,
  log,
  sin,
  cos,
  tan,
  sinh,
  cosh,
  tanh,
  asin,
  acos,
  atan,
  asinh,
  acosh,
  atanh,
  ceil,
  floor,
  sigmoid,    ///< 1 / (1 + exp(-x))
  soft_plus,  ///< log(exp(x) + 1)
  soft_sign,  ///< x / (|x| + 1)
  swish,      ///< x sigmoid(x)
  mish        ///< x tanh(soft_plus(x))
};
inline constexpr std::size_t kUnaryCount = 28;

/// A function of two numbers. Complex numbers have the first two alone. NaN is the largest and the
/// smallest of numbers; cuTENSOR may leave it out.
enum class Binary : std::uint32_t { add, mul, max, min };
inline constexpr std::size_t kBinaryCount = 4;

/// What products are computed in. The last three put numbers of many bits together from several of
/// few. A GPU that has one of these not answers unsupported; the cpu engine computes in the
/// standard one, which is as good or better.
enum class Compute : std::uint32_t {
  standard,  ///< f64 and c128 in f64, all others in f32
  tf32,      ///< of f32 and c64: factors are rounded to 10 bits of mantissa
  tf32x3,    ///< of f32 and c64: by three products of tf32, nearly f32
  bf16,      ///< of f32: factors are rounded to bf16
  f16,       ///< of f32: factors are rounded to f16
  f32,       ///< of f64 and c128: factors are rounded to f32
  bf16x9,    ///< of f32 and c64: by nine products of bf16
  f16x4,     ///< of f32 and c64: by four products of f16
  int8x8     ///< of f64 and c128: by products of 8-bit integers, as many as f64 takes
};
inline constexpr std::size_t kComputeCount = 9;
/// Whether products of that type are computed so.
constexpr bool computes(DType dtype, Compute compute) noexcept {
  switch (compute) {
    case Compute::standard: return true;
    case Compute::tf32:
    case Compute::tf32x3:
    case Compute::bf16x9:
    case Compute::f16x4: return dtype == DType::f32 || dtype == DType::c64;
    case Compute::bf16:
    case Compute::f16: return dtype == DType::f32;
    case Compute::f32:
    case Compute::int8x8: return dtype == DType::f64 || dtype == DType::c128;
  }
  return false;
}

/// Which factor of a product of complex numbers is real.
enum class RealFactor : std::uint32_t { none, a, b };
/// The one of factors of these types; their product is of the wider one.
constexpr RealFactor real_factor(DType a, DType b) noexcept {
  return a == b ? RealFactor::none : size_of(a) < size_of(b) ? RealFactor::a : RealFactor::b;
}
/// Whether there are products of such tensors.
constexpr bool multiplies(DType a, DType b, DType product) noexcept {
  const auto f64_and_c128 = [](DType x, DType y) { return x == DType::f64 && y == DType::c128; };
  return (a == b && b == product) ||
         (product == DType::c128 && (f64_and_c128(a, b) || f64_and_c128(b, a)));
}

/// How the kernel of a product is found.
enum class Method : std::uint32_t {
  model,    ///< a model of the GPU chooses among all
  patient,  ///< the same by a model that takes longer and errs less
  gett,     ///< no factor is transposed first
  tgett,    ///< one factor is transposed first
  ttgt      ///< factors and result are transposed around a product of matrices
};
inline constexpr std::size_t kMethodCount = 5;

/// Which kernel of cuTENSOR computes a product. Another one may round differently. It is part of a
/// call, so that the call gives the same bits whenever it is repeated, and other ranks may be told
/// it. The cpu engine has one way to multiply.
struct Algorithm {
  Method method{};
  std::uint16_t rank = 0;      ///< 0: the best one of the method by the model, 1: the next, …
  std::uint16_t compiled = 0;  ///< 1: a kernel for this shape alone, which takes seconds to make

  bool operator==(const Algorithm&) const = default;
};
inline constexpr std::uint16_t kMostRanks = 64;

/// How a product is computed.
struct ContractOptions {
  Compute compute{};
  Algorithm algorithm{};
};

/// Whether tensors of `a` can be permuted into ones of `b`.
constexpr bool converts(DType a, DType b) noexcept {
  const auto pair = [&](DType x, DType y) { return (a == x && b == y) || (a == y && b == x); };
  return a == b || pair(DType::f16, DType::f32) || pair(DType::f32, DType::f64) ||
         pair(DType::c64, DType::c128);
}
/// Whether functions of elements of tensors of `a` can have results of `d`: of the same type, or of
/// half its bits.
constexpr bool combines(DType a, DType d) noexcept {
  return a == d || (converts(a, d) && size_of(a) > size_of(d));
}
/// What a permutation is computed in, its factor too: the wider of both, f32 at least.
constexpr DType permute_scale(DType a, DType b) noexcept {
  return scalar_type(size_of(a) < size_of(b) ? b : a);
}

/// The modes of an operation, which all of its tensors share. Element (i, j, …) of a tensor lies at
/// i * strides[0] + j * strides[1] + …, counted in elements; where the stride is 0, the tensor does
/// not have the mode.
template <std::size_t Tensors>
struct Loops {
  std::int64_t count = 0;  ///< of modes
  PerMode extents{};       ///< 0 or more
  std::array<PerMode, Tensors> strides{};
};

/// One number for each dimension of a tensor. More than kMaxModes are refused when a call is made.
struct Numbers {
  std::size_t count = 0;
  PerMode value{};

  Numbers() = default;
  Numbers(std::initializer_list<std::int64_t> list)
      : Numbers(std::span(list.begin(), list.size())) {}
  explicit Numbers(std::span<const std::int64_t> list) : count(list.size()) {
    std::copy_n(list.begin(), std::min(list.size(), kMaxModes), value.begin());
  }
};

/// The names of a tensor's modes, one for each dimension: letters, or any numbers.
struct Modes {
  std::size_t count = 0;
  std::array<std::int32_t, kMaxModes> name{};

  Modes() = default;
  template <std::convertible_to<std::string_view> Letters>
  Modes(const Letters& letters) {
    const std::string_view all = letters;
    count = all.size();
    std::copy_n(all.begin(), std::min(count, kMaxModes), name.begin());
  }
  Modes(std::initializer_list<std::int32_t> list) : count(list.size()) {
    std::copy_n(list.begin(), std::min(count, kMaxModes), name.begin());
  }
};

/// A tensor in a call: where it lies, how its modes are called, and what is done to each of its
/// elements before anything else.
struct Term {
  Operand data{};
  DType dtype{};
  Unary unary{};
  Numbers extents, strides;  ///< no strides: row-major, without gaps
  Modes modes;
};
/// One of elements T.
template <Element T>
struct TermOf : Term {};

/// A tensor at the beginning of a buffer. The last dimension varies fastest, unless strides say how
/// many elements lie between one index and the next of each dimension. Without dimensions it is one
/// number.
template <Element T>
struct View {
  GpuRef<T> buffer;
  Numbers extents, strides;

  View(GpuRef<T> its_buffer, const Numbers& its_extents, const Numbers& its_strides = {})
      : buffer(std::move(its_buffer)), extents(its_extents), strides(its_strides) {}

  /// The tensor with names for its modes, for one call. A name that stands twice means a diagonal.
  /// The view is to live until the call has been made.
  [[nodiscard]] TermOf<T> operator()(const Modes& modes, Unary unary = Unary::identity) const {
    return {{buffer.operand(), dtype_of<T>, unary, extents, strides, modes}};
  }
};

}  // namespace troupe::tensor
