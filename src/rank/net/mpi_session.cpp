#include "rank/net/mpi_session.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "common/core/clock.hpp"
#include "common/ipc/doorbell.hpp"
#include "rank/net/communicators.hpp"

namespace troupe::rank {
namespace {

/// MPI_Comm_create_group's tags: one per round of the world, in a range that every MPI has.
constexpr int kGroupTags = 32768;

/// With fewer cores than ranks, a rank that spins in MPI keeps its peers from running: Open MPI
/// yields if told so before MPI_Init. What the user has set stands.
void yield_if_cores_are_scarce() {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_TASKS_PER_NODE", "MPI_LOCALNRANKS"}) {
    const char* ranks = std::getenv(name);
    if (ranks != nullptr && std::atoi(ranks) > ipc::usable_cores())
      ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  }
}

std::vector<std::string> gather_text_over(MPI_Comm communicator, const std::string& text) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(static_cast<std::size_t>(size)), offsets(static_cast<std::size_t>(size));
  MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, communicator);
  std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), 0);
  std::string all(static_cast<std::size_t>(offsets.back() + lengths.back()), '\0');
  MPI_Allgatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(),
                 MPI_CHAR, communicator);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    texts.push_back(
        all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(lengths[i])));
  }
  return texts;
}

}  // namespace

std::unique_ptr<MpiSession> MpiSession::open(int* argc, char*** argv) {
  std::unique_ptr<MpiSession> session(new MpiSession);
  int initialised = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialised);
  if (initialised != 0) {
    MPI_Query_thread(&provided);
  } else {
    yield_if_cores_are_scarce();
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    session->finalise_ = true;
  }
  session->communicators_ = std::make_unique<Communicators>();
  auto& comms = *session->communicators_;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.all);
  comms.host = comms.all;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.world);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.tokens);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.bulk);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.background);
  MPI_Comm_split_type(comms.all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms.node);
  MPI_Comm_rank(comms.all, &session->rank_);
  MPI_Comm_size(comms.all, &session->size_);
  MPI_Comm_rank(comms.node, &session->local_rank_);
  MPI_Comm_size(comms.node, &session->local_size_);
  session->group_rank_ = session->rank_;
  session->group_size_ = session->size_;
  session->group_.resize(static_cast<std::size_t>(session->size_));
  std::iota(session->group_.begin(), session->group_.end(), 0);
  session->node_ = session->rank_;
  MPI_Bcast(&session->node_, 1, MPI_INT, 0, comms.node);
  session->provided_threads_ = provided;
  return session;
}

Result<void> MpiSession::check_threads() const {
  if (provided_threads_ >= MPI_THREAD_MULTIPLE) return {};
  return Error{Errc::unsupported, provided_threads_,
               "MPI provides no MPI_THREAD_MULTIPLE, which troupe needs: use an MPI built with it, "
               "or have the program initialise MPI with it"};
}

MpiSession::~MpiSession() {
  if (communicators_) {
    MPI_Comm_free(&communicators_->node);
    MPI_Comm_free(&communicators_->bulk);
    MPI_Comm_free(&communicators_->tokens);
    MPI_Comm_free(&communicators_->background);
    MPI_Comm_free(&communicators_->world);
    for (auto& [communicator, ranks] : communicators_->groups) MPI_Comm_free(&communicator);
    MPI_Comm_free(&communicators_->all);
  }
  if (finalise_) MPI_Finalize();
}

void MpiSession::prepare_group(std::vector<int> ranks, int tag) {
  auto& comms = *communicators_;
  MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(comms.world, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &chosen);
  MPI_Comm_create_group(comms.world, chosen, tag % kGroupTags, &made);
  MPI_Group_free(&chosen);
  MPI_Group_free(&all);
  const std::lock_guard lock(comms.mutex);
  comms.groups.emplace_back(made, std::move(ranks));
}

void MpiSession::adopt_group(bool outside) {
  auto& comms = *communicators_;
  if (outside) {
    comms.host = MPI_COMM_NULL;
    group_rank_ = -1;
    group_size_ = 0;
    group_.clear();
    return;
  }
  const std::lock_guard lock(comms.mutex);
  if (comms.groups.empty() || comms.host == comms.groups.back().first) return;
  comms.host = comms.groups.back().first;
  group_ = comms.groups.back().second;
  MPI_Comm_rank(comms.host, &group_rank_);
  MPI_Comm_size(comms.host, &group_size_);
}

