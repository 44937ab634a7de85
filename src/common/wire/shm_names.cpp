#include "common/wire/shm_names.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

constexpr auto kFixed = kShmPattern.substr(0, kShmPattern.find('X'));

/// Whether mkstemp(3) puts it into a name.
bool is_of_a_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

void ShmNames::note(std::string_view path) noexcept {
  if (path.size() != kShmPattern.size() || !path.starts_with(kFixed)) return;
  auto& name = names_[noted_.fetch_add(1) % kCapacity];
  for (std::size_t i = 0; i < kSuffix; ++i) name[i].store(path[kFixed.size() + i]);
}

std::vector<std::string> ShmNames::paths() const {
  std::vector<std::string> paths;
  const auto count = std::min<std::uint64_t>(noted_.load(), kCapacity);
  for (std::size_t i = 0; i < count; ++i) {
    std::string path(kFixed);
    for (std::size_t at = 0; at < kSuffix; ++at) path += names_[i][at].load();
    const auto suffix = std::string_view(path).substr(kFixed.size());
    if (std::all_of(suffix.begin(), suffix.end(), is_of_a_name)) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace troupe::wire
