#pragma once

#include <optional>
#include <vector>

#include <troupe/lib/dnn/graph.hpp>

/// Normalisations: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, where mean and
/// variance are those of a set of elements of x, and their gradients.
namespace troupe::dnn {

/// Which elements of x share a mean and a variance. x has extents batch, channels, spatial... for
/// instance and batch. The variance is that of the set itself: the sum of squares is divided by
/// the number of elements.
enum class Norm : std::uint32_t {
  /// Those along the dimensions that scale has (Ba et al., Layer Normalization, 2016): scale and
  /// bias have the extents of x there, and 1 in the other dimensions.
  layer,
  /// As layer, with a mean of 0: y = x / sqrt(average of x^2 + epsilon) * scale + bias (Zhang and
  /// Sennrich, Root Mean Square Layer Normalization, 2019). There is no tensor for the mean.
  rms,
  /// Those of one channel of one element of the batch (Ulyanov et al., Instance Normalization,
  /// 2016). scale and bias have one number for each channel: extents 1, channels, 1...
  instance,
  /// Those of one channel, in the whole batch (Ioffe and Szegedy, Batch Normalization, 2015). scale
  /// and bias as for instance.
  batch,
  /// As layer, with a scale and a bias of each element of the batch (Peebles and Xie, Scalable
  /// Diffusion Models with Transformers, 2023): their first extent is that of x, which is no
  /// dimension along which is normalised. In graphs alone.
  adaptive
};
inline constexpr std::uint32_t kNorms = static_cast<std::uint32_t>(Norm::adaptive) + 1;

/// Whether a norm gives mean and inverse_deviation, which the gradient needs. batch always does.
enum class Phase : std::uint8_t { inference, training };

/// What a norm makes. Tensors that it does not make are absent; all others must be outputs of the
/// graph, or y may be read by other nodes.
struct Normalized {
  TensorId y;
  TensorId mean;               ///< extents of x, 1 where elements are normalised together
  TensorId inverse_deviation;  ///< 1 / sqrt(variance + epsilon); extents as mean
  TensorId next_mean, next_variance;
};
/// Averages over many batches, for inference. next = (1 - momentum) * running + momentum * that of
/// this batch, where the variance is the unbiased one: divided by the number of elements less 1.
struct Running {
  TensorId mean, variance;  ///< extents as scale
  float momentum = 0.1f;
};

/// Adds a node that normalises x. Only rms may lack bias, and only batch takes `running`.
Normalized norm(Graph& graph, Norm which, TensorId x, TensorId scale, TensorId bias, float epsilon,
                Phase phase, const Running& running = {});

/// Adds nodes that normalise x by the running averages of batches. All but x have extents 1,
/// channels, 1...
TensorId batch_norm_inference(Graph& graph, TensorId x, TensorId mean, TensorId variance,
                              TensorId scale, TensorId bias, float epsilon);

/// Gradients of a norm. All of them must be outputs of the graph.
struct NormGradients {
  TensorId dx;
  TensorId dscale;  ///< extents as scale
  TensorId dbias;   ///< absent if not wanted, which only rms allows
};
/// Adds a node that computes the gradients of a norm from dy, the gradient of y, and from x, scale
/// and what the norm has made of them.
NormGradients norm_backward(Graph& graph, Norm which, TensorId dy, TensorId x, TensorId scale,
                            TensorId mean, TensorId inverse_deviation, bool with_dbias = true);

/// Adds nodes that normalise the channels of each group together (Wu and He, Group Normalization,
/// 2018). x has extents batch, groups, channels of a group, spatial...; scale and bias 1, groups,
/// channels of a group, 1... The statistics have extents batch, groups, 1... cuDNN has no such
/// node: it is made of functions of single elements and reductions.
Normalized group_norm(Graph& graph, TensorId x, TensorId scale, TensorId bias, float epsilon);
/// Its gradients, from those statistics.
NormGradients group_norm_backward(Graph& graph, TensorId dy, TensorId x, TensorId scale,
                                  TensorId mean, TensorId inverse_deviation);

/// Sums over a batch, of which a batch norm over several devices is made once they are added up.
struct ChannelSums {
  TensorId sum, squares;  ///< of x, and of its squares; extents 1, channels, 1...
};
/// Adds a node that sums each channel of x, which has extents batch, channels, spatial...
ChannelSums channel_sums(Graph& graph, TensorId x);

/// The extents of a tensor for instance and batch norms: channels vary fastest in memory.
struct ChannelsShape {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::vector<std::int64_t> spatial;  ///< up to 3
};

}  // namespace troupe::dnn

