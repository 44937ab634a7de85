#pragma once

#include <cstddef>
#include <tuple>
#include <vector>

#include "common/core/fields.hpp"

/// The tensors of each kind of node by name, in the order in which a node has them; nodes that have
/// one of a kind need no names. `T` stands for a tensor: a pointer to its view, or what an engine
/// has made of it. Empty: it is absent.
namespace troupe::dnn::of_node {

template <class T>
struct PointwiseInputs {
  T a, b, c;
};

template <class T>
struct ConvolutionInputs {
  T x, w;
};
template <class T>
struct ConvolutionDataInputs {
  T dy, w;
};
template <class T>
struct ConvolutionFilterInputs {
  T dy, x;
};

template <class T>
struct MatmulInputs {
  T a, b;
};

template <class T>
struct PoolingOutputs {
  T y, index;
};
template <class T>
struct PoolingBackwardInputs {
  T dy, index;
};

template <class T>
struct AttentionInputs {
  T q, k, v, bias, length_q, length_kv, dropout_mask, sink, page_table_k, page_table_v;
};
template <class T>
struct AttentionOutputs {
  T o, stats;
};
template <class T>
struct AttentionBackwardInputs {
  T q, k, v, o, d_o, stats, bias, length_q, length_kv, dropout_mask;
};
template <class T>
struct AttentionBackwardOutputs {
  T d_q, d_k, d_v, d_bias;
};
template <class T>
struct SinkBackwardInputs {
  T sink, o, d_o, stats;
};

template <class T>
struct NormInputs {
  T x, scale, epsilon, bias, running_mean, running_variance, momentum;
};
template <class T>
struct NormOutputs {
  T y, mean, inverse_deviation, next_mean, next_variance;
};
template <class T>
struct NormBackwardInputs {
  T dy, x, scale, inverse_deviation, mean;
};
template <class T>
struct NormBackwardOutputs {
  T dx, dscale, dbias;
};
template <class T>
struct ChannelSumsOutputs {
  T sum, squares;
};

template <class T>
struct DropoutInputs {
  T x, moved;
};
template <class T>
struct DropoutOutputs {
  T y, mask;
};

template <class T>
struct RotaryInputs {
  T x, cos, sin;
};

/// How many tensors there are names for.
template <template <class> class Names>
inline constexpr std::size_t kCount =
    std::tuple_size_v<decltype(tie_fields(std::declval<Names<const void*>&>()))>;

/// The tensors under these names. A node of sound words has all of them.
template <template <class> class Names, class T>
[[nodiscard]] Names<T> named(const std::vector<T>& tensors) {
  Names<T> names{};
  std::size_t at = 0;
  for_each_field(names, [&](T& tensor) {
    if (at < tensors.size()) tensor = tensors[at];
    ++at;
  });
  return names;
}

}  // namespace troupe::dnn::of_node
