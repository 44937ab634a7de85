#pragma once

#include <array>
#include <concepts>
#include <string>

#include <troupe/lib/dnn_attention.hpp>
#include <troupe/lib/dnn_convolution.hpp>
#include <troupe/lib/dnn_ctc.hpp>
#include <troupe/lib/dnn_dropout.hpp>
#include <troupe/lib/dnn_lrn.hpp>
#include <troupe/lib/dnn_matmul.hpp>
#include <troupe/lib/dnn_moving.hpp>
#include <troupe/lib/dnn_norms.hpp>
#include <troupe/lib/dnn_pointwise.hpp>
#include <troupe/lib/dnn_pooling.hpp>
#include <troupe/lib/dnn_resize.hpp>
#include <troupe/lib/dnn_rnn.hpp>
#include <troupe/lib/dnn_rotary.hpp>
#include <troupe/lib/dnn_softmax.hpp>
#include <troupe/lib/submit.hpp>

/// Layers of neural networks as cuDNN computes them (https://docs.nvidia.com/deeplearning/cudnn).
/// Channels vary fastest (NHWC). Sums are accumulated in f32, never in tf32, and a repetition gives
/// the same bits.
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

/// All of them; whoever includes this header knows them.
using Operations = List<Convolution, GraphCall, Softmax, SoftmaxBackward, Rnn, RnnBackwardData,
                        RnnBackwardWeights, RnnSpace, Lrn, LrnBackward, CtcLoss>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

/// What operations of this library are computed in.
template <class T>
concept Computable = std::same_as<T, Half> || std::same_as<T, BFloat16> || std::same_as<T, float>;

}  // namespace troupe::dnn

namespace troupe {

/// Layers of neural networks on one device; from `dnn::on(device)`. See dnn::Convolution for its
/// formula, layout and alignment. The first operation of a shape takes longer, up to seconds: the
/// engine looks for the fastest algorithm. Errors: invalid (shape or operands), unsupported (the
/// library is not installed, or has no algorithm for this shape), out_of_memory.
class Dnn : public DnnGraphs,
            public DnnPointwise,
            public DnnConvolutions,
            public DnnMatmul,
            public DnnPooling,
            public DnnResize,
            public DnnAttention,
            public DnnNorms,
            public DnnSoftmax,
            public DnnRnn,
            public DnnMoving,
            public DnnDropout,
            public DnnRotary,
            public DnnLrn,
            public DnnCtc {
 public:
  explicit Dnn(detail::Submitter& submitter)
      : DnnGraphs(submitter),
        DnnPointwise(submitter),
        DnnConvolutions(submitter),
        DnnMatmul(submitter),
        DnnPooling(submitter),
        DnnResize(submitter),
        DnnAttention(submitter),
        DnnNorms(submitter),
        DnnSoftmax(submitter),
        DnnRnn(submitter),
        DnnMoving(submitter),
        DnnDropout(submitter),
        DnnRotary(submitter),
        DnnLrn(submitter),
        DnnCtc(submitter),
        submitter_(&submitter) {}

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
  detail::Submitter* submitter_;
};

namespace dnn {
template <class D>
Dnn on(D&& device) {
  return Dnn(device.submitter());
}
}  // namespace dnn

}  // namespace troupe
