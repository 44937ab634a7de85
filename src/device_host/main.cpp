#include <dlfcn.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/fences.hpp"
#include "common/ipc/process.hpp"
#include "common/ipc/shared_memory.hpp"
#include "common/wire/host_options.hpp"
#include "common/wire/port_layout.hpp"

// troupe-device-host: started by a rank, never by hand.
//   troupe-device-host MODULE PARENT_PID LIBRARY_FOLDERS     (descriptors 3..7; HostSettings)
//   troupe-device-host MODULE --list

namespace {

template <class T>
bool number(const char* text, T& value) {
  const char* end = text + std::strlen(text);
  const auto [parsed, error] = std::from_chars(text, end, value);
  return error == std::errc{} && parsed == end;
}

/// The memory that this process shares with its rank; nullptr: none yet.
troupe::wire::PortHeader* shared = nullptr;

int usage() {
  std::fprintf(stderr, "troupe-device-host: started by the programs of troupe, not by hand\n");
  return troupe::wire::kExitUsage;
}

}  // namespace

/// NCCL makes its files in shared memory with this function. It is found here before the C
/// library's, so that the rank knows their names however this process ends.
extern "C" __attribute__((visibility("default"))) int mkstemp(char* path) {
  const int fd = ::mkstemp64(path);
  if (fd >= 0 && shared != nullptr) shared->shm_names.note(path);
  return fd;
}

/// assert() calls this instead of the C library's function: a kernel on the cpu engine, a function
/// of the program's or a library may fail one, and the error that the program sees says which.
extern "C" __attribute__((visibility("default"))) void __assert_fail(
    const char* assertion, const char* file, unsigned line, const char* function) noexcept {
  char text[troupe::wire::LastWords::kCapacity + 1];
  std::snprintf(text, sizeof text, "%s:%u: %s: Assertion `%s' failed", file, line,
                function != nullptr ? function : "?", assertion);
  if (shared != nullptr) shared->last_words.say(text);
  std::fprintf(stderr, "troupe-device-host: %s.\n", text);
  std::abort();
}

int main(int argc, char** argv) {
  using namespace troupe::wire;
  troupe::ipc::fill_standard_descriptors();
  troupe::ipc::take_part_in_fences();  // the module's libraries start threads
  HostOptions options{
      .segment_fd = 3, .command_bell_fd = 4, .reply_bell_fd = 5, .socket_fd = 6, .flight_fd = 7};
  const bool list = argc == 3 && std::string_view(argv[2]) == "--list";
  int parent = 0;
  if (!list) {
    if (argc != 4 || !number(argv[2], parent)) return usage();
    options.library_folders = argv[3];
    static const auto segment = troupe::ipc::SharedMemory::map(
        troupe::UniqueFd(::dup(options.segment_fd)), sizeof(PortHeader));
    if (!segment) return usage();
    shared = reinterpret_cast<PortHeader*>(segment->data());
    // Else nobody would remove these: the rank that would is gone.
    troupe::ipc::die_with_rank(parent, [] {
      for (const auto& path : shared->shm_names.paths()) ::unlink(path.c_str());
    });
    troupe::ipc::ignore_job_signals();
  }
  // OpenBLAS reads it when it is loaded. By default each of its threads keeps a core busy for 2^26
  // ticks after every call that they have shared, here for a tenth of a millisecond.
  ::setenv("OPENBLAS_THREAD_TIMEOUT", "18", 0);
  void* module = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    std::fprintf(stderr, "troupe-device-host: %s\n", ::dlerror());
    return kExitNoEngine;
  }
  if (list) {
    static char buffer[1 << 16];
    const auto list_devices = reinterpret_cast<ListFunction>(::dlsym(module, kListSymbol));
    if (list_devices == nullptr) return kExitNoEngine;
    const bool listed = list_devices(buffer, sizeof buffer) >= 0;
    std::fprintf(listed ? stdout : stderr, "%s\n", buffer);
    return listed ? kExitOk : kExitNoEngine;
  }
  const auto run = reinterpret_cast<RunFunction>(::dlsym(module, kRunSymbol));
  if (run == nullptr) return kExitNoEngine;
  const int status = run(&options);
  // Tools that run this process take their last data from it as it exits in the ordinary way.
  if (status == kExitOk && ::getppid() != parent) std::exit(status);
  // Leave without destructors of the libraries: a lost context makes theirs hang or crash.
  std::fflush(nullptr);
  ::_exit(status);
}
