#include "rank/world/program_call.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string_view>
#include <thread>

#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

namespace troupe::rank_process {

namespace {

constexpr int kUnanswered = -1;
std::array<void*, 128> frames;
std::atomic<int> depth = kUnanswered;

void write_down_frames(int) {
  depth.store(::backtrace(frames.data(), static_cast<int>(frames.size())),
              std::memory_order_release);
}

/// True if the main thread has written down its frames.
bool ask() {
  constexpr std::chrono::milliseconds kLook{1}, kLimit{100};
  for (auto waited = kLook; waited < kLimit && depth.load(std::memory_order_acquire) < 0;
       waited += kLook) {
    std::this_thread::sleep_for(kLook);
  }
  return depth.load(std::memory_order_acquire) >= 0;
}

/// The function of MPI around an address, by the name that a program calls it by.
std::optional<std::string> mpi_function_at(void* address) {
  Dl_info info{};
  // A frame's address is where the call returns to, which may be behind the end of a function.
  if (::dladdr(static_cast<char*>(address) - 1, &info) == 0 || info.dli_sname == nullptr)
    return std::nullopt;
  std::string_view name = info.dli_sname;
  if (name.starts_with("PMPI_")) name.remove_prefix(1);
  if (!name.starts_with("MPI_")) return std::nullopt;
  return std::string(name);
}

}  // namespace

std::optional<std::string> mpi_call_of_main_thread() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  void* first[1];
  (void)::backtrace(first, 1);  // the first call loads a library, which a handler must not

  depth.store(kUnanswered, std::memory_order_relaxed);
  struct sigaction asking {
  }, before{};
  asking.sa_handler = write_down_frames;
  asking.sa_flags = SA_RESTART;
  if (::sigaction(SIGURG, &asking, &before) != 0) return std::nullopt;
  const bool answered = ::tgkill(::getpid(), ::getpid(), SIGURG) == 0 && ask();
  ::sigaction(SIGURG, &before, nullptr);
  if (!answered) return std::nullopt;

  for (int i = depth.load(std::memory_order_acquire) - 1; i >= 0; --i) {
    if (auto call = mpi_function_at(frames[static_cast<std::size_t>(i)])) return call;
  }
  return std::nullopt;
}

}  // namespace troupe::rank_process
