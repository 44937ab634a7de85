#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include <troupe/sequence.hpp>

namespace troupe::rank_process {

class DeviceCore;

/// Records what is done again and again, and finds out when it is the same again. The program's
/// thread.
class StepRecorder {
 public:
  static constexpr std::size_t kMost = 32;  ///< sequences that are remembered

  explicit StepRecorder(std::shared_ptr<DeviceCore> core) : core_(std::move(core)) {}

  /// Records what `calls` submits, and runs it. Throws as Device::record() does, but for a
  /// recording of nothing.
  void run(const std::function<void()>& calls);

 private:
  std::shared_ptr<DeviceCore> core_;
  std::list<std::shared_ptr<detail::SequenceState>> known_;  ///< the last used first
};

}  // namespace troupe::rank_process