namespace troupe {

/// What a norm computes for its gradient: one number of each for every set of elements that are
/// normalised together, in the order of the sets.
struct NormStatistics {
  GpuRef<float> mean, inverse_deviation;
};
/// Of layer and instance norm.
struct NormOptions {
  float epsilon = 1e-5f;                          ///< not negative
  std::optional<NormStatistics> statistics = {};  ///< where they are written, if wanted
};
/// Of RMS norm.
struct RmsNormOptions {
  float epsilon = 1e-5f;
  std::optional<GpuRef<float>> inverse_deviation = {};  ///< where it is written, if wanted
};
/// Of group norm.
struct GroupNormOptions {
  std::int64_t groups = 1;  ///< divides the number of channels
  float epsilon = 1e-5f;
  std::optional<NormStatistics> statistics = {};  ///< where they are written, if wanted
};
/// Running averages of batch norm, one number for each channel; see dnn::Running.
struct RunningStatistics {
  GpuRef<float> mean, variance;            ///< of the batches before
  GpuRef<float> next_mean, next_variance;  ///< written: with this one
  float momentum = 0.1f;
};
/// Of batch norm.
struct BatchNormOptions {
  float epsilon = 1e-5f;
  std::optional<RunningStatistics> running = {};
};

/// Normalisations as calls of their own; see dnn::Norm for their formulas. scale, bias and their
/// gradients are of one type, that of x or f32. Outputs overlap nothing else.
///
/// Layer and RMS norms: x, y and their gradients are row-major, rows by columns, and each row is
/// normalised; scale and bias have `columns` numbers, statistics one for each row. Instance and
/// batch norms: x, y and their gradients are packed, channels vary fastest; scale and bias have one
/// number for each channel. Statistics have one for each channel, of instance norms batch times
/// channels.
class DnnNorms {
 public:
  explicit DnnNorms(detail::Submitter& submitter) : graphs_(submitter) {}

  template <Element T, Element W>
  Future<void> layer_norm(const GpuRef<T>& x, const GpuRef<W>& scale, const GpuRef<W>& bias,
                          const GpuRef<T>& y, const NormOptions& options = {}) const {
    Call call;
    const auto rows = rows_of(call, x.length(), scale.length());
    return normalize(call, dnn::Norm::layer, call.in(x, rows), scale, bias, y, options);
  }
  template <Element T, Element W>
  Future<void> layer_norm_backward(const GpuRef<T>& dy, const GpuRef<T>& x, const GpuRef<W>& scale,
                                   const NormStatistics& statistics, const GpuRef<T>& dx,
                                   const GpuRef<W>& dscale, const GpuRef<W>& dbias) const {
    Call call;
    const auto rows = rows_of(call, x.length(), scale.length());
    return gradients(call, dnn::Norm::layer, rows, dy, x, scale, statistics, dx, dscale, dbias);
  }

