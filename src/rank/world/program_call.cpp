#include "rank/world/program_call.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include <cxxabi.h>
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

/// The name of the function around an address, as a program would write it; empty if it has none.
std::string name_at(void* address) {
  Dl_info info{};
  // A frame's address is where the call returns to, which may be behind the end of a function.
  if (::dladdr(static_cast<char*>(address) - 1, &info) == 0 || info.dli_sname == nullptr) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
  return status == 0 ? plain.get() : info.dli_sname;
}

std::optional<std::string> mpi_call(std::string_view name) {
  if (name.starts_with("PMPI_")) name.remove_prefix(1);
  if (!name.starts_with("MPI_")) return std::nullopt;
  return std::string(name);
}

}  // namespace

std::optional<std::string> call_of_main_thread() {
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

  constexpr int kOfTheHandler = 2;  // its own frame, and the one from which it returns
  const int count = depth.load(std::memory_order_acquire);
  for (int i = count - 1; i >= kOfTheHandler; --i) {
    if (auto call = mpi_call(name_at(frames[static_cast<std::size_t>(i)]))) return call;
  }
  for (int i = kOfTheHandler; i < count; ++i) {
    if (auto name = name_at(frames[static_cast<std::size_t>(i)]); !name.empty()) return name;
  }
  return std::nullopt;
}

}  // namespace troupe::rank_process
