#include "holdings.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace troupe::torture {

namespace fs = std::filesystem;

namespace {

const std::string kDevShm = "/dev/shm/";

/// Calls visit(path) with each entry of /dev/shm that the process has mapped.
template <class Visit>
void for_each_mapped(const fs::path& process, Visit&& visit) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (const auto at = line.find(kDevShm); at != std::string::npos) visit(line.substr(at));
  }
}

}  // namespace

std::string kind_of(const std::string& link) {
  constexpr std::string_view kDeleted = " (deleted)", kAnonymous = "anon_inode:";
  if (link.starts_with("/memfd:")) {
    const auto name = link.substr(0, link.find(kDeleted));
    return name.substr(0, name.find_first_of("0123456789"));
  }
  if (link.starts_with(kDevShm)) return "/dev/shm";
  if (link.starts_with("/dev/")) return link;
  if (link.starts_with(kAnonymous)) return link.substr(kAnonymous.size());
  if (link.starts_with("/")) return "file " + link.substr(link.rfind('/') + 1);
  return link.substr(0, link.find(':'));  // socket:[123]
}

Holdings holdings_of(pid_t pid) {
  const fs::path process = fs::path("/proc") / std::to_string(pid);
  Holdings held;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(process / "fd", gone)) {
    const auto link = fs::read_symlink(entry.path(), gone).string();
    if (!link.empty()) ++held[kind_of(link)];
  }
  std::set<std::string> mapped;
  for_each_mapped(process, [&](std::string path) { mapped.insert(std::move(path)); });
  if (!mapped.empty()) held["mapped /dev/shm"] = static_cast<int>(mapped.size());
  return held;
}

std::string grown(const Holdings& then, const Holdings& now,
                  const std::vector<std::string>& may_grow) {
  std::string text;
  for (const auto& [kind, count] : now) {
    const auto before = then.find(kind);
    const int had = before == then.end() ? 0 : before->second;
    if (count <= had || std::find(may_grow.begin(), may_grow.end(), kind) != may_grow.end())
      continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind + " (" +
            std::to_string(had) + ")";
  }
  return text;
}

std::set<std::string> forgotten_in_dev_shm() {
  std::set<std::string> entries;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(kDevShm, gone))
    entries.insert(entry.path().string());
  for (const auto& process : fs::directory_iterator("/proc", gone)) {
    const auto name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    for_each_mapped(process.path(), [&](const std::string& path) { entries.erase(path); });
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", gone))
      entries.erase(fs::read_symlink(fd.path(), gone).string());
  }
  return entries;
}

}  // namespace troupe::torture
