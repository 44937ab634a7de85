#include <troupe/lib/dnn.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

/// y = max(x, 0)
Tailed<dnn::GraphCall> graph_sample() {
  dnn::Graph graph;
  const auto x = graph.input(DType::f16, {2, 3, 16});
  const auto y = dnn::pointwise(graph, dnn::Mode::relu, x);
  graph.output(y, DType::f32);
  const auto words = graph.words();
  const auto data = std::as_bytes(std::span(*words));
  return {{},
          {{range_in(1), static_cast<std::uint32_t>(x.number), Access::read, {}},
           {range_in(2), static_cast<std::uint32_t>(y.number), Access::write, {}}},
          {data.begin(), data.end()}};
}

constexpr dnn::RnnShape kRnn{dnn::RnnCell::lstm, 2, 2, 2, 2, 3, 4, 2};

/// An operation on sequences of 3 and 2 steps.
template <class Op>
Tailed<Op> with_lengths(const Op& op) {
  static constexpr std::int32_t kLengths[] = {3, 2};
  const auto data = std::as_bytes(std::span(kLengths));
  return {op, {}, {data.begin(), data.end()}};
}

const Samples kDnnSamples{
    dnn::Convolution{DType::f16,
                     2,
                     0,
                     2,
                     8,
                     4,
                     2,
                     {6, 5, 0},
                     {3, 3, 0},
                     {1, 1, 0},
                     {1, 0, 0},
                     {1, 2, 0},
                     {1, 1, 0},
                     range_in(1),
                     range_in(2),
                     range_in(3),
                     range_in(4)},
    graph_sample(),
    dnn::Softmax{DType::f64, dnn::SoftmaxKind::log_softmax, 0, 2, 10, 3, range_in(1), range_in(2)},
    dnn::SoftmaxBackward{DType::bf16, dnn::SoftmaxKind::softmax, 0, 4, 10, 1, range_in(1),
                         range_in(2), range_in(3)},
    with_lengths(dnn::Rnn{DType::f16, kRnn, range_in(1), range_in(2), range_in(3), range_in(4),
                          range_in(5), range_in(6)}),
    with_lengths(dnn::RnnBackwardData{DType::f16, kRnn, range_in(1), range_in(2), range_in(3),
                                      range_in(4), range_in(5), range_in(6), range_in(7),
                                      range_in(8)}),
    with_lengths(dnn::RnnBackwardWeights{DType::f16, kRnn, range_in(1), range_in(2), range_in(3),
                                         range_in(4), range_in(5)}),
    dnn::RnnSpace{DType::f16, kRnn, cell_in(1)},
    dnn::Lrn{DType::f16, {5, 0, 1e-4, 0.75, 2}, 2, 10, 3, range_in(1), range_in(2)},
    dnn::LrnBackward{DType::f64,
                     {4, 0, 1e-2, 0.5, 1},
                     2,
                     10,
                     3,
                     range_in(1),
                     range_in(2),
                     range_in(3),
                     range_in(4)},
    dnn::CtcLoss{DType::f32, 6, 2, 5, 7, 4, range_in(1), range_in(2), range_in(3), range_in(4),
                 range_in(5), range_in(6)}};

}  // namespace
}  // namespace troupe::test