  template <Element T, Element W>
  Future<void> rms_norm(const GpuRef<T>& x, const GpuRef<W>& scale, const GpuRef<T>& y,
                        const RmsNormOptions& options = {}) const {
    return rms(x, scale, {}, y, options);
  }
  template <Element T, Element W>
  Future<void> rms_norm(const GpuRef<T>& x, const GpuRef<W>& scale, const GpuRef<W>& bias,
                        const GpuRef<T>& y, const RmsNormOptions& options = {}) const {
    return rms(x, scale, std::optional(bias), y, options);
  }
  template <Element T, Element W>
  Future<void> rms_norm_backward(const GpuRef<T>& dy, const GpuRef<T>& x, const GpuRef<W>& scale,
                                 const GpuRef<float>& inverse_deviation, const GpuRef<T>& dx,
                                 const GpuRef<W>& dscale) const {
    return rms_gradients(dy, x, scale, inverse_deviation, dx, dscale, {});
  }
  template <Element T, Element W>
  Future<void> rms_norm_backward(const GpuRef<T>& dy, const GpuRef<T>& x, const GpuRef<W>& scale,
                                 const GpuRef<float>& inverse_deviation, const GpuRef<T>& dx,
                                 const GpuRef<W>& dscale, const GpuRef<W>& dbias) const {
    return rms_gradients(dy, x, scale, inverse_deviation, dx, dscale, std::optional(dbias));
  }

  template <Element T, Element W>
  Future<void> instance_norm(const GpuRef<T>& x, const GpuRef<W>& scale, const GpuRef<W>& bias,
                             const GpuRef<T>& y, const dnn::ChannelsShape& shape,
                             const NormOptions& options = {}) const {
    Call call;
    const auto in = call.in(x, layout_of(call, shape));
    return normalize(call, dnn::Norm::instance, in, scale, bias, y, options);
  }
  template <Element T, Element W>
  Future<void> instance_norm_backward(const GpuRef<T>& dy, const GpuRef<T>& x,
                                      const GpuRef<W>& scale, const NormStatistics& statistics,
                                      const GpuRef<T>& dx, const GpuRef<W>& dscale,
                                      const GpuRef<W>& dbias,
                                      const dnn::ChannelsShape& shape) const {
    Call call;
    const auto layout = layout_of(call, shape);
    return gradients(call, dnn::Norm::instance, layout, dy, x, scale, statistics, dx, dscale,
                     dbias);
  }

  /// See dnn::group_norm. Layouts as for instance norms; statistics: batch times groups.
  template <Element T, Element W>
  Future<void> group_norm(const GpuRef<T>& x, const GpuRef<W>& scale, const GpuRef<W>& bias,
                          const GpuRef<T>& y, const dnn::ChannelsShape& shape,
                          const GroupNormOptions& options) const {
    Call call;
    const auto layouts = groups_of(call, shape, options.groups);
    const auto in = call.in(x, layouts.x);
    const auto scale_in = call.in(scale, layouts.weights), bias_in = call.in(bias, layouts.weights);
    const auto made = dnn::group_norm(call.graph, in, scale_in, bias_in, options.epsilon);
    call.out(made.y, y);
    if (options.statistics) {
      call.out(made.mean, options.statistics->mean);
      call.out(made.inverse_deviation, options.statistics->inverse_deviation);
    }
    return graphs_.run(call.graph, call.memory);
  }
  template <Element T, Element W>
  Future<void> group_norm_backward(const GpuRef<T>& dy, const GpuRef<T>& x, const GpuRef<W>& scale,
                                   const NormStatistics& statistics, const GpuRef<T>& dx,
                                   const GpuRef<W>& dscale, const GpuRef<W>& dbias,
                                   const dnn::ChannelsShape& shape, std::int64_t groups) const {
    Call call;
    const auto layouts = groups_of(call, shape, groups);
    const auto dy_in = call.in(dy, layouts.x), x_in = call.in(x, layouts.x);
    const auto scale_in = call.in(scale, layouts.weights);
    const auto mean_in = call.in(statistics.mean, layouts.statistics);
    const auto inverse_in = call.in(statistics.inverse_deviation, layouts.statistics);
    const auto made =
        dnn::group_norm_backward(call.graph, dy_in, x_in, scale_in, mean_in, inverse_in);
    call.out(made.dx, dx);
    call.out(made.dscale, dscale);
    call.out(made.dbias, dbias);
    return graphs_.run(call.graph, call.memory);
  }

