#pragma once

#include "call.hpp"

/// What calls of dnn have in common.
namespace troupe::judge {

/// A list of numbers, one for each spatial dimension.
inline dnn::Sizes sizes(const Call& c, std::string_view name) {
  const auto list = c.get<std::vector<std::int64_t>>(name);
  dnn::Sizes sizes;
  sizes.rank = static_cast<std::uint32_t>(list.size());
  std::copy_n(list.begin(), std::min(list.size(), dnn::kMaxSpatial), sizes.size.begin());
  return sizes;
}

/// A graph whose tensors are arrays of the call.
struct GraphOf {
  Call* call;
  dnn::Graph graph = {};
  std::vector<dnn::Bound> memory = {};

  template <class T>
  dnn::TensorId in(std::string_view name, const dnn::Layout& layout) {
    const auto tensor = graph.input(dtype_of<T>, layout);
    memory.emplace_back(tensor, call->buffer<T>(name));
    return tensor;
  }
  template <class T>
  void out(dnn::TensorId tensor, std::string_view name) {
    graph.output(tensor, dtype_of<T>);
    memory.emplace_back(tensor, call->buffer<T>(name));
  }
  void run(Dnn& on) { on.run(graph, memory).get(); }
};

}  // namespace troupe::judge
