#pragma once

#include <utility>

#include "common/keeper/job.hpp"

namespace troupe::keeper {

/// Says what is wrong, and ends the job: no rank has been started.
[[noreturn]] void end_before_start(const Error& error);

template <class T>
T need(Result<T> result) {
  if (!result.ok()) end_before_start(result.error());
  return std::move(*result);
}

/// All places of the job, as if each were a rank, by MPI. All keepers call it. `listener`: of this
/// place's rank; `own`: of its keeper. Ends the job if all places are spare ones.
Job meet(int listener, int own, int spares);

}  // namespace troupe::keeper