  /// Training. Each channel has more than one element.
  template <Element T, Element W>
  Future<void> batch_norm(const GpuRef<T>& x, const GpuRef<W>& scale, const GpuRef<W>& bias,
                          const GpuRef<T>& y, const NormStatistics& statistics,
                          const dnn::ChannelsShape& shape,
                          const BatchNormOptions& options = {}) const {
    Call call;
    const auto in = call.in(x, layout_of(call, shape));
    const auto weights = weights_like(call.graph.layout(in), scale.length());
    const auto scale_in = call.in(scale, weights), bias_in = call.in(bias, weights);
    dnn::Running running;
    if (options.running) {
      running = {call.in(options.running->mean, weights),
                 call.in(options.running->variance, weights), options.running->momentum};
    }
    const auto made = dnn::norm(call.graph, dnn::Norm::batch, in, scale_in, bias_in,
                                options.epsilon, dnn::Phase::training, running);
    call.out(made.y, y);
    call.out(made.mean, statistics.mean);
    call.out(made.inverse_deviation, statistics.inverse_deviation);
    if (options.running) {
      call.out(made.next_mean, options.running->next_mean);
      call.out(made.next_variance, options.running->next_variance);
    }
    return graphs_.run(call.graph, call.memory);
  }
  template <Element T, Element W>
  Future<void> batch_norm_inference(const GpuRef<T>& x, const GpuRef<float>& mean,
                                    const GpuRef<float>& variance, const GpuRef<W>& scale,
                                    const GpuRef<W>& bias, const GpuRef<T>& y,
                                    const dnn::ChannelsShape& shape, float epsilon = 1e-5f) const {
    Call call;
    const auto in = call.in(x, layout_of(call, shape));
    const auto weights = weights_like(call.graph.layout(in), scale.length());
    const auto mean_in = call.in(mean, weights), variance_in = call.in(variance, weights);
    const auto scale_in = call.in(scale, weights), bias_in = call.in(bias, weights);
    call.out(
        dnn::batch_norm_inference(call.graph, in, mean_in, variance_in, scale_in, bias_in, epsilon),
        y);
    return graphs_.run(call.graph, call.memory);
  }
  template <Element T, Element W>
  Future<void> batch_norm_backward(const GpuRef<T>& dy, const GpuRef<T>& x, const GpuRef<W>& scale,
                                   const NormStatistics& statistics, const GpuRef<T>& dx,
                                   const GpuRef<W>& dscale, const GpuRef<W>& dbias,
                                   const dnn::ChannelsShape& shape) const {
    Call call;
    const auto layout = layout_of(call, shape);
    return gradients(call, dnn::Norm::batch, layout, dy, x, scale, statistics, dx, dscale, dbias);
  }

 private:
  /// A graph, and the memory of its tensors.
  struct Call {
    dnn::Graph graph;
    std::vector<dnn::Bound> memory;

    template <Element T>
    dnn::TensorId in(const GpuRef<T>& ref, const dnn::Layout& layout) {
      const auto tensor = graph.input(dtype_of<T>, layout);
      memory.emplace_back(tensor, ref);
      return tensor;
    }
    template <Element T>
    void out(dnn::TensorId tensor, const GpuRef<T>& ref) {
      graph.output(tensor, dtype_of<T>);
      memory.emplace_back(tensor, ref);
    }
  };
  /// The layout of rows of so many elements; refuses what is no multiple of them.
  static dnn::Layout rows_of(Call& call, std::int64_t elements, std::int64_t columns);
  static dnn::Layout layout_of(Call& call, const dnn::ChannelsShape& shape);
  /// One number for each channel.
  static dnn::Layout weights_like(const dnn::Layout& x, std::int64_t channels);
  static dnn::Layout statistics_like(dnn::Norm which, const dnn::Layout& x);

  struct GroupLayouts {
    dnn::Layout x, weights, statistics;
  };
  /// Those of group norm: batch, groups, channels of a group, all spatial dimensions as one.
  static GroupLayouts groups_of(Call& call, const dnn::ChannelsShape& shape, std::int64_t groups);

