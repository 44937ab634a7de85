#pragma once

#include <troupe/lib/dnn/attention.hpp>
#include <troupe/lib/dnn/convolution.hpp>
#include <troupe/lib/dnn/ctc.hpp>
#include <troupe/lib/dnn/dropout.hpp>
#include <troupe/lib/dnn/lrn.hpp>
#include <troupe/lib/dnn/matmul.hpp>
#include <troupe/lib/dnn/moving.hpp>
#include <troupe/lib/dnn/norms.hpp>
#include <troupe/lib/dnn/pointwise.hpp>
#include <troupe/lib/dnn/pooling.hpp>
#include <troupe/lib/dnn/resize.hpp>
#include <troupe/lib/dnn/rnn.hpp>
#include <troupe/lib/dnn/rotary.hpp>
#include <troupe/lib/dnn/softmax.hpp>
#include <troupe/lib/submit.hpp>

/// Layers of neural networks as cuDNN computes them (https://docs.nvidia.com/deeplearning/cudnn).
/// Channels vary fastest (NHWC). Sums are accumulated in f32, never in tf32, and a repetition gives
/// the same bits.
namespace troupe::dnn {

/// All of them; whoever includes this header knows them.
using Operations = List<Convolution, GraphCall, Softmax, SoftmaxBackward, Rnn, RnnBackwardData,
                        RnnBackwardWeights, RnnSpace, Lrn, LrnBackward, CtcLoss>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::dnn

namespace troupe {

/// Layers of neural networks on one device; from `dnn::on(device)`. See dnn::Convolution for its
/// formula, layout and alignment. The first operation of a shape takes longer, up to seconds: the
/// engine looks for the fastest algorithm. Errors: invalid (shape or operands), unsupported (the
/// library is not installed, or has no algorithm for this shape), out_of_memory.
class Dnn : public detail::CallsOf<DnnGraphs, DnnPointwise, DnnConvolutions, DnnMatmul, DnnPooling,
                                   DnnResize, DnnAttention, DnnNorms, DnnSoftmax, DnnRnn, DnnMoving,
                                   DnnDropout, DnnRotary, DnnLrn, DnnCtc> {
 public:
  using CallsOf::CallsOf;
};

namespace dnn {
template <class D>
Dnn on(D&& device) {
  return Dnn(device.submitter());
}
}  // namespace dnn

}  // namespace troupe
