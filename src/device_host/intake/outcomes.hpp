#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "device_host/core.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/requests.hpp"

namespace troupe::host {

/// Answers commands that stand on no queue: those that need none, that are refused, or that a
/// thread has carried out. The reactor's thread only.
class Outcomes {
 public:
  Outcomes(Core& core, Requests& requests, Libraries& libraries)
      : core_(&core), requests_(&requests), libraries_(&libraries) {}

  /// The command needs no lane, or has failed before it got to one.
  Step answered(std::uint64_t ticket, const Result<void>& outcome);
  /// The engine has not taken the command.
  Step not_queued(const wire::Command& command, const Result<void>& outcome);
  /// What stands in the ring makes no sense: this host ends.
  Step corrupt(const Error& error);

  /// A thread has ended the command: it is answered as soon as answers may be given.
  void hold(std::uint64_t ticket, const Result<void>& outcome);
  void answer_held();
  void drop_held() { held_.clear(); }

 private:
  Core* core_;
  Requests* requests_;
  Libraries* libraries_;
  std::vector<std::pair<std::uint64_t, Result<void>>> held_;
};

}  // namespace troupe::host
