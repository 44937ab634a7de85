#pragma once

#include <troupe/error.hpp>
#include <troupe/runtime.hpp>

namespace troupe::rank_process {

/// The status of a program that such an error ends.
[[nodiscard]] inline int exit_status(Errc code) {
  switch (code) {
    case Errc::invalid:
    case Errc::unsupported:
    case Errc::io:
    case Errc::out_of_memory: return kExitUsage;
    case Errc::budget_exhausted:
    case Errc::requeue: return kExitRequeue;
    default: return kExitFailure;
  }
}

}  // namespace troupe::rank_process
