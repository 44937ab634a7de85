#include "rank/net/mpi/mpi_messages.hpp"

#include <utility>

namespace troupe::rank_process {

void MpiMessages::send(int rank, int tag, std::vector<std::byte> bytes) {
  auto& flight = in_flight_.emplace_back(InFlight{std::move(bytes)});
  MPI_Isend(flight.bytes.data(), static_cast<int>(flight.bytes.size()), MPI_BYTE, rank, tag,
            communicator_, &flight.request);
}

bool MpiMessages::receive(const Arrived& arrived) {
  bool any = false;
  for (;;) {
    int there = 0;
    MPI_Status status;
    MPI_Message message;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &there, &message, &status);
    if (there == 0) return any;
    any = true;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
    MPI_Mrecv(buffer.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    arrived(status.MPI_SOURCE, status.MPI_TAG, std::move(buffer));
  }
}

void MpiMessages::advance() {
  in_flight_.remove_if([](auto& flight) {
    int done = 0;
    MPI_Test(&flight.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

bool MpiMessages::all_leave() {
  if (!leaves()) MPI_Ibarrier(communicator_, &leaving_);
  int left = 0;
  MPI_Test(&leaving_, &left, MPI_STATUS_IGNORE);
  return left != 0;
}

}  // namespace troupe::rank_process
