#include "rank/net/mpi/waiting.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace troupe::rank_process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLooks = std::chrono::microseconds(100);  ///< without sleeping
constexpr auto kShortest = std::chrono::microseconds(20),
               kLongest = std::chrono::microseconds(1000);

std::atomic<bool> cores_are_scarce{false};

bool all_done(std::vector<MPI_Request>& requests) {
  int done = 0;
  MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  return done != 0;
}

}  // namespace

void wait_for(std::vector<MPI_Request>& requests, Awaited what) {
  const auto since = Clock::now();
  while (!cores_are_scarce && Clock::now() - since < kLooks) {
    if (all_done(requests)) return;
  }
  const auto longest = what == Awaited::data ? kShortest : kLongest;
  for (auto pause = kShortest; !all_done(requests); pause = std::min(2 * pause, longest))
    std::this_thread::sleep_for(pause);
}

void share_cores() noexcept {
  cores_are_scarce = true;
}

}  // namespace troupe::rank_process
