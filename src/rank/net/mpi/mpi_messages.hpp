#pragma once

#include <mpi.h>

#include <cstddef>
#include <list>
#include <vector>

#include "rank/net/messages.hpp"

namespace troupe::rank_process {

/// Messages on one communicator.
class MpiMessages final : public Messages {
 public:
  explicit MpiMessages(MPI_Comm communicator) : communicator_(communicator) {}

  void send(int rank, int tag, std::vector<std::byte> bytes) override;
  bool receive(const Arrived& arrived) override;
  void advance() override;
  [[nodiscard]] bool sending() const noexcept override { return !in_flight_.empty(); }
  bool all_leave() override;
  [[nodiscard]] bool leaves() const noexcept override { return leaving_ != MPI_REQUEST_NULL; }

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
