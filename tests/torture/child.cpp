#include "child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "holdings.hpp"

extern char** environ;

namespace troupe::torture {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
             const std::string& mark)
    : folder_(folder), mark_("TORTURE_JOB=" + mark), forgotten_(forgotten_in_dev_shm()) {
  const auto output = (folder / "output").string(), temporary = (folder / "tmp").string();
  std::filesystem::remove_all(temporary);  // of a job that was killed, see left_behind()
  std::filesystem::create_directories(temporary);
  std::vector<std::string> texts{"mpirun"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> settings{mark_,
                                    "TMPDIR=" + temporary,
                                    "OMPI_MCA_btl_vader_backing_directory=" + temporary,
                                    "OMPI_MCA_mpi_yield_when_idle=1",
                                    "OMPI_ALLOW_RUN_AS_ROOT=1",
                                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  std::vector<char*> argv, env;
  for (auto& text : texts) argv.push_back(text.data());
  for (auto& setting : settings) env.push_back(setting.data());
  for (char** one = environ; *one != nullptr; ++one) {
    if (std::string_view(*one).starts_with("TMPDIR=")) continue;
    env.push_back(*one);
  }
  argv.push_back(nullptr), env.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_CREAT | O_TRUNC | O_WRONLY,
                                     0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const int error = ::posix_spawnp(&pid_, "mpirun", &actions, &attributes, argv.data(), env.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "mpirun");
}

Child::~Child() {
  kill();
  for (const int pid : marked_processes()) ::kill(pid, SIGKILL);
}

bool Child::reap(bool block) {
  if (pid_ < 0) return true;
  int status = 0;
  if (::waitpid(pid_, &status, block ? 0 : WNOHANG) != pid_) return false;
  pid_ = -1;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

bool Child::ends_within(std::chrono::nanoseconds time) {
  const auto end = Clock::now() + time;
  while (!reap(false)) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

void Child::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reap(true);
}

Child::Ended Child::wait(std::chrono::nanoseconds limit) {
  Ended ended;
  ended.in_time = ends_within(limit);
  if (!ended.in_time) kill();
  ended.status = status_;
  ended.output = read_file(folder_ / "output");
  return ended;
}

std::vector<int> Child::marked_processes() const {
  std::vector<int> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto variables = read_file(entry.path() / "environ");
    for (std::size_t at = 0; at < variables.size(); at = variables.find('\0', at) + 1) {
      if (variables.compare(at, mark_.size() + 1, mark_ + '\0') == 0)
        found.push_back(std::stoi(name));
      if (variables.find('\0', at) == std::string::npos) break;
    }
  }
  return found;
}

std::string Child::left_behind() const {
  const auto end = Clock::now() + 20s;
  std::string left;
  for (;;) {
    left.clear();
    for (const int pid : marked_processes()) {
      left += " process " + std::to_string(pid) + " (" +
              read_file("/proc/" + std::to_string(pid) + "/comm") + ")";
    }
    std::error_code gone;
    // After SIGKILL mpirun's own files stay, with no one to remove them.
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "tmp", gone)) {
      if (status_ < 128 && entry.is_regular_file(gone)) left += " file " + entry.path().string();
    }
    for (const auto& entry : forgotten_in_dev_shm()) {
      // Nor does anyone remove those of NCCL where mpirun has killed ranks because one ended first.
      const bool of_killed_rank =
          status_ >= 128 || (status_ != 0 && entry.starts_with("/dev/shm/nccl-"));
      if (!of_killed_rank && !forgotten_.contains(entry)) left += " " + entry;
    }
    if (left.empty() || Clock::now() > end) return left;
    std::this_thread::sleep_for(50ms);
  }
}

}  // namespace troupe::torture
