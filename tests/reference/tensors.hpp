#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "reference/dense.hpp"

/// A plain reference for operations on tensors: loops over all indices.
namespace troupe::test::reference {

/// The index, or the extent, of each mode.
using PerLetter = std::map<char, std::int64_t>;

/// A tensor that is packed, row-major; its modes are letters.
struct Tensor {
  std::string modes;
  std::vector<std::int64_t> extents;
  std::vector<Wide> values;

  [[nodiscard]] std::int64_t volume() const {
    std::int64_t elements = 1;
    for (const auto extent : extents) elements *= extent;
    return elements;
  }
  [[nodiscard]] Wide& at(const PerLetter& index) { return values[place(index)]; }
  [[nodiscard]] const Wide& at(const PerLetter& index) const { return values[place(index)]; }

 private:
  [[nodiscard]] std::size_t place(const PerLetter& index) const {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < modes.size(); ++i) place = place * extents[i] + index.at(modes[i]);
    return static_cast<std::size_t>(place);
  }
};

/// Full of zeros, with those of the extents that it has modes of.
inline Tensor tensor_of(const std::string& modes, const PerLetter& extents) {
  Tensor made{modes, {}, {}};
  for (const char mode : modes) made.extents.push_back(extents.at(mode));
  made.values.resize(static_cast<std::size_t>(made.volume()));
  return made;
}

/// Calls visit(index) for each index of these modes, the last one varying fastest.
template <class Visit>
void for_each_index(const PerLetter& extents, const Visit& visit) {
  PerLetter index = extents;
  for (auto& [mode, at] : index) at = 0;
  for (;;) {
    visit(index);
    auto mode = index.rbegin();
    for (; mode != index.rend(); ++mode) {
      if (++mode->second < extents.at(mode->first)) break;
      mode->second = 0;
    }
    if (mode == index.rend()) return;
  }
}

/// The sum of the products of these, over the modes that the output does not have.
inline Tensor sum_of_products(const std::string& output, const std::vector<Tensor>& operands) {
  PerLetter extents;
  for (const auto& one : operands) {
    for (std::size_t i = 0; i < one.modes.size(); ++i) extents[one.modes[i]] = one.extents[i];
  }
  auto sum = tensor_of(output, extents);
  for_each_index(extents, [&](const PerLetter& index) {
    Wide product = 1;
    for (const auto& one : operands) product *= one.at(index);
    sum.at(index) += product;
  });
  return sum;
}
/// How many products each element of that is the sum of.
inline std::int64_t sum_length(const std::string& output, const std::vector<Tensor>& operands) {
  PerLetter summed;
  for (const auto& one : operands) {
    for (std::size_t i = 0; i < one.modes.size(); ++i) {
      if (output.find(one.modes[i]) == std::string::npos) summed[one.modes[i]] = one.extents[i];
    }
  }
  std::int64_t length = 1;
  for (const auto& [mode, extent] : summed) length *= extent;
  return length;
}

inline Tensor conjugated(Tensor x) {
  for (auto& value : x.values) value = std::conj(value);
  return x;
}
inline Tensor magnitudes(Tensor x) {
  for (auto& value : x.values) value = std::abs(value.real()) + std::abs(value.imag());
  return x;
}

/// Strides of a tensor without gaps whose modes vary faster the later they stand in `order`; beyond
/// each mode lie `gap` elements that are not its own.
inline std::vector<std::int64_t> strides_of(const Tensor& x, const std::string& order,
                                            std::int64_t gap) {
  std::vector<std::int64_t> strides(x.modes.size());
  std::int64_t stride = 1 + gap;
  for (auto mode = order.rbegin(); mode != order.rend(); ++mode) {
    const auto at = x.modes.find(*mode);
    strides[at] = stride;
    stride = stride * x.extents[at] + gap;
  }
  return strides;
}
/// The memory of a tensor that lies so; what is none of its elements is `filler`.
inline std::vector<Wide> stored(const Tensor& x, const std::vector<std::int64_t>& strides,
                                const Wide& filler) {
  std::int64_t length = 1;
  for (std::size_t i = 0; i < strides.size(); ++i) length += (x.extents[i] - 1) * strides[i];
  std::vector<Wide> memory(static_cast<std::size_t>(length), filler);
  PerLetter extents;
  for (std::size_t i = 0; i < x.modes.size(); ++i) extents[x.modes[i]] = x.extents[i];
  for_each_index(extents, [&](const PerLetter& index) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < strides.size(); ++i) place += index.at(x.modes[i]) * strides[i];
    memory[static_cast<std::size_t>(place)] = x.at(index);
  });
  return memory;
}

}  // namespace troupe::test::reference
