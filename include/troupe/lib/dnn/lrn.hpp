#pragma once

#include <concepts>

#include <troupe/lib/dnn/graph.hpp>

/// Local response normalisation across channels (Krizhevsky et al., ImageNet Classification with
/// Deep Convolutional Neural Networks, 2012).
namespace troupe::dnn {

/// Constants of a local response normalisation.
struct LrnRule {
  std::int32_t window = 5;  ///< 1 to 16
  std::int32_t reserved = 0;
  double alpha = 1e-4;
  double beta = 0.75;  ///< at least 0.01
  double k = 2;        ///< at least 1e-5
};

/// Over channels c, of which there are `extent`:
///
///     y[i, c, j] = x[i, c, j] * s[i, c, j]^(-beta)
///     s[i, c, j] = k + alpha / window * sum over d of x[i, d, j]^2
///
/// where d runs from c - (window - 1) / 2, rounded down, over `window` channels, as far as there
/// are such. x and y are row-major and packed, outer by extent by inner: inner is the number of
/// pixels where the channels stand before them, and 1 where the channels vary fastest. Computed in
/// f32, in f64 for f64. y overlaps no other operand.
struct Lrn {
  static constexpr std::string_view kName = "dnn.lrn";
  static constexpr DTypes kDTypes = DTypes::of({DType::f16, DType::f32, DType::f64});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  LrnRule rule;
  std::int64_t outer = 0;  ///< may be 0
  std::int64_t extent = 0, inner = 0;
  Operand x, y;

  static constexpr std::array kOperands{read("x", &Lrn::x), write("y", &Lrn::y)};
  Result<void> check() const;
  /// All of y.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

/// The gradient of Lrn, from x, its result y, and dy, the gradient of that:
///
///     dx[i, c, j] = dy[i, c, j] * s[i, c, j]^(-beta)
///                   - 2 * alpha * beta / window * x[i, c, j]
///                     * sum over d of dy[i, d, j] * y[i, d, j] / s[i, d, j]
///
/// where d runs over the channels whose windows have c.
struct LrnBackward {
  static constexpr std::string_view kName = "dnn.lrn_backward";
  static constexpr DTypes kDTypes = Lrn::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  LrnRule rule;
  std::int64_t outer = 0;
  std::int64_t extent = 0, inner = 0;
  Operand x, y, dy, dx;

  static constexpr std::array kOperands{read("x", &LrnBackward::x), read("y", &LrnBackward::y),
                                        read("dy", &LrnBackward::dy),
                                        write("dx", &LrnBackward::dx)};
  Result<void> check() const;
  /// All of dx.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

/// What it is computed in.
template <class T>
concept LrnElement = std::same_as<T, Half> || std::same_as<T, float> || std::same_as<T, double>;

}  // namespace troupe::dnn

namespace troupe {

/// The channels of a tensor, and how they are normalised; see dnn::Lrn.
struct LrnShape {
  std::int64_t channels = 0;
  std::int64_t inner = 1;  ///< elements from one channel to the next
  dnn::LrnRule rule = {};
};

/// Local response normalisation on one device; see dnn::Lrn for formulas and layouts. The length of
/// y, or dx, is a multiple of channels * inner. Errors: invalid (shape, constants or operands),
/// unsupported (the library is not installed; on the cuda engine also 2^31 elements or more in
/// channels * inner).
class DnnLrn : public detail::Calls {
 public:
  using Calls::Calls;

  template <dnn::LrnElement T>
  Future<void> lrn(const GpuRef<T>& x, const GpuRef<T>& y, const LrnShape& shape) const {
    return detail::submit(
        *submitter_, dnn::Lrn{dtype_of<T>, shape.rule, outer_of(y.length(), shape), shape.channels,
                              shape.inner, x.operand(), y.operand()});
  }
  /// See dnn::LrnBackward.
  template <dnn::LrnElement T>
  Future<void> lrn_backward(const GpuRef<T>& x, const GpuRef<T>& y, const GpuRef<T>& dy,
                            const GpuRef<T>& dx, const LrnShape& shape) const {
    return detail::submit(
        *submitter_,
        dnn::LrnBackward{dtype_of<T>, shape.rule, outer_of(dx.length(), shape), shape.channels,
                         shape.inner, x.operand(), y.operand(), dy.operand(), dx.operand()});
  }

 private:
  /// Rounded up: then a length that is no multiple is refused as too short.
  static std::int64_t outer_of(std::int64_t length, const LrnShape& shape) {
    std::int64_t each = 0;
    if (__builtin_mul_overflow(shape.channels, shape.inner, &each) || each < 1) return 1;
    return length / each + (length % each != 0 ? 1 : 0);
  }
};

}  // namespace troupe
