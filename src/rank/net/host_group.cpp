#include "rank/net/host_group.hpp"

#include <algorithm>
#include <cstdint>

#include "rank/net/communicators.hpp"
#include "rank/net/mpi_session.hpp"
#include "rank/net/waiting.hpp"

namespace troupe::rank_process {

HostGroup::HostGroup() : communicators_(std::make_unique<Communicators>()) {}

HostGroup::HostGroup(std::vector<int> ranks, std::unique_ptr<Communicators> communicators)
    : ranks_(std::move(ranks)), communicators_(std::move(communicators)) {
  MPI_Comm_rank(communicators_->host, &rank_);
}

HostGroup::~HostGroup() {
  if (communicators_->host == MPI_COMM_NULL || MpiSession::forsaken()) return;
  if (communicators_->background != MPI_COMM_NULL) MPI_Comm_free(&communicators_->background);
  MPI_Comm_free(&communicators_->host);
}

MPI_Comm HostGroup::Communicators::host_or_throw() const {
  if (host != MPI_COMM_NULL) return host;
  throw Exception(Error{Errc::peer_lost, 0, "a spectator takes no part in host collectives"});
}

void HostGroup::barrier() const {
  std::vector<MPI_Request> request(1);
  MPI_Ibarrier(communicators_->host_or_throw(), &request[0]);
  wait_for(request);
}

void HostGroup::all_gather(std::span<const std::byte> value, std::span<std::byte> all) const {
  const MPI_Comm host = communicators_->host_or_throw();
  check(all.size() == value.size() * ranks_.size(), "all_gather: room for one value per rank");
  const int bytes = static_cast<int>(value.size());
  std::vector<MPI_Request> request(1);
  MPI_Iallgather(value.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, host, &request[0]);
  wait_for(request);
}

std::vector<std::string> HostGroup::gather_text(const std::string& text) const {
  return gather_text_over(communicators_->host_or_throw(), text);
}

std::vector<std::vector<std::byte>> HostGroup::all_to_all(
    const std::vector<std::vector<std::byte>>& outgoing) const {
  const MPI_Comm host = communicators_->host_or_throw();
  check(outgoing.size() == ranks_.size(), "all_to_all: one part per rank");
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts in int
  std::vector<std::uint64_t> send_bytes, receive_bytes(outgoing.size());
  for (const auto& part : outgoing) send_bytes.push_back(part.size());
  std::vector<MPI_Request> requests(1);
  MPI_Ialltoall(send_bytes.data(), 1, MPI_UINT64_T, receive_bytes.data(), 1, MPI_UINT64_T, host,
                &requests[0]);
  wait_for(requests);
  requests.clear();
  std::vector<std::vector<std::byte>> incoming(outgoing.size());
  for (std::size_t r = 0; r < outgoing.size(); ++r) {
    incoming[r].resize(receive_bytes[r]);
    for (std::size_t at = 0; at < incoming[r].size(); at += kPiece) {
      const auto bytes = static_cast<int>(std::min(kPiece, incoming[r].size() - at));
      MPI_Irecv(incoming[r].data() + at, bytes, MPI_BYTE, static_cast<int>(r), 0, host,
                &requests.emplace_back());
    }
  }
  for (std::size_t r = 0; r < outgoing.size(); ++r) {
    for (std::size_t at = 0; at < outgoing[r].size(); at += kPiece) {
      const auto bytes = static_cast<int>(std::min(kPiece, outgoing[r].size() - at));
      MPI_Isend(outgoing[r].data() + at, bytes, MPI_BYTE, static_cast<int>(r), 0, host,
                &requests.emplace_back());
    }
  }
  wait_for(requests);
  return incoming;
}

Result<void> HostGroup::agree(const Result<void>& outcome) const {
  struct Head {
    std::uint32_t code;
    std::int32_t native;
  };
  const auto heads = gather(
      Head{static_cast<std::uint32_t>(outcome.code()), outcome.ok() ? 0 : outcome.error().native});
  const auto first =
      std::find_if(heads.begin(), heads.end(), [](const Head& head) { return head.code != 0; });
  if (first == heads.end()) return {};
  const auto texts = gather_text(outcome.ok() ? "" : outcome.error().message);
  const auto rank = static_cast<std::size_t>(first - heads.begin());
  return Error{static_cast<Errc>(first->code), first->native, texts[rank]};
}

}  // namespace troupe::rank_process
