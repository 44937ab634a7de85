#include "common/running/processes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace troupe::running {
namespace {

namespace fs = std::filesystem;

/// A name in /proc that is a number; -1: it is none.
int number(const fs::path& path) {
  const auto name = path.filename().string();
  int value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  return error == std::errc{} && end == name.data() + name.size() ? value : -1;
}

/// The names in a folder that are numbers. What comes and goes meanwhile may be among them or not.
std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (const int value = number(entry->path()); value >= 0) found.push_back(value);
  }
  return found;
}

std::string path_of(int pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

/// As far as it can be read: a process that ends meanwhile has none. A stream's buffer that is read
/// by itself would throw then; the operator does not.
std::string contents(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace

std::vector<int> own_processes() {
  std::vector<int> found;
  for (const int pid : numbers_in("/proc")) {
    struct stat info {};
    if (::stat(path_of(pid, "").c_str(), &info) == 0 && info.st_uid == ::geteuid())
      found.push_back(pid);
  }
  return found;
}

std::vector<UniqueFd> shared_memory_of(int pid, const std::string& label) {
  const auto wanted = "/memfd:" + label + " (deleted)";
  std::vector<UniqueFd> found;
  for (const int number : numbers_in(path_of(pid, "fd"))) {
    const auto path = path_of(pid, "fd/" + std::to_string(number));
    char target[128];
    const auto length = ::readlink(path.c_str(), target, sizeof target);
    if (length < 0 || std::string_view(target, static_cast<std::size_t>(length)) != wanted)
      continue;
    if (UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); fd) found.push_back(std::move(fd));
  }
  return found;
}

std::string command_line(int pid) {
  auto text = contents(path_of(pid, "cmdline"));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

char state_of(int pid) {
  const auto text = contents(path_of(pid, "stat"));
  // The name stands in parentheses and may have some of its own.
  const auto at = text.rfind(") ");
  return at != std::string::npos && at + 2 < text.size() ? text[at + 2] : '\0';
}

}  // namespace troupe::running
