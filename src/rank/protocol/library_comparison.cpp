#include "rank/protocol/library_comparison.hpp"

namespace troupe::rank_process {
namespace {

constexpr int kShownRanges = 8;  ///< ranges of ranks that are named

/// "ranks 0-2, 5"
std::string names(const std::set<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int shown = 0;
  for (auto it = ranks.begin(); it != ranks.end(); ++shown) {
    if (shown == kShownRanges) return text + ", …";
    const int first = *it;
    int last = first;
    while (++it != ranks.end() && *it == last + 1) ++last;
    text += (shown == 0 ? "" : ", ") + std::to_string(first);
    if (last != first) text += (last == first + 1 ? ", " : "-") + std::to_string(last);
  }
  return text;
}

}  // namespace

void LibraryComparison::receive(int rank, const OpenedLibrary& library, TimePoint now) {
  if (rank < 0 || rank >= size_) return;
  for (const auto& [name, version, file] : library.stands_on) {
    auto& loaded = loaded_[name];
    const auto [entry, added] = loaded.versions.try_emplace(version, Version{file, {}});
    entry->second.ranks.insert(rank);
    if (!added || loaded.versions.size() == 1 || loaded.differs) continue;
    loaded.differs = true;
    loaded.since = now;
  }
}

bool LibraryComparison::heard_all(const Loaded& loaded) const {
  std::set<int> heard;
  for (const auto& [text, version] : loaded.versions)
    heard.insert(version.ranks.begin(), version.ranks.end());
  return static_cast<int>(heard.size()) == size_;
}

std::vector<std::string> LibraryComparison::differences(TimePoint now, bool all) {
  std::vector<std::string> lines;
  for (auto& [name, loaded] : loaded_) {
    if (!loaded.differs) continue;
    if (!all && now - loaded.since < kPatience && !heard_all(loaded)) continue;
    loaded.differs = false;
    if (++loaded.lines <= kMostLines) lines.push_back(describe(name, loaded));
  }
  return lines;
}

std::string LibraryComparison::describe(const std::string& name, const Loaded& loaded) {
  std::string text = name + " is not the same version everywhere:";
  for (const auto& [version, of] : loaded.versions)
    text += " " + version + (of.file.empty() ? "" : " (" + of.file + ")") + " on " +
            names(of.ranks) + ";";
  text.back() = '.';
  return text + " Ranks may compute different results from the same input";
}

}  // namespace troupe::rank_process
