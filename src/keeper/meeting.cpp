#include "keeper/meeting.hpp"

#include <mpi.h>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/ipc/system_error.hpp"
#include "keeper/keeper.hpp"
#include "keeper/place.hpp"
#include "keeper/program.hpp"

namespace troupe::keeper {

void end_before_start(const Error& error) {
  std::fprintf(stderr, "troupe-keeper: %s\n", error.to_string().c_str());
  int initialised = 0;
  MPI_Initialized(&initialised);  // not in a refuge
  if (initialised != 0) MPI_Abort(MPI_COMM_WORLD, kExitUsage);
  std::_Exit(kExitUsage);
}

namespace {

/// The descriptors of a refuge.
enum RefugeDescriptor : int { kRanksSocket = 3, kKeepersSocket = 4, kPlaces = 5 };

Sockets open_sockets() {
  auto rank = need(listen_anywhere());
  return {std::move(rank), need(listen_anywhere())};
}

/// By MPI. `refuge`: the one beside this place; nullptr: there are none.
Job meet(const Sockets& place, const Sockets* refuge, int spares) {
  Job job;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (spares >= size) {
    if (job.rank == 0) {
      std::fprintf(stderr,
                   "troupe-keeper: spares = %d: the job has %d processes, and none is left\n",
                   spares, size);
    }
    MPI_Finalize();
    std::exit(kExitUsage);
  }
  auto card = need(describe_place(place.rank.get(), place.keeper.get()));
  card.place = job.rank;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &card.local_rank);
  MPI_Comm_size(node, &card.local_size);
  card.node = job.rank;
  MPI_Bcast(&card.node, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  const auto gather = [&](const Card& mine) {
    const auto before = job.cards.size();
    job.cards.resize(before + static_cast<std::size_t>(size));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, job.cards.data() + before, sizeof mine, MPI_BYTE,
                  MPI_COMM_WORLD);
  };
  gather(card);
  if (refuge != nullptr) {
    auto beside = need(describe_place(refuge->rank.get(), refuge->keeper.get()));
    beside.place = size + job.rank;
    beside.node = card.node, beside.local_rank = card.local_rank;
    beside.local_size = card.local_size;
    beside.refuge = 1;
    gather(beside);
  }
  const bool one_node = std::all_of(job.cards.begin(), job.cards.end(),
                                    [&](const Card& other) { return other.node == card.node; });
  job.several_hosts = one_node ? 0 : 1;
  if (::getrandom(job.cookie.data(), sizeof job.cookie, 0) != sizeof job.cookie)
    end_before_start(ipc::system_error("getrandom"));
  MPI_Bcast(job.cookie.data(), static_cast<int>(job.cookie.size()), MPI_UINT64_T, 0,
            MPI_COMM_WORLD);
  return job;
}

ipc::ChildProcess start_refuge(const Arguments& given, Job places, const Sockets& its) {
  places.rank += places.size() / 2;
  const auto file = need(write_job(places));
  std::vector<std::string> arguments{std::string(kInRefuge), std::to_string(::getpid())};
  for (auto& number : numbers_of(given)) arguments.push_back(std::move(number));
  arguments.push_back(given.program);
  arguments.insert(arguments.end(), given.arguments.begin(), given.arguments.end());
  return need(
      ipc::ChildProcess::spawn({.program = std::filesystem::read_symlink("/proc/self/exe").string(),
                                .arguments = std::move(arguments),
                                .strip_environment = kLaunchersOwn,
                                .descriptors = {its.rank.get(), its.keeper.get(), file.get()}}));
}

}  // namespace

Arrival arrive(const Arguments& arguments) {
  if (arguments.beside != 0) {
    ipc::die_with_parent(arguments.beside);
    const UniqueFd file(kPlaces);
    for (const int fd : {kRanksSocket, kKeepersSocket}) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return {need(read_job(file.get())), {UniqueFd(kRanksSocket), UniqueFd(kKeepersSocket)}, {}};
  }
  auto here = open_sockets();
  if (arguments.refuges == 0) return {meet(here, nullptr, arguments.spares), std::move(here), {}};
  const auto beside = open_sockets();
  auto places = meet(here, &beside, arguments.spares);
  auto refuge = start_refuge(arguments, places, beside);
  return {std::move(places), std::move(here), std::move(refuge)};
}

}  // namespace troupe::keeper
