#pragma once

#include <cstdint>

#include "common/wire/control.hpp"
#include "device_host/core.hpp"

namespace troupe::host {

/// Answers what the rank asks for. The reactor's thread only. A request with number 0 is answered
/// by nothing.
class Requests {
 public:
  explicit Requests(Core& core) : core_(&core) {}

  /// Done, or Failed. An error that ends the device loses it.
  void answer(std::uint64_t request, const Result<void>& outcome);
  /// This message, or Failed if it cannot be sent.
  void answer_with(std::uint64_t request, const wire::FromHost& message);
  /// Runs `job` on a helper. False if all helpers are busy: then the request is answered so.
  bool on_helper(std::uint64_t request, Helpers::Job job);
  /// An out_of_memory tells what has taken how much.
  [[nodiscard]] Error with_memory_use(Error error) const;

  void on(std::uint64_t request, const wire::to_host::TellMemoryUse&);

 private:
  Core* core_;
};

}  // namespace troupe::host
