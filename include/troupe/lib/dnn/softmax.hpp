#pragma once

#include <concepts>

#include <troupe/lib/dnn/graph.hpp>

/// Softmax and its logarithm.
namespace troupe::dnn {

enum class SoftmaxKind : std::uint32_t { softmax, log_softmax };

/// Over j, which has `extent` values:
///
///     softmax:      y[i, j, k] = exp(x[i, j, k]) / sum over j of exp(x[i, j, k])
///     log_softmax:  y[i, j, k] = x[i, j, k] - log(sum over j of exp(x[i, j, k]))
///
/// x and y are row-major and packed, outer by extent by inner: inner is 1 for the last dimension of
/// a tensor, which is that of the channels where these vary fastest. The largest x is subtracted
/// first, so that no exponential overflows. Computed in f32, in f64 for f64, and rounded once. y
/// overlaps no other operand.
struct Softmax {
  static constexpr std::string_view kName = "dnn.softmax";
  static constexpr DTypes kDTypes = DTypes::of({DType::f16, DType::bf16, DType::f32, DType::f64});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  SoftmaxKind kind{};
  std::uint32_t reserved = 0;
  std::int64_t outer = 0;  ///< may be 0
  std::int64_t extent = 0, inner = 0;
  Operand x, y;

  static constexpr std::array kOperands{read("x", &Softmax::x), write("y", &Softmax::y)};
  Result<void> check() const;
  /// All of y.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

/// The gradient of Softmax, from its result y and dy, the gradient of that:
///
///     softmax:      dx[i, j, k] = y[i, j, k] * (dy[i, j, k] - sum over j of dy[i, j, k] y[i, j,
///     k]) log_softmax:  dx[i, j, k] = dy[i, j, k] - exp(y[i, j, k]) * sum over j of dy[i, j, k]
struct SoftmaxBackward {
  static constexpr std::string_view kName = "dnn.softmax_backward";
  static constexpr DTypes kDTypes = Softmax::kDTypes;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  SoftmaxKind kind{};
  std::uint32_t reserved = 0;
  std::int64_t outer = 0;
  std::int64_t extent = 0, inner = 0;
  Operand y, dy, dx;

  static constexpr std::array kOperands{read("y", &SoftmaxBackward::y),
                                        read("dy", &SoftmaxBackward::dy),
                                        write("dx", &SoftmaxBackward::dx)};
  Result<void> check() const;
  /// All of dx.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

/// What softmax is computed in.
template <class T>
concept SoftmaxElement = std::same_as<T, Half> || std::same_as<T, BFloat16> ||
    std::same_as<T, float> || std::same_as<T, double>;

}  // namespace troupe::dnn

namespace troupe {

/// Which elements of a tensor a softmax goes over; see dnn::Softmax.
struct SoftmaxShape {
  std::int64_t extent = 0;  ///< so many elements
  std::int64_t inner = 1;   ///< which are so far apart
};

/// Softmax on one device; see dnn::Softmax for formulas and layouts. The length of y, or dx, is a
/// multiple of extent * inner. Errors: invalid (shape or operands), unsupported (the library is not
/// installed; on the cuda engine also 2^31 elements or more in extent * inner).
class DnnSoftmax : public detail::Calls {
 public:
  using Calls::Calls;

  template <dnn::SoftmaxElement T>
  Future<void> softmax(const GpuRef<T>& x, const GpuRef<T>& y, const SoftmaxShape& shape) const {
    return forward(dnn::SoftmaxKind::softmax, x, y, shape);
  }
  template <dnn::SoftmaxElement T>
  Future<void> log_softmax(const GpuRef<T>& x, const GpuRef<T>& y,
                           const SoftmaxShape& shape) const {
    return forward(dnn::SoftmaxKind::log_softmax, x, y, shape);
  }
  /// See dnn::SoftmaxBackward.
  template <dnn::SoftmaxElement T>
  Future<void> softmax_backward(const GpuRef<T>& dy, const GpuRef<T>& y, const GpuRef<T>& dx,
                                const SoftmaxShape& shape) const {
    return backward(dnn::SoftmaxKind::softmax, dy, y, dx, shape);
  }
  /// See dnn::SoftmaxBackward.
  template <dnn::SoftmaxElement T>
  Future<void> log_softmax_backward(const GpuRef<T>& dy, const GpuRef<T>& y, const GpuRef<T>& dx,
                                    const SoftmaxShape& shape) const {
    return backward(dnn::SoftmaxKind::log_softmax, dy, y, dx, shape);
  }

 private:
  template <class T>
  Future<void> forward(dnn::SoftmaxKind kind, const GpuRef<T>& x, const GpuRef<T>& y,
                       const SoftmaxShape& shape) const {
    return detail::submit(
        *submitter_, dnn::Softmax{dtype_of<T>, kind, 0, outer_of(y.length(), shape), shape.extent,
                                  shape.inner, x.operand(), y.operand()});
  }
  template <class T>
  Future<void> backward(dnn::SoftmaxKind kind, const GpuRef<T>& dy, const GpuRef<T>& y,
                        const GpuRef<T>& dx, const SoftmaxShape& shape) const {
    return detail::submit(
        *submitter_,
        dnn::SoftmaxBackward{dtype_of<T>, kind, 0, outer_of(dx.length(), shape), shape.extent,
                             shape.inner, y.operand(), dy.operand(), dx.operand()});
  }
  /// Rounded up: then a length that is no multiple is refused as too short.
  static std::int64_t outer_of(std::int64_t length, const SoftmaxShape& shape) {
    std::int64_t each = 0;
    if (__builtin_mul_overflow(shape.extent, shape.inner, &each) || each < 1) return 1;
    return length / each + (length % each != 0 ? 1 : 0);
  }
};

}  // namespace troupe
