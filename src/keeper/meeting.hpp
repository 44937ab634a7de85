#pragma once

#include <utility>

#include "common/ipc/process.hpp"
#include "common/keeper/job.hpp"
#include "keeper/arguments.hpp"

namespace troupe::keeper {

/// Says what is wrong, and ends the job: no rank has been started.
[[noreturn]] void end_before_start(const Error& error);

template <class T>
T need(Result<T> result) {
  if (!result.ok()) end_before_start(result.error());
  return std::move(*result);
}

/// The sockets of a place: of its rank, and of its keeper. Both listen.
struct Sockets {
  UniqueFd rank, keeper;
};
/// A keeper's knowledge when it begins.
struct Arrival {
  Job places;  ///< all places of the job, as if each were a rank
  Sockets here;
  ipc::ChildProcess refuge;  ///< the keeper of the refuge beside this place
};
/// By MPI all keepers tell one another where they are, and each starts the one of its refuge; in a
/// refuge that has been told by the keeper beside. Ends the job if all places are spare ones.
Arrival arrive(const Arguments& arguments);

}  // namespace troupe::keeper
