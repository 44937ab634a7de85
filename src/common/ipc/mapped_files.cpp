#include "common/ipc/mapped_files.hpp"

#include <algorithm>
#include <fstream>

namespace troupe::ipc {

std::vector<std::string> mapped_files(pid_t process, std::string_view prefix) {
  std::vector<std::string> files;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find(prefix);
    if (path != std::string::npos && !line.ends_with(" (deleted)"))
      files.push_back(line.substr(path));
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace troupe::ipc
