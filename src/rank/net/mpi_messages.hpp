#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <list>
#include <vector>

namespace troupe::rank_process {

/// Messages on one communicator. MPI advances only while it is looked at: whoever owns this calls
/// receive() and advance() again and again. One thread.
class MpiMessages {
 public:
  explicit MpiMessages(MPI_Comm communicator) : communicator_(communicator) {}

  /// Puts a message on its way; messages to one rank arrive in order.
  void send(int rank, int tag, std::vector<std::byte> bytes);
  /// Calls `arrived` with each message that has come. True if there was one.
  bool receive(const std::function<void(int rank, int tag, std::vector<std::byte> bytes)>& arrived);
  /// Lets go of what has been sent.
  void advance();
  /// Some messages are still on their way.
  [[nodiscard]] bool sending() const noexcept { return !in_flight_.empty(); }
  /// True once all ranks call it, again and again: whatever they have sent can be received then.
  bool all_leave();
  [[nodiscard]] bool leaves() const noexcept { return leaving_ != MPI_REQUEST_NULL; }

 private:
  struct InFlight {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MPI_Comm communicator_;
  std::list<InFlight> in_flight_;
  MPI_Request leaving_ = MPI_REQUEST_NULL;  ///< the barrier of the end
};

}  // namespace troupe::rank_process
