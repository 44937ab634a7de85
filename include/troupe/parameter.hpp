#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <source_location>

#include <troupe/dtype.hpp>
#include <troupe/gpu_ref.hpp>

namespace troupe {

namespace detail {
/// Never the same number twice in a process.
std::uint32_t next_parameter() noexcept;
}  // namespace detail

/// A value for a parameter, of one run.
struct ParameterValue {
  /// Where a MovingRef is to be, in elements of what it moves in.
  struct Move {
    std::int64_t first = 0, length = 0, within = 0;
    bool elsewhere = false;  ///< it is not of that buffer, or of another length

    [[nodiscard]] bool fits() const noexcept {
      return !elsewhere && first >= 0 && length <= within && first <= within - length;
    }
  };

  std::uint32_t id = 0;
  std::uint32_t bytes = 0;
  /// What a MovingRef is given: how many bytes it is behind its initial place, a std::int64_t.
  std::array<std::byte, 16> value{};
  std::optional<Move> move;
};

/// A value of a recorded sequence that each run may change: given as a scalar, or as an argument of
/// a kernel, it stands for what the run says.
///
///     Parameter<double> alpha(1.0);
///     auto step = device.record([&] { device.blas().axpy(alpha, x, y); });
///     step.run();              // 1.0
///     step.run({alpha(2.0)});  // 2.0, this time
///
/// Outside of a recording it is its initial value. Copies are the same parameter.
template <Element T>
class Parameter {
 public:
  explicit Parameter(T initial) : id_(detail::next_parameter()), initial_(initial) {}

  [[nodiscard]] T initial() const noexcept { return initial_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  /// For Sequence::run().
  [[nodiscard]] ParameterValue operator()(T value) const noexcept {
    static_assert(sizeof(T) <= 16);
    ParameterValue given{id_, sizeof(T), {}, {}};
    std::memcpy(given.value.data(), &value, sizeof value);
    return given;
  }

 private:
  std::uint32_t id_;
  T initial_;
};

/// Some elements of a buffer, of which a recorded sequence's run may say where they are: whatever
/// is recorded with the reference, or with a slice of it, moves along. Its length stays.
///
///     MovingRef<double> row(matrix, n);  // n elements, at first those at the beginning
///     auto step = device.record([&] { device.blas().axpy(1.0, row, sum); });
///     step.run();                        // the first row
///     step.run({row(5 * n)});            // the sixth, this time
///
/// Outside of a recording it is the reference to its initial place. Copies are the same parameter.
template <Element T>
class MovingRef : public GpuRef<T> {
 public:
  /// `length` elements that move in `within`, at first from `first` on; must lie in there.
  MovingRef(const GpuRef<T>& within, std::int64_t length, std::int64_t first = 0,
            const std::source_location& where = std::source_location::current())
      : GpuRef<T>(within.slice(first, length, where)),
        id_(detail::next_parameter()),
        initial_(first),
        within_(within) {
    this->set_parameter(id_);
  }

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  /// For Sequence::run(): from this element of what it moves in on. If that does not lie in there,
  /// the run is an error.
  [[nodiscard]] ParameterValue operator()(std::int64_t first) const noexcept {
    const auto bytes =
        (static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(initial_)) * sizeof(T);
    ParameterValue given{id_, sizeof bytes, {}, {}};
    std::memcpy(given.value.data(), &bytes, sizeof bytes);
    given.move = {.first = first, .length = this->length(), .within = within_.length()};
    return given;
  }
  /// The same: at a slice of what it moves in, which has its length.
  [[nodiscard]] ParameterValue operator()(const GpuRef<T>& place) const noexcept {
    const auto &there = place.operand(), &all = within_.operand();
    const auto bytes = static_cast<std::int64_t>(there.offset - all.offset);
    auto given = (*this)(bytes / static_cast<std::int64_t>(sizeof(T)));
    given.move->elsewhere = there.region != all.region || there.buffer != all.buffer ||
                            place.length() != this->length();
    return given;
  }

 private:
  std::uint32_t id_;
  std::int64_t initial_;
  GpuRef<T> within_;
};

}  // namespace troupe
