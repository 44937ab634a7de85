// What process_test starts: does the one thing its first argument names.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/process.hpp"

extern char** environ;

namespace {

void say(const std::string& text) {
  if (::write(3, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::exit(9);
}

/// The numbers of all open descriptors but that of the listing itself.
std::string descriptors() {
  std::string list;
  DIR* folder = ::opendir("/proc/self/fd");
  for (int fd = 0; fd < 1024; ++fd) {
    if (fd != ::dirfd(folder) &&
        ::access(("/proc/self/fd/" + std::to_string(fd)).c_str(), F_OK) == 0) {
      list += std::to_string(fd) + " ";
    }
  }
  ::closedir(folder);
  return list;
}

/// True if a signal has stopped the process.
bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_ends = text.rfind(')');
  return name_ends + 2 < text.size() && text[name_ends + 2] == 'T';
}

/// True if a sanitizer in this program has a handler of its own for the signal.
bool is_the_sanitizers(int signal) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
#else
  return signal < 0;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "exit" && argc > 2) return std::atoi(argv[2]);
  if (mode == "wait") {
    for (;;) ::pause();
  }
  if (mode == "environment") {
    for (char** entry = environ; *entry != nullptr; ++entry) say(std::string(*entry) + "\n");
    return 0;
  }
  if (mode == "descriptors") return say(descriptors()), 0;
  if (mode == "closed") {  // those that the further arguments name
    for (int i = 2; i < argc; ++i) ::close(std::atoi(argv[i]));
    troupe::ipc::fill_standard_descriptors();
    const int next = ::dup(3);
    char byte = 0;
    say(std::to_string(next) + (::read(0, &byte, 1) < 0 ? " no input" : "") +
        (::write(1, "x", 1) < 0 ? " no output" : "") +
        (::write(2, "x", 1) < 0 ? " no errors" : ""));
    return 0;
  }
  if (mode == "numbers") {  // each descriptor says which one it is
    for (int fd = 3; fd < 6; ++fd) {
      const char digit = static_cast<char>('0' + fd);
      if (::write(fd, &digit, 1) != 1) return 9;
    }
    return 0;
  }
  if (mode == "arguments") {
    for (int i = 2; i < argc; ++i) say(std::string(argv[i]) + "|");
    return 0;
  }
  if (mode == "job-signals") {
    // Not before one has come: it is blocked, or this process is at its end.
    sigset_t pending;
    do {
      ::sigpending(&pending);
    } while (::sigismember(&pending, SIGTERM) == 0);
    troupe::ipc::ignore_job_signals();
    for (const int signal : troupe::ipc::kJobSignals) ::raise(signal);
    return ::write(3, "ignored", 7) == 7 ? 0 : 1;
  }
  if (mode == "signals") {
    sigset_t blocked;
    ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
    struct sigaction now {};
    for (int signal = 1; signal < SIGRTMIN; ++signal) {
      if (::sigismember(&blocked, signal) == 1) return signal;
      if (is_the_sanitizers(signal)) continue;
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_DFL) return signal;
    }
    return 0;
  }
  if (mode == "parent" || mode == "leaver") {  // a child that nobody waits for
    if (::fork() == 0) {
      for (;;) ::pause();
    }
    say("c");
    if (mode == "leaver") return 0;
    for (;;) ::pause();
  }
  if (mode == "rank") {  // with a device host that has a child
    auto host = troupe::ipc::ChildProcess::spawn(
        {.program = argv[0], .arguments = {argv[2]}, .strip_environment = {}, .descriptors = {3}});
    if (!host.ok()) return 9;
    for (;;) ::pause();
  }
  if (mode == "host" || mode == "stopped-host") {
    troupe::ipc::die_with_rank(::getppid());
    const bool stops = mode == "stopped-host";
    const pid_t self = ::getpid();
    if (::fork() == 0) {
      while (stops && !is_stopped(self)) ::usleep(1000);
      if (stops) say("c");
      for (;;) ::pause();
    }
    if (stops) ::raise(SIGSTOP);
    if (!stops) say("c");
    for (;;) ::pause();
  }
  if (mode == "orphan") {
    troupe::ipc::die_with_parent(::getppid() +
                                 1);  // as if the parent had gone and another had taken its place
    return 7;
  }
  if (mode == "family") {  // a child that goes when this process does
    const pid_t parent = ::getpid();
    if (::fork() == 0) {
      troupe::ipc::die_with_parent(parent);
      say("c");
      for (;;) ::pause();
    }
    for (;;) ::pause();
  }
  return 64;
}
