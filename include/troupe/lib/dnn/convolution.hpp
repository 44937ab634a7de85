#pragma once

#include <array>
#include <concepts>
#include <string>
#include <vector>

#include <troupe/lib/dnn/graph.hpp>
#include <troupe/lib/dnn/sizes.hpp>

namespace troupe {

/// The shape of a convolution. Lists have as many numbers as `extents`, or none.
struct ConvolutionOptions {
  std::int64_t batch = 1;
  std::int64_t input_channels = 0, output_channels = 0;
  std::int64_t groups = 1;
  dnn::Sizes extents = {};         ///< of x, without batch and channels
  dnn::Sizes filter = {};          ///< extents of w
  dnn::Sizes padding_before = {};  ///< none: 0
  dnn::Sizes padding_after = {};   ///< none: as before
  dnn::Sizes strides = {};         ///< none: 1
  dnn::Sizes dilations = {};       ///< none: 1
};

}  // namespace troupe

/// Convolutions and their gradients in graphs. With 1 to 3 spatial dimensions, the extents are
///
///     x  batch, channels, spatial...
///     w  filters, channels / groups, spatial...
///     y  batch, filters, spatial...
///
/// and the strides of each tensor say how it lies in memory: as channels_last(), which is the
/// fastest, or with the channels before the spatial dimensions, as a packed Layout. The number of
/// groups is that of the channels of x divided by that of w. dnn::Convolution has the formula.
/// Pointwise nodes behind a convolution are computed with it: a bias is an input of extents 1,
/// filters, 1...
namespace troupe::dnn {

/// Cross-correlation with `rank` spatial dimensions, what most frameworks call convolution:
///
///     y[n, p, k] = bias[k] + sum over r, c of x[n, p * stride + r * dilation - before, c] w[k, r,
///     c]
///
/// where p and r have one index in each spatial dimension, and x is 0 outside of its extents. With
/// g groups, output channel k only reads the C / g input channels of its group, k / (K / g).
///
/// All operands are row-major and packed, the last index varies fastest:
///   x     batch, extents..., input_channels
///   w     output_channels, filter..., input_channels / groups
///   bias  output_channels; may be absent
///   y     batch, output_extents()..., output_channels
///
/// Products are added in f32 and rounded once to dtype; where an engine cannot add the bias in the
/// same step, the sum is rounded before and after. Extents are below 2^31. y overlaps no other
/// operand.
struct Convolution {
  static constexpr std::string_view kName = "dnn.convolution";
  static constexpr DTypes kDTypes = DTypes::of({DType::f16, DType::bf16, DType::f32});
  static constexpr Traits kTraits = kComputesRecorded;
  using PerDimension = std::array<std::int64_t, kMaxSpatial>;  ///< 0 beyond the rank

  OpDType dtype;
  std::uint32_t rank = 0;  ///< 1 to 3
  std::uint32_t reserved = 0;
  std::int64_t batch = 0;  ///< may be 0
  std::int64_t input_channels = 0, output_channels = 0;
  std::int64_t groups = 0;                         ///< divides both numbers of channels
  PerDimension extents{};                          ///< of x
  PerDimension filter{};                           ///< extents of w
  PerDimension padding_before{}, padding_after{};  ///< zeros around x
  PerDimension strides{}, dilations{};             ///< 1: dense
  Operand x, w, bias, y;

  static constexpr std::array kOperands{read("x", &Convolution::x), read("w", &Convolution::w),
                                        read("bias", &Convolution::bias),
                                        write("y", &Convolution::y)};
  Result<void> check() const;
  /// All of y.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;

