#include "rank/run/stop_signal.hpp"

#include <signal.h>

#include <atomic>

namespace troupe::rank_process {
namespace {

std::atomic<bool> seen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is written in a signal handler");
int caught = 0;
struct sigaction before {};

}  // namespace

void catch_stop_signal(int signal) noexcept {
  release_stop_signal();
  struct sigaction action {};
  action.sa_handler = [](int) { seen.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_RESTART;
  if (::sigaction(signal, &action, &before) == 0) caught = signal;
}

void release_stop_signal() noexcept {
  if (caught != 0) (void)::sigaction(caught, &before, nullptr);
  caught = 0;
}

bool take_stop_signal() noexcept {
  return seen.load(std::memory_order_relaxed) && seen.exchange(false, std::memory_order_relaxed);
}

}  // namespace troupe::rank_process
