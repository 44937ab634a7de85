#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// How one fault was overcome; times in milliseconds, wall clock.
struct Recovery {
  int rank = 0;      ///< whose device host was lost
  std::string kind;  ///< "kill", "segv", "hang", "exit", "illegal-address", …;
                     ///< "failed": the GPU is gone, and the world goes on without it;
                     ///< "withdrawn": the same of one that said it was failing;
                     ///< "left": none was lost, the rank left World::run by an error;
                     ///< "error": none was lost, a step failed as if by a fault
  /// The step that the program there was in when it heard of the loss: a program runs ahead of its
  /// device, by as many steps as it submits without waiting. -1: it was in none, or in its first
  /// commit.
  std::int64_t iteration = -1;
  std::uint32_t epoch = 0;  ///< the epoch that began afterwards
  double detect_ms = 0;     ///< from the fault to its detection
  double quiesce_ms = 0;    ///< all ranks stop, end their communicator, drain
  double replace_ms =
      0;  ///< a successor is there, and all ranks' contributions to its communicator
  /// Of these: from the detection until the process of the lost device host had ended; 0: nobody
  /// had to wait for that.
  double end_ms = 0;
  double form_ms =
      0;  ///< the new communicator; beside it: reaping the dead, mapping the slabs, promotion
  double verify_ms = 0;            ///< an all-reduce of known values
  double restore_ms = 0;           ///< rollback to the last commit that all ranks have
  double total_ms = 0;             ///< from the fault to the new epoch
  std::uint32_t lost_buffers = 0;  ///< whose contents went, over all ranks
  std::int64_t repeated_iterations = 0;
};

}  // namespace troupe