  template <Element T, Element W>
  Future<void> normalize(Call& call, dnn::Norm which, dnn::TensorId x, const GpuRef<W>& scale,
                         const GpuRef<W>& bias, const GpuRef<T>& y,
                         const NormOptions& options) const {
    const auto weights = weights_like(call.graph.layout(x), scale.length());
    const auto scale_in = call.in(scale, weights), bias_in = call.in(bias, weights);
    const auto phase = options.statistics ? dnn::Phase::training : dnn::Phase::inference;
    const auto made = dnn::norm(call.graph, which, x, scale_in, bias_in, options.epsilon, phase);
    call.out(made.y, y);
    if (options.statistics) {
      call.out(made.mean, options.statistics->mean);
      call.out(made.inverse_deviation, options.statistics->inverse_deviation);
    }
    return graphs_.run(call.graph, call.memory);
  }
  template <Element T, Element W>
  Future<void> gradients(Call& call, dnn::Norm which, const dnn::Layout& layout,
                         const GpuRef<T>& dy, const GpuRef<T>& x, const GpuRef<W>& scale,
                         const NormStatistics& statistics, const GpuRef<T>& dx,
                         const GpuRef<W>& dscale, const GpuRef<W>& dbias) const {
    const auto of_sets = statistics_like(which, layout);
    const auto dy_in = call.in(dy, layout), x_in = call.in(x, layout);
    const auto scale_in = call.in(scale, weights_like(layout, scale.length()));
    const auto mean_in = call.in(statistics.mean, of_sets);
    const auto inverse_in = call.in(statistics.inverse_deviation, of_sets);
    const auto made =
        dnn::norm_backward(call.graph, which, dy_in, x_in, scale_in, mean_in, inverse_in);
    call.out(made.dx, dx);
    call.out(made.dscale, dscale);
    call.out(made.dbias, dbias);
    return graphs_.run(call.graph, call.memory);
  }
  template <Element T, Element W>
  Future<void> rms(const GpuRef<T>& x, const GpuRef<W>& scale, const std::optional<GpuRef<W>>& bias,
                   const GpuRef<T>& y, const RmsNormOptions& options) const {
    Call call;
    const auto in = call.in(x, rows_of(call, x.length(), scale.length()));
    const auto weights = weights_like(call.graph.layout(in), scale.length());
    const auto scale_in = call.in(scale, weights);
    const auto bias_in = bias ? call.in(*bias, weights) : dnn::TensorId();
    const auto phase = options.inverse_deviation ? dnn::Phase::training : dnn::Phase::inference;
    const auto made =
        dnn::norm(call.graph, dnn::Norm::rms, in, scale_in, bias_in, options.epsilon, phase);
    call.out(made.y, y);
    if (options.inverse_deviation) call.out(made.inverse_deviation, *options.inverse_deviation);
    return graphs_.run(call.graph, call.memory);
  }
  template <Element T, Element W>
  Future<void> rms_gradients(const GpuRef<T>& dy, const GpuRef<T>& x, const GpuRef<W>& scale,
                             const GpuRef<float>& inverse_deviation, const GpuRef<T>& dx,
                             const GpuRef<W>& dscale, const std::optional<GpuRef<W>>& dbias) const {
    Call call;
    const auto rows = rows_of(call, x.length(), scale.length());
    const auto dy_in = call.in(dy, rows), x_in = call.in(x, rows);
    const auto scale_in = call.in(scale, weights_like(rows, scale.length()));
    const auto inverse_in = call.in(inverse_deviation, statistics_like(dnn::Norm::rms, rows));
    const auto made = dnn::norm_backward(call.graph, dnn::Norm::rms, dy_in, x_in, scale_in, {},
                                         inverse_in, dbias.has_value());
    call.out(made.dx, dx);
    call.out(made.dscale, dscale);
    if (dbias) call.out(made.dbias, *dbias);
    return graphs_.run(call.graph, call.memory);
  }

  DnnGraphs graphs_;
};

}  // namespace troupe
