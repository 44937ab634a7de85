#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

/// Jobs of a program under mpirun, seen from outside.
namespace troupe::test {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;
inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::string engine() {
  const char* named = std::getenv("TROUPE_TEST_BACKEND");
  return named != nullptr && *named != '\0' ? named : "cpu";
}
inline bool on_cuda() {
  return engine() == "cuda";
}

/// GPUs that a program may use here.
inline int gpu_count() {
  static const int count = [] {
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
      const std::string list = visible;
      return list.empty() ? 0 : static_cast<int>(std::count(list.begin(), list.end(), ',')) + 1;
    }
    int lines = 0;
    if (std::FILE* list = ::popen("nvidia-smi -L 2>/dev/null", "r")) {
      char line[256];
      while (std::fgets(line, sizeof line, list) != nullptr)
        lines += std::string(line).starts_with("GPU ");
      ::pclose(list);
    }
    return lines;
  }();
  return count;
}
/// How many ranks a job of `wanted` ranks gets here: one GPU each, with the cuda engine.
inline int ranks_here(int wanted) {
  return on_cuda() ? std::min(wanted, gpu_count()) : wanted;
}

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A folder that goes when the test ends.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/troupe-app-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] fs::path file(const std::string& name) const { return path_ / name; }
  fs::path write(const std::string& name, const std::string& contents) const {
    std::ofstream(file(name)) << contents;
    return file(name);
  }

 private:
  fs::path path_;
};

struct JobOptions {
  std::vector<std::string> environment = {};  ///< "NAME=value", for the ranks
  std::chrono::seconds limit{300};            ///< then it is killed and counts as hung
  bool choose_engine = true;                  ///< pass --engine as TROUPE_TEST_BACKEND says
  std::vector<std::string> starter = {};      ///< a command that starts each rank, with arguments
};

/// One run of the program: under mpirun, or started by itself (an MPI singleton) if `ranks` is
/// kNoMpirun.
class Job {
 public:
  static constexpr int kNoMpirun = 0;

  Job(int ranks, const std::vector<std::string>& arguments, const JobOptions& options = {})
      : options_(options) {
    static int number = 0;
    mark_ = "JOB_OF_TEST=" + std::to_string(::getpid()) + "." + std::to_string(++number);
    ::setenv("TROUPE_SITE_CONFIG", "",
             1);  // what this machine's site file says is no part of the test
    ::setenv("TROUPE_FLIGHT_DIR", "none", 1);  // device hosts are lost here on purpose
    if (::geteuid() == 0) {
      ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
      ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    std::vector<std::string> words;
    if (ranks != kNoMpirun)
      words = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
    words.insert(words.end(), {"env", mark_});
    words.insert(words.end(), options.environment.begin(), options.environment.end());
    words.insert(words.end(), options.starter.begin(), options.starter.end());
    words.push_back(TROUPE_TEST_PROGRAM);
    if (options.choose_engine) words.insert(words.end(), {"--engine", engine()});
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, scratch_.file("out").c_str(), O_WRONLY | O_CREAT,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, 2, scratch_.file("err").c_str(), O_WRONLY | O_CREAT,
                                     0600);
    began_ = std::chrono::steady_clock::now();
    if (::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Job() {
    if (pid_ > 0) wait();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Waits for the end. The job's exit status; -1 if it did not end in time or did not start.
  int wait() {
    if (pid_ <= 0) return status_;
    int raw = 0;
    while (::waitpid(pid_, &raw, WNOHANG) == 0) {
      if (seconds() > static_cast<double>(options_.limit.count())) {
        for (const auto pid : processes("")) ::kill(pid, SIGKILL);
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &raw, 0);
        pid_ = -1;
        return status_;
      }
      std::this_thread::sleep_for(5ms);
    }
    pid_ = -1;
    if (WIFEXITED(raw)) status_ = WEXITSTATUS(raw);
    return status_;
  }
  /// Sends mpirun a signal.
  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  /// True if it has not ended when so much time has passed.
  [[nodiscard]] bool runs_on_for(std::chrono::seconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end &&
           seconds() < static_cast<double>(options_.limit.count())) {
      siginfo_t ended{};
      if (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          ended.si_pid != 0)
        return false;
      std::this_thread::sleep_for(5ms);
    }
    return seconds() < static_cast<double>(options_.limit.count());
  }
  /// Ends all of it at once, as a node's end does.
  void kill_all() {
    for (const auto pid : processes("")) ::kill(pid, SIGKILL);
    signal(SIGKILL);
    wait();
  }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  [[nodiscard]] std::string out() const { return read_file(scratch_.file("out")); }
  [[nodiscard]] std::string err() const { return read_file(scratch_.file("err")); }
  /// The lines of stderr that are the program's.
  [[nodiscard]] std::vector<std::string> complaints() const {
    std::vector<std::string> lines;
    std::istringstream text(err());
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(fs::path(TROUPE_TEST_PROGRAM).filename().string() + ":"))
        lines.push_back(line);
    }
    return lines;
  }

  /// Processes of this job whose name starts with `name`; mpirun itself is none.
  [[nodiscard]] std::vector<pid_t> processes(const std::string& name) const {
    std::vector<pid_t> found;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator("/proc", gone)) {
      const auto pid = entry.path().filename().string();
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto environment = std::string(1, '\0') + read_file(entry.path() / "environ");
      if (environment.find(std::string(1, '\0') + mark_ + std::string(1, '\0')) ==
          std::string::npos)
        continue;
      if (read_file(entry.path() / "comm").starts_with(name)) found.push_back(std::stoi(pid));
    }
    return found;
  }
  /// Waits until all processes of the job are gone; false if some stay.
  [[nodiscard]] bool nothing_left() const {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!processes("").empty()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }

 private:
  JobOptions options_;
  Scratch scratch_;
  std::string mark_;
  std::chrono::steady_clock::time_point began_;
  pid_t pid_ = -1;
  int status_ = -1;
};

/// The folder of matrices that are not part of this repository; empty if it is not there.
inline fs::path shared_matrices() {
  const char* named = std::getenv("TROUPE_SHARED");
  const fs::path folder =
      (named != nullptr ? fs::path(named) : fs::path(TROUPE_SOURCE_DIR) / ".." / "shared") /
      "matrices";
  std::error_code ignored;
  return fs::exists(folder, ignored) ? folder : fs::path();
}

}  // namespace troupe::test
