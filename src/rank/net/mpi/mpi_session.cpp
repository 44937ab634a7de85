#include "rank/net/mpi/mpi_session.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <thread>

#include <troupe/clock.hpp>

#include "common/ipc/doorbell.hpp"
#include "rank/net/mpi/communicators.hpp"
#include "rank/net/mpi/mpi_bulk.hpp"
#include "rank/net/mpi/mpi_exchange.hpp"
#include "rank/net/mpi/mpi_messages.hpp"
#include "rank/net/mpi/waiting.hpp"
#include "rank/net/network_loop.hpp"

namespace troupe::rank_process {
namespace {

/// MPI_Comm_create_group's tags: one per round of the world and one per split, in a range that
/// every MPI has.
constexpr int kGroupTags = 32768;
constexpr int kCoresToSpinForBulk = NetworkLoop::kCoresToSpin;

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

std::unique_ptr<Exchange> duplicate(MPI_Comm of) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(of, &made);
  return std::make_unique<MpiExchange>(made);
}

}  // namespace

std::unique_ptr<Session> MpiSession::open(int* argc, char*** argv) {
  std::unique_ptr<MpiSession> session(new MpiSession);
  int provided = MPI_THREAD_SINGLE;
  if (is_initialised()) {
    MPI_Query_thread(&provided);
  } else {
    yield_if_cores_are_scarce();
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    session->finalise_ = true;
  }
  session->communicators_ = std::make_unique<Communicators>();
  auto& comms = *session->communicators_;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.world);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.tokens);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.bulk);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.actors);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.end);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.checks);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms.groups);
  MPI_Comm_split_type(comms.world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms.node);
  auto& place = session->place_;
  MPI_Comm_rank(comms.world, &place.rank);
  MPI_Comm_size(comms.world, &place.size);
  MPI_Comm_rank(comms.node, &place.local_rank);
  MPI_Comm_size(comms.node, &place.local_size);
  if (place.local_size > ipc::usable_cores()) share_cores();
  std::vector<int> ranks(static_cast<std::size_t>(place.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  session->everyone_ = std::make_unique<HostGroup>(
      std::move(ranks), place.rank, duplicate(MPI_COMM_WORLD), duplicate(MPI_COMM_WORLD));
  session->one_node_ = place.local_size == place.size;
  place.node = place.rank;
  MPI_Bcast(&place.node, 1, MPI_INT, 0, comms.node);
  std::vector<int> here(static_cast<std::size_t>(place.local_size));
  MPI_Allgather(&place.rank, 1, MPI_INT, here.data(), 1, MPI_INT, comms.node);
  session->neighbours_ =
      std::make_unique<HostGroup>(std::move(here), place.local_rank, duplicate(comms.node));
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
  neighbours_.reset();
  everyone_.reset();
  if (forsaken()) return;  // what frees communicators, or finalises, may wait for all ranks
  if (communicators_) {
    if (communicators_->ending != MPI_REQUEST_NULL)
      MPI_Wait(&communicators_->ending, MPI_STATUS_IGNORE);
    for (auto* communicator :
         {&communicators_->end, &communicators_->node, &communicators_->groups,
          &communicators_->checks, &communicators_->actors, &communicators_->bulk,
          &communicators_->tokens, &communicators_->world}) {
      MPI_Comm_free(communicator);
    }
  }
  if (finalise_) finalise();
}

void MpiSession::finalise() const {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread clock;
  if (patience_.count() > 0) {
    clock = std::thread([&] {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, patience_, [&] { return done; })) return;
      std::fprintf(stderr,
                   "[rank %d] MPI_Finalize has not returned for %lld s after the end of all ranks: "
                   "this process ends without it\n",
                   rank(),
                   static_cast<long long>(
                       std::chrono::duration_cast<std::chrono::seconds>(patience_).count()));
      std::fflush(nullptr);
      std::_Exit(status_);
    });
  }
  MPI_Finalize();
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_one();
  if (clock.joinable()) clock.join();
}

std::shared_ptr<const HostGroup> MpiSession::make_group(std::vector<int> ranks, GroupTag tag,
                                                        int number) {
  const auto& comms = *communicators_;
  MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(comms.groups, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &chosen);
  MPI_Comm_create_group(comms.groups, chosen, (2 * number + static_cast<int>(tag)) % kGroupTags,
                        &made);
  MPI_Group_free(&chosen);
  MPI_Group_free(&all);
  int place = 0;
  MPI_Comm_rank(made, &place);
  auto background = tag == GroupTag::world ? duplicate(made) : nullptr;
  return std::make_shared<const HostGroup>(
      std::move(ranks), place, std::make_unique<MpiExchange>(made), std::move(background));
}

std::unique_ptr<Messages> MpiSession::messages(Channel channel) {
  const auto& comms = *communicators_;
  const auto communicator = channel == Channel::world    ? comms.world
                            : channel == Channel::actors ? comms.actors
                            : channel == Channel::checks ? comms.checks
                                                         : comms.tokens;
  return std::make_unique<MpiMessages>(communicator);
}

std::unique_ptr<Bulk> MpiSession::bulk(Bulk::Receiver receiver) {
  return std::make_unique<MpiBulk>(communicators_->bulk, has_cores_to_spare(kCoresToSpinForBulk),
                                   std::move(receiver));
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
  MPI_Comm_split(communicators_->world, local_rank() == 0 ? 0 : MPI_UNDEFINED, rank(), &leaders);
  std::int64_t offset = 0;
  if (leaders != MPI_COMM_NULL) {
    offset = offset_to_first(leaders);
    MPI_Comm_free(&leaders);
  }
  MPI_Bcast(&offset, 1, MPI_INT64_T, 0, communicators_->node);
  return std::chrono::nanoseconds(offset);
}

bool MpiSession::all_have_ended(std::chrono::nanoseconds limit) {
  constexpr std::chrono::milliseconds kLook{1};
  auto& comms = *communicators_;
  MPI_Ibarrier(comms.end, &comms.ending);
  const auto until = SteadyClock::time() + limit;
  for (;;) {
    int ended = 0;
    MPI_Test(&comms.ending, &ended, MPI_STATUS_IGNORE);
    if (ended != 0) return true;
    if (forsaken() || SteadyClock::time() >= until) return false;
    std::this_thread::sleep_for(kLook);
  }
}

bool MpiSession::is_initialised() {
  int yes = 0;
  MPI_Initialized(&yes);
  return yes != 0;
}

void MpiSession::abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
}

std::string MpiSession::library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find(','));
}

}  // namespace troupe::rank_process
