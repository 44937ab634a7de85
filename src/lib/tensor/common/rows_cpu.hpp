#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/lib/tensor/types.hpp>

/// Tensors on the host: loops over their modes, a row of elements at a time, in a type W that is
/// computed in.
namespace troupe::tensor {

/// Loops over some modes of N tensors, the first mode outermost.
template <std::size_t N>
class Nest {
 public:
  using PerTensor = std::array<std::int64_t, N>;
  static constexpr std::int64_t kRow = 512;  ///< elements of a row at most

  /// A mode within those that are there; it becomes one with the last where the elements of all
  /// tensors follow one another.
  void add(std::int64_t extent, const PerTensor& strides) {
    empty_ = empty_ || extent == 0;
    if (extent == 1) return;
    if (!modes_.empty()) {
      auto& last = modes_.back();
      bool follows = true;
      for (std::size_t k = 0; k < N; ++k) follows &= last.strides[k] == extent * strides[k];
      if (follows) {
        last = {last.extent * extent, strides};
        return;
      }
    }
    modes_.push_back({extent, strides});
  }

  /// Calls row(where, count, strides) for each row: where it begins in each tensor, in elements,
  /// how many there are, and how far they are apart.
  template <class Row>
  void for_each_row(const Row& row) const {
    if (empty_) return;
    const auto inner = modes_.empty() ? Mode{1, {}} : modes_.back();
    const auto outer = modes_.empty() ? 0 : modes_.size() - 1;
    std::array<std::int64_t, kMaxModes> index{};
    PerTensor at{};
    for (;;) {
      for (std::int64_t first = 0; first < inner.extent; first += kRow) {
        auto where = at;
        for (std::size_t k = 0; k < N; ++k) where[k] += first * inner.strides[k];
        row(where, std::min(kRow, inner.extent - first), inner.strides);
      }
      auto i = outer;
      for (; i > 0; --i) {
        const auto& mode = modes_[i - 1];
        const bool goes_on = ++index[i - 1] < mode.extent;
        for (std::size_t k = 0; k < N; ++k)
          at[k] += goes_on ? mode.strides[k] : -(mode.extent - 1) * mode.strides[k];
        if (goes_on) break;
        index[i - 1] = 0;
      }
      if (i == 0) return;
    }
  }

 private:
  struct Mode {
    std::int64_t extent = 1;
    PerTensor strides{};
  };
  std::vector<Mode> modes_;
  bool empty_ = false;  ///< a mode has no elements
};

/// A tensor that is read: what its elements are, and what is done to each of them.
template <class W>
struct Source {
  const std::byte* data = nullptr;
  DType dtype{};
  PerMode strides{};
  Unary unary{};
  W factor = W(1);  ///< 0: nothing is read

  /// Writes `count` of its elements to `to`, those that follow on element `first`, `step` apart.
  void read(std::int64_t first, std::int64_t step, std::int64_t count, W* to) const;
};

/// A tensor that is written.
template <class W>
struct Target {
  std::byte* data = nullptr;
  DType dtype{};
  PerMode strides{};

  /// Each element is rounded once.
  void write(const W* from, std::int64_t count, std::int64_t first, std::int64_t step) const;
};

/// What operations have in common: the modes.
struct Extents {
  std::size_t count = 0;
  PerMode extents{};

  template <std::size_t Tensors>
  explicit Extents(const Loops<Tensors>& loops)
      : count(static_cast<std::size_t>(loops.count)), extents(loops.extents) {}
  /// All modes, ordered by these strides, the largest first.
  [[nodiscard]] std::vector<std::size_t> descending(const PerMode& strides) const {
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t i, std::size_t j) { return strides[i] > strides[j]; });
    return order;
  }
};

/// target = functions[1](functions[0](sources[0], sources[1]), sources[2]), of one to three
/// sources, which are repeated along modes that they do not have.
template <class W>
void elementwise(const Extents& modes, const std::vector<Source<W>>& sources,
                 std::array<Binary, 2> functions, const Target<W>& target);

/// target = alpha R(source) + addend, where R reduces the modes that the target does not have. The
/// addend, if there is one, lies as the target does.
template <class W>
void reduce(const Extents& modes, Binary reduction, W alpha, const Source<W>& source,
            const std::vector<Source<W>>& addend, const Target<W>& target);

/// A product of two tensors, packed.
template <class W>
struct Product {
  std::vector<W> values;
  PerMode strides{};

  [[nodiscard]] Source<W> source(W factor = W(1)) const {
    return {reinterpret_cast<const std::byte*>(values.data()), dtype_of<W>, strides,
            Unary::identity, factor};
  }
};
/// The sum of a b over the modes that both have and that are not kept. Matrices that take part have
/// extents below 2^31.
template <class W>
Product<W> multiply(const Extents& modes, const Source<W>& a, const Source<W>& b,
                    const std::array<bool, kMaxModes>& kept);
/// Whether the matrices of such a product are small enough.
bool can_multiply(const Extents& modes, const PerMode& in_a, const PerMode& in_b,
                  const std::array<bool, kMaxModes>& kept) noexcept;

}  // namespace troupe::tensor
