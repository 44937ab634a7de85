#pragma once

#include <troupe/lib/dnn/graph.hpp>

/// Connectionist temporal classification (Graves et al., Connectionist Temporal Classification:
/// Labelling Unsegmented Sequence Data with Recurrent Neural Networks, 2006).
namespace troupe::dnn {

/// For each sequence b of a batch, with label l of label_lengths[b] classes:
///
///     costs[b] = -log of the sum over all paths of l of the product over t of p[t, b, path[t]]
///     gradients = the derivatives of the costs with regard to x
///
/// where p[t, b] = softmax of x[t, b], t runs over the first input_lengths[b] steps, and a path of
/// l is what becomes l if repetitions are joined and class 0, the blank, is taken out. Gradients
/// behind the length of a sequence are 0, and so are those of a sequence that is too short for its
/// label, whose cost is for the engine to say. All operands are packed and row-major:
///
///   x, gradients   time, batch, classes in f32; gradients may be absent
///   labels         those of all sequences behind one another, i32, each 1 to classes - 1
///   label_lengths  batch, i32: 1 to max_label
///   input_lengths  batch, i32: 1 to time
///   costs          batch, f32
///
/// Nobody checks the numbers in labels and lengths: what is out of range makes costs of the cpu
/// engine that are no numbers, and a GPU may fault. Computed in f32 or more; the same bits in every
/// run.
struct CtcLoss {
  static constexpr std::string_view kName = "dnn.ctc_loss";
  static constexpr DTypes kDTypes = DTypes::of({DType::f32});
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::int64_t kMaxLabel = 255;

  OpDType dtype = DType::f32;
  std::int64_t time = 0, batch = 0, classes = 0;
  std::int64_t labels_count = 0;  ///< of all sequences together
  std::int64_t max_label = 0;     ///< 1 to kMaxLabel; which no label is longer than
  Operand x, labels, label_lengths, input_lengths, costs, gradients;

  static constexpr std::array kOperands{read("x", &CtcLoss::x),
                                        read("labels", &CtcLoss::labels),
                                        read("label_lengths", &CtcLoss::label_lengths),
                                        read("input_lengths", &CtcLoss::input_lengths),
                                        write("costs", &CtcLoss::costs),
                                        write("gradients", &CtcLoss::gradients)};
  Result<void> check() const;
  /// All of costs and gradients.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

}  // namespace troupe::dnn

namespace troupe {

/// The operands of a CTC loss; see dnn::CtcLoss.
struct CtcTensors {
  GpuRef<float> x = {};
  GpuRef<std::int32_t> labels = {}, label_lengths = {}, input_lengths = {};
  GpuRef<float> costs = {};
  GpuRef<float> gradients = {};  ///< may be absent
};
/// How many steps, sequences and classes there are, and how long the longest label may be.
struct CtcShape {
  std::int64_t time = 0, batch = 0, classes = 0;
  std::int64_t max_label = dnn::CtcLoss::kMaxLabel;
};

/// CTC losses on one device; see dnn::CtcLoss. Errors: invalid (shape or operands), unsupported
/// (the library is not installed, or has not this shape), out_of_memory.
class DnnCtc : public detail::Calls {
 public:
  using Calls::Calls;

  Future<void> ctc_loss(const CtcTensors& tensors, const CtcShape& shape) const {
    return detail::submit(
        *submitter_, dnn::CtcLoss{DType::f32, shape.time, shape.batch, shape.classes,
                                  tensors.labels.length(), shape.max_label, tensors.x.operand(),
                                  tensors.labels.operand(), tensors.label_lengths.operand(),
                                  tensors.input_lengths.operand(), tensors.costs.operand(),
                                  tensors.gradients ? tensors.gradients.operand() : Operand()});
  }
};

}  // namespace troupe
