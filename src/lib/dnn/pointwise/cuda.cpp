#include <cmath>

#include <troupe/lib/dnn/pointwise.hpp>

#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::host::cuda {
namespace {

using fe::PointwiseMode_t;

PointwiseMode_t mode_of(dnn::Mode mode) {
  using dnn::Mode;
  switch (mode) {
    case Mode::identity: return PointwiseMode_t::IDENTITY;
    case Mode::abs: return PointwiseMode_t::ABS;
    case Mode::negate: return PointwiseMode_t::NEG;
    case Mode::reciprocal: return PointwiseMode_t::RECIPROCAL;
    case Mode::sqrt: return PointwiseMode_t::SQRT;
    case Mode::rsqrt: return PointwiseMode_t::RSQRT;
    case Mode::exp: return PointwiseMode_t::EXP;
    case Mode::log: return PointwiseMode_t::LOG;
    case Mode::erf: return PointwiseMode_t::ERF;
    case Mode::sin: return PointwiseMode_t::SIN;
    case Mode::cos: return PointwiseMode_t::COS;
    case Mode::tan: return PointwiseMode_t::TAN;
    case Mode::ceil: return PointwiseMode_t::CEIL;
    case Mode::floor: return PointwiseMode_t::FLOOR;
    case Mode::relu: return PointwiseMode_t::RELU_FWD;
    case Mode::sigmoid: return PointwiseMode_t::SIGMOID_FWD;
    case Mode::tanh: return PointwiseMode_t::TANH_FWD;
    case Mode::elu: return PointwiseMode_t::ELU_FWD;
    case Mode::gelu: return PointwiseMode_t::GELU_FWD;
    case Mode::gelu_tanh: return PointwiseMode_t::GELU_APPROX_TANH_FWD;
    case Mode::softplus: return PointwiseMode_t::SOFTPLUS_FWD;
    case Mode::swish: return PointwiseMode_t::SWISH_FWD;
    case Mode::logical_not: return PointwiseMode_t::LOGICAL_NOT;
    case Mode::add: return PointwiseMode_t::ADD;
    case Mode::add_square: return PointwiseMode_t::ADD_SQUARE;
    case Mode::subtract: return PointwiseMode_t::SUB;
    case Mode::multiply: return PointwiseMode_t::MUL;
    case Mode::divide: return PointwiseMode_t::DIV;
    case Mode::maximum: return PointwiseMode_t::MAX;
    case Mode::minimum: return PointwiseMode_t::MIN;
    case Mode::modulo: return PointwiseMode_t::MOD;
    case Mode::power: return PointwiseMode_t::POW;
    case Mode::equal: return PointwiseMode_t::CMP_EQ;
    case Mode::not_equal: return PointwiseMode_t::CMP_NEQ;
    case Mode::greater: return PointwiseMode_t::CMP_GT;
    case Mode::greater_equal: return PointwiseMode_t::CMP_GE;
    case Mode::less: return PointwiseMode_t::CMP_LT;
    case Mode::less_equal: return PointwiseMode_t::CMP_LE;
    case Mode::logical_and: return PointwiseMode_t::LOGICAL_AND;
    case Mode::logical_or: return PointwiseMode_t::LOGICAL_OR;
    case Mode::relu_backward: return PointwiseMode_t::RELU_BWD;
    case Mode::sigmoid_backward: return PointwiseMode_t::SIGMOID_BWD;
    case Mode::tanh_backward: return PointwiseMode_t::TANH_BWD;
    case Mode::elu_backward: return PointwiseMode_t::ELU_BWD;
    case Mode::gelu_backward: return PointwiseMode_t::GELU_BWD;
    case Mode::gelu_tanh_backward: return PointwiseMode_t::GELU_APPROX_TANH_BWD;
    case Mode::softplus_backward: return PointwiseMode_t::SOFTPLUS_BWD;
    case Mode::swish_backward: return PointwiseMode_t::SWISH_BWD;
    case Mode::select: return PointwiseMode_t::BINARY_SELECT;
  }
  return PointwiseMode_t::NOT_SET;
}

fe::ReductionMode_t mode_of(dnn::ReduceOp reduction) {
  using dnn::ReduceOp;
  switch (reduction) {
    case ReduceOp::sum: return fe::ReductionMode_t::ADD;
    case ReduceOp::prod: return fe::ReductionMode_t::MUL;
    case ReduceOp::min: return fe::ReductionMode_t::MIN;
    case ReduceOp::max: return fe::ReductionMode_t::MAX;
    case ReduceOp::max_abs: return fe::ReductionMode_t::AMAX;
    case ReduceOp::prod_without_zeros: return fe::ReductionMode_t::MUL_NO_ZEROS;
    default: return fe::ReductionMode_t::NOT_SET;  // made of other nodes
  }
}

}  // namespace

Nodes add_pointwise(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  const auto mode = static_cast<dnn::Mode>(node.numbers[0]);
  fe::graph::Pointwise_attributes attributes;
  attributes.set_mode(mode_of(mode));
  switch (mode) {
    case dnn::Mode::relu:
    case dnn::Mode::relu_backward:
      attributes.set_relu_lower_clip_slope(node.real(1));
      if (std::isfinite(node.real(2))) attributes.set_relu_upper_clip(node.real(2));
      break;
    case dnn::Mode::elu:
    case dnn::Mode::elu_backward: attributes.set_elu_alpha(node.real(3)); break;
    case dnn::Mode::softplus:
    case dnn::Mode::softplus_backward: attributes.set_softplus_beta(node.real(4)); break;
    case dnn::Mode::swish:
    case dnn::Mode::swish_backward: attributes.set_swish_beta(node.real(4)); break;
    default: break;
  }
  const auto in = dnn::of_node::named<dnn::of_node::PointwiseInputs>(inputs);
  if (in.c != nullptr) return {graph.pointwise(in.a, in.b, in.c, attributes)};
  if (in.b != nullptr) return {graph.pointwise(in.a, in.b, attributes)};
  return {graph.pointwise(in.a, attributes)};
}

Nodes add_reduction(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  // Without the flag it adds up in any order, other bits each time; with it cuDNN 9.14 finds no
  // engine, which is its answer to sums.
  const auto reduction = static_cast<dnn::ReduceOp>(node.numbers[0]);
  const bool any_order = reduction == dnn::ReduceOp::min || reduction == dnn::ReduceOp::max ||
                         reduction == dnn::ReduceOp::max_abs;
  return {graph.reduction(inputs[0], fe::graph::Reduction_attributes()
                                         .set_mode(mode_of(reduction))
                                         .set_is_deterministic(!any_order))};
}

}  // namespace troupe::host::cuda
