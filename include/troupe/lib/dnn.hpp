#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>

#include <troupe/lib/dnn_pointwise.hpp>
#include <troupe/lib/dnn_rnn.hpp>
#include <troupe/lib/submit.hpp>

/// Layers of neural networks as cuDNN computes them (https://docs.nvidia.com/deeplearning/cudnn).
/// Channels vary fastest (NHWC). Sums are accumulated in f32, never in tf32, and a repetition gives
/// the same bits.
namespace troupe::dnn {

inline constexpr std::size_t kMaxSpatial = 3;

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

/// Which keys a query sees. causal: query i sees keys 0 to i, counted from the first ones of both
/// ("top left"); where there are more queries than keys, the last ones see all keys.
enum class Mask : std::uint32_t { none, causal };

/// Scaled dot-product attention (Vaswani et al., Attention Is All You Need, 2017), for each batch b
/// and head h:
///
///     o[b, i, h] = sum over j of p[i, j] v[b, j, h'],  p[i] = softmax over j of s[i, j]
///     s[i, j] = scale * (q[b, i, h] . k[b, j, h'])
///
/// where j runs over the keys that query i sees. heads_q is a multiple of heads_kv: head h of q
/// uses head h' = h / (heads_q / heads_kv) of k and v (grouped queries).
///
/// All operands are row-major and packed, the last index varies fastest:
///   q      batch, sequence_q, heads_q, dim_qk
///   k      batch, sequence_kv, heads_kv, dim_qk
///   v      batch, sequence_kv, heads_kv, dim_v
///   o      batch, sequence_q, heads_q, dim_v
///   stats  batch, heads_q, sequence_q in f32: log of the sum over j of exp(s[i, j]); may be absent
///
/// Computed in f32; an engine may round p to dtype before the second sum. Dimensions of heads are
/// multiples of 8 up to 128. o and stats overlap no other operand.
struct Attention {
  static constexpr std::string_view kName = "dnn.attention";
  static constexpr DTypes kDTypes = DTypes::of({DType::f16, DType::bf16});
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::int64_t kDimMultiple = 8, kMaxDim = 128;

  OpDType dtype;
  Mask mask{};
  float scale = 0;         ///< finite, not negative
  std::int64_t batch = 0;  ///< may be 0
  std::int64_t heads_q = 0, heads_kv = 0;
  std::int64_t sequence_q = 0, sequence_kv = 0;
  std::int64_t dim_qk = 0, dim_v = 0;
  Operand q, k, v, o, stats;

  static constexpr std::array kOperands{read("q", &Attention::q), read("k", &Attention::k),
                                        read("v", &Attention::v), write("o", &Attention::o),
                                        write("stats", &Attention::stats)};
  Result<void> check() const;
  /// All of o and stats.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

/// All of them; whoever includes this header knows them.
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

/// What operations of this library are computed in.
template <class T>
concept Computable = std::same_as<T, Half> || std::same_as<T, BFloat16> || std::same_as<T, float>;
template <class T>
concept Narrow = std::same_as<T, Half> || std::same_as<T, BFloat16>;

/// A number for each spatial dimension, the slowest first: {height, width}.
struct Sizes {
  std::uint32_t rank = 0;  ///< more than kMaxSpatial is refused when the operation is submitted
  std::array<std::int64_t, kMaxSpatial> size{};

  Sizes() = default;
  Sizes(std::initializer_list<std::int64_t> list) : rank(static_cast<std::uint32_t>(list.size())) {
    std::copy_n(list.begin(), std::min(list.size(), kMaxSpatial), size.begin());
  }
  /// These, or `value` in each of `dimensions` dimensions where there are none.
  [[nodiscard]] Sizes or_all(std::int64_t value, std::uint32_t dimensions) const {
    Sizes sizes = *this;
    if (rank > 0 || dimensions > kMaxSpatial) return sizes;
    sizes.rank = dimensions;
    std::fill_n(sizes.size.begin(), dimensions, value);
    return sizes;
  }
};

}  // namespace troupe::dnn

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

/// The shape of an attention, and what it computes.
struct AttentionOptions {
  std::int64_t batch = 1;
  std::int64_t heads_q = 1;
  std::int64_t heads_kv = 0;  ///< 0: heads_q
  std::int64_t sequence_q = 0;
  std::int64_t sequence_kv = 0;  ///< 0: sequence_q
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;  ///< 0: dim_qk
  dnn::Mask mask = dnn::Mask::none;
  std::optional<float> scale = {};  ///< none: 1 / sqrt(dim_qk)
};

/// Layers of neural networks on one device; from `dnn::on(device)`. See dnn::Convolution and
/// dnn::Attention for formulas, layouts and alignment. The first operation of a shape takes longer,
/// up to seconds: the engine looks for the fastest algorithm. Errors: invalid (shape or operands),
/// unsupported (the library is not installed, or has no algorithm for this shape), out_of_memory.
class Dnn : public DnnGraphs, public DnnPointwise, public DnnRnn {
 public:
  explicit Dnn(detail::Submitter& submitter)
      : DnnGraphs(submitter), DnnPointwise(submitter), DnnRnn(submitter), submitter_(&submitter) {}

  /// See dnn::Convolution.
  template <dnn::Computable T>
  Future<void> convolution(const GpuRef<T>& x, const GpuRef<T>& w, const GpuRef<T>& y,
                           const ConvolutionOptions& shape) {
    return convolve(dtype_of<T>, x.operand(), w.operand(), {}, y.operand(), shape);
  }
  /// See dnn::Convolution.
  template <dnn::Computable T>
  Future<void> convolution(const GpuRef<T>& x, const GpuRef<T>& w, const GpuRef<T>& bias,
                           const GpuRef<T>& y, const ConvolutionOptions& shape) {
    return convolve(dtype_of<T>, x.operand(), w.operand(), bias.operand(), y.operand(), shape);
  }
  /// See dnn::Attention.
  template <dnn::Narrow T>
  Future<void> attention(const GpuRef<T>& q, const GpuRef<T>& k, const GpuRef<T>& v,
                         const GpuRef<T>& o, const AttentionOptions& shape) {
    return attend(dtype_of<T>, q.operand(), k.operand(), v.operand(), o.operand(), {}, shape);
  }
  /// See dnn::Attention; also computes stats, as its gradient needs them.
  template <dnn::Narrow T>
  Future<void> attention(const GpuRef<T>& q, const GpuRef<T>& k, const GpuRef<T>& v,
                         const GpuRef<T>& o, const GpuRef<float>& stats,
                         const AttentionOptions& shape) {
    return attend(dtype_of<T>, q.operand(), k.operand(), v.operand(), o.operand(), stats.operand(),
                  shape);
  }

 private:
  Future<void> convolve(DType dtype, const Operand& x, const Operand& w, const Operand& bias,
                        const Operand& y, const ConvolutionOptions& shape) {
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
  Future<void> attend(DType dtype, const Operand& q, const Operand& k, const Operand& v,
                      const Operand& o, const Operand& stats, const AttentionOptions& shape) {
    const auto scale = shape.scale.value_or(1 / std::sqrt(static_cast<float>(shape.dim_qk)));
    return detail::submit(
        *submitter_,
        dnn::Attention{dtype, shape.mask, scale, shape.batch, shape.heads_q,
                       shape.heads_kv == 0 ? shape.heads_q : shape.heads_kv, shape.sequence_q,
                       shape.sequence_kv == 0 ? shape.sequence_q : shape.sequence_kv, shape.dim_qk,
                       shape.dim_v == 0 ? shape.dim_qk : shape.dim_v, q, k, v, o, stats});
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
