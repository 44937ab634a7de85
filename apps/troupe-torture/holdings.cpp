#include "holdings.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace troupe::torture {

namespace fs = std::filesystem;

std::string kind_of(const std::string& link) {
  constexpr std::string_view kDeleted = " (deleted)", kAnonymous = "anon_inode:";
  if (link.starts_with("/memfd:")) {
    const auto name = link.substr(0, link.find(kDeleted));
    return name.substr(0, name.find_first_of("0123456789"));
  }
  if (link.starts_with("/dev/shm/")) return "/dev/shm";
  if (link.starts_with("/dev/")) return link;
  if (link.starts_with(kAnonymous)) return link.substr(kAnonymous.size());
  if (link.starts_with("/")) return "file";
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
  std::ifstream maps(process / "maps");
  std::set<std::string> mapped;
  for (std::string line; std::getline(maps, line);) {
    if (const auto at = line.find("/dev/shm/"); at != std::string::npos)
      mapped.insert(line.substr(at));
  }
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

}  // namespace troupe::torture
