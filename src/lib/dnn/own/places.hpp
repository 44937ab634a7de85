#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/dnn/graph/view.hpp"
#include "lib/dnn/own/graph_kernels.cuh"

/// Tensors as kernels of troupe's own are told of them.
namespace troupe::host::cuda {

/// Nothing: kernels know no such type.
inline std::optional<kernels::Stored> stored_as(DType dtype) {
  switch (dtype) {
    case DType::f16: return kernels::Stored::f16;
    case DType::bf16: return kernels::Stored::bf16;
    case DType::f32: return kernels::Stored::f32;
    case DType::i8: return kernels::Stored::i8;
    case DType::u8: return kernels::Stored::u8;
    case DType::i32: return kernels::Stored::i32;
    case DType::i64: return kernels::Stored::i64;
    default: return std::nullopt;
  }
}

/// The elements of a tensor in memory, in their row-major order. Dimensions are added the last one
/// first; those that lie as one are joined, so that a kernel divides less often.
class Dimensions {
 public:
  Dimensions(void* first, kernels::Stored stored) {
    elements_.first = first;
    elements_.stored = stored;
  }
  /// Of a constant.
  explicit Dimensions(float value) {
    elements_.stored = kernels::Stored::constant;
    elements_.value = value;
  }
  void add(std::int64_t extent, std::int64_t stride) {
    if (extent == 1) return;
    if (!list_.empty() && stride == list_.back().first * list_.back().second) {
      list_.back().second *= extent;
    } else {
      list_.emplace_back(stride, extent);
    }
  }
  [[nodiscard]] kernels::Elements elements() {
    if (list_.empty()) return elements_;
    elements_.rank = static_cast<std::int32_t>(list_.size());
    for (std::size_t i = 0; i < list_.size(); ++i) {
      std::tie(elements_.strides[list_.size() - 1 - i], elements_.extents[list_.size() - 1 - i]) =
          list_[i];
    }
    return elements_;
  }

 private:
  kernels::Elements elements_;
  std::vector<std::pair<std::int64_t, std::int64_t>> list_;  ///< strides and extents
};

/// The first element of a tensor of the graph, without dimensions.
using PlaceOf = std::function<Dimensions(const dnn::TensorView*)>;

}  // namespace troupe::host::cuda
