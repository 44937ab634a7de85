#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <troupe/dtype.hpp>

namespace troupe {

namespace detail {
/// Never the same number twice in a process.
std::uint32_t next_parameter() noexcept;
}  // namespace detail

/// A value for a parameter, of one run.
struct ParameterValue {
  std::uint32_t id = 0;
  std::uint32_t bytes = 0;
  std::array<std::byte, 16> value{};
};

/// A value of a recorded sequence that each run may change: given as a factor, or as an argument of
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
    ParameterValue given{id_, sizeof(T), {}};
    std::memcpy(given.value.data(), &value, sizeof value);
    return given;
  }

 private:
  std::uint32_t id_;
  T initial_;
};

}  // namespace troupe
