#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include <troupe/lib/dnn.hpp>

#include "catalogue/trial.hpp"

namespace troupe::catalogue {

/// What draws the shape of a call. There are few of each kind, so that an engine that makes a plan
/// for each, which takes long, has made it before.
inline Random draw_form(Trial& t) {
  constexpr std::int64_t kForms = 6;
  return Random(derive(static_cast<std::uint64_t>(t.random.below(kForms)), 50));
}

/// What must stand in an array, and by how much each of its numbers may be off, beside one rounding
/// to the type that it is stored in. 0: it is exact, and is not rounded where the type has it.
struct Exact {
  std::vector<double> value, slack;

  Exact() = default;
  explicit Exact(std::size_t count) : value(count), slack(count) {}
  explicit Exact(std::vector<double> values) : value(std::move(values)), slack(value.size()) {}
  [[nodiscard]] std::size_t size() const noexcept { return value.size(); }
};

inline constexpr double kF32 = 0x1p-23;  ///< the spacing of f32 at 1

/// Compares memory with what must stand in it, element by element. Empty: nothing is wrong.
std::string difference(const std::vector<Wide>& actual, const Exact& exact, double epsilon);

/// Whether the device computes a graph.
enum class Answer : std::uint8_t {
  computes,
  may_refuse,  ///< cuDNN may not have it: then it is unsupported, and nothing has changed
  refuses      ///< cuDNN is known not to have it; the cpu engine has
};

/// A graph of layers on the device, and what it must make: each node is computed by its formula, in
/// f64, on tensors that are row-major here whatever way they lie in memory. Its inputs are small
/// integers, so that products and sums are exact in f32 whatever their order; what is not exact has
/// a slack, which grows from node to node.
class Layers {
 public:
  using Id = dnn::TensorId;
  using Extents = std::vector<std::int64_t>;

  explicit Layers(Trial& trial) : trial_(&trial) {}

  /// Integers of at most `largest`.
  Id input(DType dtype, const dnn::Layout& layout, std::int64_t largest);
  /// These numbers, row-major, which the type has.
  Id input(DType dtype, const dnn::Layout& layout, const std::vector<double>& values);
  Id pointwise(dnn::Mode mode, Id a, Id b = {});
  Id scale(Id a, float factor);
  Id reduce(dnn::ReduceOp reduction, Id x, const Extents& extents);
  Id matmul(Id a, Id b);
  // Of images of two spatial dimensions.
  Id convolution(Id x, Id w, const dnn::ConvolutionSteps& steps);
  Id convolution_data(Id dy, Id w, const Extents& extents, const dnn::ConvolutionSteps& steps);
  Id convolution_filter(Id dy, Id x, const Extents& extents, const dnn::ConvolutionSteps& steps);
  Id pooling(dnn::Pooling mode, Id x, const dnn::PoolingSteps& steps);
  /// The gradient of that with regard to x; of maxima with an index between.
  Id pooling_backward(dnn::Pooling mode, Id dy, Id x, const dnn::PoolingSteps& steps);
  /// Twice as large, linear, by corners.
  Id doubled(Id x);
  /// The gradient of that.
  Id doubled_backward(Id dy);
  /// y, mean and inverse_deviation, the latter where the phase is training; rms has no mean.
  dnn::Normalized norm(dnn::Norm which, Id x, Id scale, Id bias, dnn::Phase phase);
  dnn::NormGradients norm_backward(dnn::Norm which, Id dy, Id x, Id scale, Id mean,
                                   Id inverse_deviation);
  /// o and stats.
  dnn::AttentionOutputs attention(const dnn::AttentionInputs& in, const dnn::AttentionRule& rule);

  /// Has a tensor written to memory of its own.
  void output(Id tensor, DType dtype);
  /// Runs the graph, once or several times, also as a recorded sequence.
  void run(Answer answer = Answer::computes);

  [[nodiscard]] dnn::Layout layout(Id tensor) const { return graph_.layout(tensor); }
  [[nodiscard]] const Exact& exact(Id tensor) const {
    return exact_[static_cast<std::size_t>(tensor.number)];
  }

 private:
  using Memory = std::variant<GpuRef<Half>, GpuRef<BFloat16>, GpuRef<float>>;
  /// What is before and behind a run, in the order of memory.
  struct Watched {
    Memory memory;
    Exact before, after;
  };
  Id keep(Id tensor, Exact exact);
  void bind(Id tensor, DType dtype, Exact before, Exact after);
  [[nodiscard]] Exact laid(const dnn::Layout& layout, const Exact& rows) const;
  Id convolve(Id made, Id x, Id w, Id y, const dnn::ConvolutionSteps& steps);

  Trial* trial_;
  dnn::Graph graph_;
  std::vector<Exact> exact_;  ///< by the numbers of tensors
  std::vector<dnn::Bound> bound_;
  std::vector<Watched> watched_;
};

}  // namespace troupe::catalogue
