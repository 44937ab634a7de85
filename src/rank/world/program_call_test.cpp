#include "rank/world/program_call.hpp"

#include <atomic>
#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

using troupe::rank_process::mpi_call_of_main_thread;

namespace {
std::atomic<bool> asked;
std::atomic<int> handled;

void wait_until_asked() {
  while (!asked) std::this_thread::yield();
}
}  // namespace

// Visible, as MPI's functions are. MPI_Inner is what an MPI does within a call.
extern "C" {
__attribute__((visibility("default"), noinline)) void PMPI_Inner() {
  wait_until_asked();
  asm volatile("");  // not a tail call
}
__attribute__((visibility("default"), noinline)) void MPI_Outer() {
  PMPI_Inner();
  asm volatile("");
}
}

namespace {

/// Another thread asks, up to `tries` times, for the call of this one, which is the main thread and
/// is in `wait` meanwhile; returns the answer.
template <class Wait>
std::optional<std::string> found_in(Wait wait, int tries = 1000) {
  asked = false;
  std::optional<std::string> found;
  std::thread asker([&] {
    // The main thread may be slow to come to where it waits, or to answer.
    for (int i = 0; i < tries && !found; ++i) found = mpi_call_of_main_thread();
    asked = true;
  });
  wait();
  asker.join();
  return found;
}

TEST(ProgramCall, IsTheOutermostOfMpi) {
  EXPECT_EQ(found_in(MPI_Outer), "MPI_Outer");
}

TEST(ProgramCall, OfTheProfilingInterfaceIsCalledAsUsersCallIt) {
  EXPECT_EQ(found_in(PMPI_Inner), "MPI_Inner");
}

TEST(ProgramCall, OutsideOfMpiIsNone) {
  EXPECT_EQ(found_in(wait_until_asked, 3), std::nullopt);
}

TEST(ProgramCall, PutsTheProgramsHandlerBack) {
  handled = 0;
  std::signal(SIGURG, [](int) { ++handled; });
  EXPECT_TRUE(found_in(MPI_Outer));
  EXPECT_EQ(handled, 0);
  std::raise(SIGURG);
  EXPECT_EQ(handled, 1);
  std::signal(SIGURG, SIG_DFL);
}

TEST(ProgramCall, OfAThreadThatTakesNoSignalIsNotKnown) {
  sigset_t urgent, before;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_BLOCK, &urgent, &before);
  std::optional<std::string> found = "not asked";
  std::thread([&] { found = mpi_call_of_main_thread(); }).join();
  EXPECT_EQ(found, std::nullopt);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