MPI_Comm MpiSession::Communicators::host_or_throw() const {
  if (host != MPI_COMM_NULL) return host;
  throw Exception(Error{Errc::peer_lost, 0, "a spectator takes no part in host collectives"});
}

void MpiSession::barrier() {
  MPI_Barrier(communicators_->host_or_throw());
}

void MpiSession::all_gather(std::span<const std::byte> value, std::span<std::byte> all) {
  check(all.size() == value.size() * static_cast<std::size_t>(group_size_),
        "all_gather: room for one value per rank");
  const int bytes = static_cast<int>(value.size());
  MPI_Allgather(value.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE,
                communicators_->host_or_throw());
}

std::vector<std::string> MpiSession::gather_text(const std::string& text) {
  return gather_text_over(communicators_->host_or_throw(), text);
}

std::vector<std::string> MpiSession::gather_local_text(const std::string& text) {
  return gather_text_over(communicators_->node, text);
}

std::vector<std::vector<std::byte>> MpiSession::all_to_all(
    const std::vector<std::vector<std::byte>>& outgoing) {
  const MPI_Comm host = communicators_->host_or_throw();
  check(outgoing.size() == static_cast<std::size_t>(group_size_), "all_to_all: one part per rank");
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts in int
  std::vector<std::uint64_t> send_bytes, receive_bytes(outgoing.size());
  for (const auto& part : outgoing) send_bytes.push_back(part.size());
  MPI_Alltoall(send_bytes.data(), 1, MPI_UINT64_T, receive_bytes.data(), 1, MPI_UINT64_T, host);
  std::vector<std::vector<std::byte>> incoming(outgoing.size());
  std::vector<MPI_Request> requests;
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
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  return incoming;
}

Result<void> MpiSession::agree(const Result<void>& outcome) {
  struct Head {
    std::uint32_t code;
    std::int32_t native;
  };
  const Head mine{static_cast<std::uint32_t>(outcome.code()),
                  outcome.ok() ? 0 : outcome.error().native};
  std::vector<Head> heads(static_cast<std::size_t>(group_size_));
  all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(heads)));
  const auto first =
      std::find_if(heads.begin(), heads.end(), [](const Head& head) { return head.code != 0; });
  if (first == heads.end()) return {};
  const auto texts = gather_text(outcome.ok() ? "" : outcome.error().message);
  const auto rank = static_cast<std::size_t>(first - heads.begin());
  return Error{static_cast<Errc>(first->code), first->native, texts[rank]};
}

namespace {

/// Rank 0 of `leaders` answers; each other one asks in turn. Cristian's method: of several round
/// trips the fastest says most, and its middle is when the answer was given.
/// (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989)
std::int64_t offset_to_first(MPI_Comm leaders) {
  constexpr int kTrips = 16;
  int rank = 0, size = 1;
  MPI_Comm_rank(leaders, &rank);
  MPI_Comm_size(leaders, &size);
  std::int64_t offset = 0, fastest = INT64_MAX;
  for (int asking = 1; asking < size; ++asking) {
    for (int trip = 0; trip < kTrips && (rank == 0 || rank == asking); ++trip) {
      std::int64_t there = 0;
      if (rank == 0) {
        MPI_Recv(&there, 1, MPI_INT64_T, asking, 0, leaders, MPI_STATUS_IGNORE);
        there = SteadyClock::time().count();
        MPI_Send(&there, 1, MPI_INT64_T, asking, 0, leaders);
        continue;
      }
      const auto before = SteadyClock::time().count();
      MPI_Send(&there, 1, MPI_INT64_T, 0, 0, leaders);
      MPI_Recv(&there, 1, MPI_INT64_T, 0, 0, leaders, MPI_STATUS_IGNORE);
      const auto after = SteadyClock::time().count();
      if (after - before >= fastest) continue;
      fastest = after - before;
      offset = there - (before + fastest / 2);
    }
  }
  return offset;
}

}  // namespace

std::chrono::nanoseconds MpiSession::clock_offset() {
  MPI_Comm leaders = MPI_COMM_NULL;
  MPI_Comm_split(communicators_->host, local_rank_ == 0 ? 0 : MPI_UNDEFINED, rank_, &leaders);
  std::int64_t offset = 0;
  if (leaders != MPI_COMM_NULL) {
    offset = offset_to_first(leaders);
    MPI_Comm_free(&leaders);
  }
  MPI_Bcast(&offset, 1, MPI_INT64_T, 0, communicators_->node);
  return std::chrono::nanoseconds(offset);
}

void MpiSession::abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

std::string MpiSession::library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find(','));
}

}  // namespace troupe::rank
