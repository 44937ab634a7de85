#include "rank/net/background.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>

#include "rank/net/communicators.hpp"
#include "rank/net/waiting.hpp"

namespace troupe::rank_process {
void BackgroundExchange::all_gather(std::span<const std::byte> value, std::span<std::byte> all) {
  check(all.size() == value.size() * static_cast<std::size_t>(group_->size()),
        "all_gather: room for one value per rank");
  const int bytes = static_cast<int>(value.size());
  std::vector<MPI_Request> request(1);
  MPI_Iallgather(value.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE,
                 group_->communicators().background, &request[0]);
  wait_for(request);
}

std::vector<std::byte> BackgroundExchange::shift(std::span<const std::byte> outgoing, int to,
                                                 int from, std::vector<std::byte> incoming) {
  // Pieces of a size at which no interconnect is slow and few are under way at a time.
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  constexpr int kSize = 0, kData = 1;
  const auto communicator = group_->communicators().background;
  const std::uint64_t sent = outgoing.size();
  std::uint64_t received = 0;
  std::vector<MPI_Request> requests(2);
  MPI_Irecv(&received, 1, MPI_UINT64_T, from, kSize, communicator, &requests[0]);
  MPI_Isend(&sent, 1, MPI_UINT64_T, to, kSize, communicator, &requests[1]);
  wait_for(requests);
  incoming.resize(received);
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns: the pauses are shorter than the default slack
  for (std::size_t at = 0; at < std::max<std::size_t>(sent, received); at += kPiece) {
    requests.clear();
    if (at < received) {
      const auto bytes = static_cast<int>(std::min<std::size_t>(kPiece, received - at));
      MPI_Irecv(incoming.data() + at, bytes, MPI_BYTE, from, kData, communicator,
                &requests.emplace_back());
    }
    if (at < sent) {
      const auto bytes = static_cast<int>(std::min<std::size_t>(kPiece, sent - at));
      MPI_Isend(outgoing.data() + at, bytes, MPI_BYTE, to, kData, communicator,
                &requests.emplace_back());
    }
    wait_for(requests, Awaited::data);
  }
  return incoming;
}

}  // namespace troupe::rank_process
