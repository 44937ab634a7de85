#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <troupe/error.hpp>

#include "common/wire/flight_layout.hpp"
#include "device_host/engine/cuda/library.hpp"

namespace troupe::host::cuda {

/// Tells the rank how long its collectives take on the GPU: from when all that stands before one on
/// the stream has ended until it has, waiting for other ranks included.
///
/// Of a communicator's collectives each eighth is timed, by two events around its launch, and
/// stands for eight. Which ones depends on their numbers alone, so that all ranks time the same
/// ones, and they are spread so that the same place of a program's step is not always met. Times
/// are read when a later collective is launched; nobody waits for them.
class LaunchTimes {
 public:
  static constexpr std::uint64_t kEach = 8;
  static constexpr std::size_t kMostPending = 16;  ///< while there are more, none is timed

  /// Before the first collective. `times` outlives this.
  void begin(wire::HostTimes& times) { times_ = &times; }
  /// Calls `launch`, which launches a collective of the communicator on the stream, and answers as
  /// that does.
  template <class Launch>
  Result<void> around(cudaStream_t stream, std::uint32_t communicator, Launch&& launch) {
    if (times_ == nullptr || !is_timed(communicator)) return launch();
    auto timing = begin_timing(stream);
    auto launched = launch();
    if (launched.ok()) end_timing(std::move(timing), stream);
    return launched;
  }
  /// The communicator is formed anew, or gone. Any thread.
  void forget(std::uint32_t communicator) {
    const std::lock_guard lock(mutex_);
    numbers_.erase(communicator);
  }

 private:
  struct Timing {
    Event begin, end;
  };
  [[nodiscard]] bool is_timed(std::uint32_t communicator);
  /// Without events if there are none to be had: such a one is not timed.
  [[nodiscard]] Timing begin_timing(cudaStream_t stream);
  void end_timing(Timing timing, cudaStream_t stream);
  /// Tells the times of those that have ended.
  void read_ended();

  wire::HostTimes* times_ = nullptr;  ///< nullptr: nobody wants to know
  std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> numbers_;  ///< of each communicator's last collective
  std::deque<Timing> pending_;
  std::vector<Timing> free_;
};

}  // namespace troupe::host::cuda
