#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include <troupe/device.hpp>
#include <troupe/future.hpp>
#include <troupe/parameter.hpp>

namespace troupe {

namespace detail {
struct SequenceState;
}

/// Operations of one device that were recorded, and run again and again by one command each:
///
///     auto step = device.record([&] {
///       device.sparse().spmv(matrix, x, y);
///       device.blas().axpy(-0.5, y, x);
///     });
///     for (int i = 0; i < 1000; ++i) step.run();
///
/// A run does what the same calls would do in its place, and costs the caller, and on a GPU each of
/// its kernels, much less: the device host makes a CUDA graph of it. Its operands are those of the
/// recording. They are kept from being freed as long as the sequence is there, and while any of
/// them is stale, a run is an error. A fault in the middle of a run makes stale what the run writes
/// anywhere, unless all of it can be done again.
///
/// A value: copies are the same sequence. Any thread.
class Sequence {
 public:
  Sequence() = default;  ///< an empty one, which must not be run

  /// Runs all of it, in program order with what else is submitted. `values`: of parameters, for
  /// this run; others have their initial values. Within a recording it becomes part of that.
  /// Errors: invalid (no command has the parameter), those of its commands.
  Future<void> run(std::initializer_list<ParameterValue> values = {}) const {
    return run(std::span(values.begin(), values.size()));
  }
  Future<void> run(std::span<const ParameterValue> values) const;
  /// How many were recorded.
  [[nodiscard]] std::size_t commands() const;
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

  /// For Device.
  explicit Sequence(std::shared_ptr<detail::SequenceState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<detail::SequenceState> state_;
};

// Within a recording. What the calls record is carried out or not by what the flag is when the run
// gets there, on the device; it may be written by commands before, or in the loop. In a CUDA graph
// the flag is looked at there. As long as there is none, and for what cannot be part of one, the
// device host waits for what is before the flag, some ten microseconds each time. Not together with
// collectives. Throw Exception (invalid) outside of a recording.

/// If flag[0] is not 0.
void if_(const Device& device, const GpuRef<std::int32_t>& flag,
         const std::function<void()>& calls);
/// As long as flag[0] is not 0, which is looked at before each time.
void while_(const Device& device, const GpuRef<std::int32_t>& flag,
            const std::function<void()>& calls);

}  // namespace troupe
