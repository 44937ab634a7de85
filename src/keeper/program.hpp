#pragma once

#include "common/ipc/process.hpp"
#include "common/ipc/socket.hpp"
#include "common/keeper/job.hpp"
#include "keeper/arguments.hpp"

namespace troupe::keeper {

/// Prefixes of the launcher's variables. A process that a keeper starts must not take itself for
/// one of the launcher's; it may read its number.
extern const std::vector<std::string> kLaunchersOwn;

/// A process of the program, with the line to it.
struct Process {
  ipc::ChildProcess child;
  ipc::Socket line;
};

/// The descriptors that all processes of the program get here; see Descriptor.
struct Gifts {
  int listener, start, estate;
};

/// Starts the program, as a rank of the job or to wait until it is one. Ends this process if it
/// cannot.
[[nodiscard]] Process launch(const Arguments& arguments, const Job& job, const Gifts& gifts);

}  // namespace troupe::keeper
