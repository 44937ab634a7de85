#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "rank/net/session.hpp"
#include "rank/net/transport.hpp"

// Groups are made while transports listen, and one member after another is late: what MPI sends to
// it meanwhile must wait for it. If a transport takes it instead, the members wait for ever.

namespace {

using namespace troupe::rank_process;

constexpr auto kLate = 100 * Transport::kIdlePause;

/// False if the group is not one of these ranks.
bool make_group(Session& mpi, const std::vector<int>& ranks, int tag) {
  const auto group = mpi.make_group(ranks, Session::GroupTag::world, tag);
  return group->ranks() == ranks && group->gather(mpi.rank()) == ranks;
}

}  // namespace

int main(int argc, char** argv) {
  const auto mpi = Session::open(&argc, &argv);
  std::atomic<int> strays = 0;
  bool good = true;
  {
    const auto count = [&](const std::vector<std::byte>&) { ++strays; };
    Transport world(*mpi, Session::Channel::world, count);
    Transport actors(*mpi, Session::Channel::actors, count);
    Transport checks(*mpi, Session::Channel::checks, count);
    std::vector<int> members(static_cast<std::size_t>(mpi->size()) - 1);
    std::iota(members.begin(), members.end(), 0);  // the last rank only listens
    if (mpi->rank() < mpi->size() - 1) {
      for (const int late : members) {
        if (mpi->rank() == late) std::this_thread::sleep_for(kLate);
        good = good && make_group(*mpi, members, late);
      }
    }
  }
  const auto failures = mpi->everyone().gather(good && strays == 0 ? 0 : 1);
  good = std::accumulate(failures.begin(), failures.end(), 0) == 0;
  if (mpi->rank() == 0) std::printf("groups: %s\n", good ? "passed" : "failed");
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
