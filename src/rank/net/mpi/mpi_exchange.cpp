#include "rank/net/mpi/mpi_exchange.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "rank/net/mpi/waiting.hpp"
#include "rank/net/session.hpp"

namespace troupe::rank_process {

MpiExchange::MpiExchange(MPI_Comm communicator) : communicator_(communicator) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  size_ = static_cast<std::size_t>(size);
}

MpiExchange::~MpiExchange() {
  if (!Session::forsaken()) MPI_Comm_free(&communicator_);
}

void MpiExchange::barrier() {
  std::vector<MPI_Request> request(1);
  MPI_Ibarrier(communicator_, &request[0]);
  wait_for(request);
}

void MpiExchange::all_gather(std::span<const std::byte> value, std::span<std::byte> all) {
  const int bytes = static_cast<int>(value.size());
  std::vector<MPI_Request> request(1);
  MPI_Iallgather(value.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, communicator_,
                 &request[0]);
  wait_for(request);
}

std::vector<std::string> MpiExchange::gather_text(const std::string& text) {
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(size()), offsets(size());
  std::vector<MPI_Request> request(1);
  MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, communicator_, &request[0]);
  wait_for(request);
  std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), 0);
  std::string all(static_cast<std::size_t>(offsets.back() + lengths.back()), '\0');
  MPI_Iallgatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(),
                  MPI_CHAR, communicator_, &request[0]);
  wait_for(request);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    texts.push_back(
        all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(lengths[i])));
  }
  return texts;
}

std::vector<std::vector<std::byte>> MpiExchange::all_to_all(
    const std::vector<std::vector<std::byte>>& outgoing) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts in int
  std::vector<std::uint64_t> send_bytes, receive_bytes(outgoing.size());
  for (const auto& part : outgoing) send_bytes.push_back(part.size());
  std::vector<MPI_Request> requests(1);
  MPI_Ialltoall(send_bytes.data(), 1, MPI_UINT64_T, receive_bytes.data(), 1, MPI_UINT64_T,
                communicator_, &requests[0]);
  wait_for(requests);
  requests.clear();
  std::vector<std::vector<std::byte>> incoming(outgoing.size());
  for (std::size_t r = 0; r < outgoing.size(); ++r) {
    incoming[r].resize(receive_bytes[r]);
    for (std::size_t at = 0; at < incoming[r].size(); at += kPiece) {
      const auto bytes = static_cast<int>(std::min(kPiece, incoming[r].size() - at));
      MPI_Irecv(incoming[r].data() + at, bytes, MPI_BYTE, static_cast<int>(r), 0, communicator_,
                &requests.emplace_back());
    }
  }
  for (std::size_t r = 0; r < outgoing.size(); ++r) {
    for (std::size_t at = 0; at < outgoing[r].size(); at += kPiece) {
      const auto bytes = static_cast<int>(std::min(kPiece, outgoing[r].size() - at));
      MPI_Isend(outgoing[r].data() + at, bytes, MPI_BYTE, static_cast<int>(r), 0, communicator_,
                &requests.emplace_back());
    }
  }
  wait_for(requests);
  return incoming;
}

std::vector<std::byte> MpiExchange::shift(std::span<const std::byte> outgoing, int to, int from,
                                          std::vector<std::byte> incoming) {
  // Pieces of a size at which no interconnect is slow and few are under way at a time.
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  constexpr int kSize = 0, kData = 1;
  const std::uint64_t sent = outgoing.size();
  std::uint64_t received = 0;
  std::vector<MPI_Request> requests(2);
  MPI_Irecv(&received, 1, MPI_UINT64_T, from, kSize, communicator_, &requests[0]);
  MPI_Isend(&sent, 1, MPI_UINT64_T, to, kSize, communicator_, &requests[1]);
  wait_for(requests);
  incoming.resize(received);
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns: the pauses are shorter than the default slack
  for (std::size_t at = 0; at < std::max<std::size_t>(sent, received); at += kPiece) {
    requests.clear();
    if (at < received) {
      const auto bytes = static_cast<int>(std::min<std::size_t>(kPiece, received - at));
      MPI_Irecv(incoming.data() + at, bytes, MPI_BYTE, from, kData, communicator_,
                &requests.emplace_back());
    }
    if (at < sent) {
      const auto bytes = static_cast<int>(std::min<std::size_t>(kPiece, sent - at));
      MPI_Isend(outgoing.data() + at, bytes, MPI_BYTE, to, kData, communicator_,
                &requests.emplace_back());
    }
    wait_for(requests, Awaited::data);
  }
  return incoming;
}

}  // namespace troupe::rank_process