  /// The extents of the output of an operation that checks out: (extent + padding - dilation *
  /// (filter - 1) - 1) / stride + 1, rounded down; 1 beyond the rank.
  [[nodiscard]] PerDimension output_extents() const noexcept;
};

/// Types of the elements of a Convolution.
template <class T>
concept Computable = std::same_as<T, Half> || std::same_as<T, BFloat16> || std::same_as<T, float>;

/// How filters move over x. Lists have one number for each spatial dimension, or none.
struct ConvolutionSteps {
  Sizes padding_before = {};  ///< zeros around x; none: 0
  Sizes padding_after = {};   ///< none: as before
  Sizes strides = {};         ///< none: 1
  Sizes dilations = {};       ///< 1 is dense; none: 1
};

/// Adds a node that convolves x with w.
TensorId convolution(Graph& graph, TensorId x, TensorId w, const ConvolutionSteps& steps = {});
/// Adds a node that computes dx, the gradient with regard to x, of these extents:
///
///     dx[n, c, q] = sum over k, p, r with p * stride + r * dilation - before = q
///                   of dy[n, k, p] w[k, c, r]
TensorId convolution_data(Graph& graph, TensorId dy, TensorId w, std::vector<std::int64_t> extents,
                          const ConvolutionSteps& steps = {});
/// Adds a node that computes dw, the gradient with regard to w, of these extents:
///
///     dw[k, c, r] = sum over n, p of dy[n, k, p] x[n, c, p * stride + r * dilation - before]
TensorId convolution_filter(Graph& graph, TensorId dy, TensorId x,
                            std::vector<std::int64_t> extents, const ConvolutionSteps& steps = {});

/// A gradient of a convolution as a graph, of operands as dnn::Convolution has them.
struct ConvolutionGradient {
  Graph graph;
  TensorId dy, other, result;
};
/// `kind`: convolution_data, where w is the other operand, or convolution_filter, where x is.
ConvolutionGradient gradient_of(const ConvolutionOptions& shape, NodeKind kind, DType dtype);

}  // namespace troupe::dnn

namespace troupe {

/// Convolutions and their gradients as calls of their own. The operands lie as those of
/// dnn::Convolution. T is f16, bf16 or f32; the batch of a gradient is not empty.
class DnnConvolutions : public detail::Calls {
 public:
  explicit DnnConvolutions(detail::Submitter& submitter) : Calls(submitter), graphs_(submitter) {}

  /// See dnn::Convolution.
  template <dnn::Computable T>
  Future<void> convolution(const GpuRef<T>& x, const GpuRef<T>& w, const GpuRef<T>& y,
                           const ConvolutionOptions& shape) const {
    return convolve(dtype_of<T>, x.operand(), w.operand(), {}, y.operand(), shape);
  }
  /// See dnn::Convolution.
  template <dnn::Computable T>
  Future<void> convolution(const GpuRef<T>& x, const GpuRef<T>& w, const GpuRef<T>& bias,
                           const GpuRef<T>& y, const ConvolutionOptions& shape) const {
    return convolve(dtype_of<T>, x.operand(), w.operand(), bias.operand(), y.operand(), shape);
  }

  /// dx, the gradient with regard to x; see dnn::convolution_data().
  template <Element T>
  Future<void> convolution_backward_data(const GpuRef<T>& dy, const GpuRef<T>& w,
                                         const GpuRef<T>& dx,
                                         const ConvolutionOptions& shape) const {
    const auto of = dnn::gradient_of(shape, dnn::NodeKind::convolution_data, dtype_of<T>);
    return graphs_.run(of.graph, {{of.dy, dy}, {of.other, w}, {of.result, dx}});
  }
  /// dw, the gradient with regard to w; see dnn::convolution_filter().
  template <Element T>
  Future<void> convolution_backward_filter(const GpuRef<T>& dy, const GpuRef<T>& x,
                                           const GpuRef<T>& dw,
                                           const ConvolutionOptions& shape) const {
    const auto of = dnn::gradient_of(shape, dnn::NodeKind::convolution_filter, dtype_of<T>);
    return graphs_.run(of.graph, {{of.dy, dy}, {of.other, x}, {of.result, dw}});
  }

 private:
  Future<void> convolve(DType dtype, const Operand& x, const Operand& w, const Operand& bias,
                        const Operand& y, const ConvolutionOptions& shape) const {
    const auto rank = shape.extents.rank;
    const auto before = shape.padding_before.or_all(0, rank);
    const auto after = shape.padding_after.rank == 0 ? before : shape.padding_after;
    const auto strides = shape.strides.or_all(1, rank), dilations = shape.dilations.or_all(1, rank);
    for (const auto& list : {shape.filter, before, after, strides, dilations}) {
      if (list.rank == rank) continue;
      return submitter_->refuse(
          {Errc::invalid, 0,
           std::string(dnn::Convolution::kName) + ": a list has not as many numbers as extents"});
    }
    return detail::submit(
        *submitter_,
        dnn::Convolution{dtype, rank, 0, shape.batch, shape.input_channels, shape.output_channels,
                         shape.groups, shape.extents.size, shape.filter.size, before.size,
                         after.size, strides.size, dilations.size, x, w, bias, y});
  }

  DnnGraphs graphs_;
};

}  // namespace troupe
