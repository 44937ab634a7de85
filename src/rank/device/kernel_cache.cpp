#include "rank/device/kernel_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

/// What an entry begins with; its outcome follows.
struct Head {
  char magic[16] = {'t', 'r', 'o', 'u', 'p', 'e', ' ', 'k', 'e', 'r', 'n', 'e', 'l', ' ', '1', 0};
  ContentId checksum;
};
static_assert(sizeof(Head) == 32);

constexpr auto kSuffix = ".kernel", kUnfinished = ".part";
/// What a process that ended has left unfinished.
constexpr auto kAbandoned = std::chrono::hours(1);

}  // namespace

fs::path KernelCache::path_of(const ContentId& key) const {
  return folder_ / (key.text() + kSuffix);
}

void KernelCache::warn(const std::string& what) {
  if (warned_.exchange(true)) return;
  log::warn("device", "compiled kernels are not kept in {} (see --kernel-cache): {}",
            folder_.string(), what);
}

std::optional<wire::CompileOutcome> KernelCache::find(const ContentId& key) {
  if (folder_.empty()) return std::nullopt;
  const auto path = path_of(key);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  const auto bytes = ipc::read_whole(fd.get());
  if (!bytes.ok()) return std::nullopt;
  Head head, sound;
  const auto outcome = [&]() -> std::optional<wire::CompileOutcome> {
    if (bytes->size() < sizeof head) return std::nullopt;
    std::memcpy(&head, bytes->data(), sizeof head);
    const auto rest = std::span(*bytes).subspan(sizeof head);
    if (std::memcmp(head.magic, sound.magic, sizeof head.magic) != 0 ||
        head.checksum != content_id(rest))
      return std::nullopt;
    auto decoded = wire::decode_outcome(rest);
    if (!decoded.ok() || !wire::stamps_hold(decoded->compiler)) return std::nullopt;
    return std::move(*decoded);
  }();
  if (outcome) {
    (void)::futimens(fd.get(), nullptr);  // it was used now; no matter if the folder is read-only
  } else {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  return outcome;
}

void KernelCache::store(const ContentId& key, const wire::CompileOutcome& outcome) {
  if (folder_.empty()) return;
  const auto body = wire::encode(outcome);
  if (sizeof(Head) + body.size() > max_bytes_ / 2) return;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return warn(failed.message());
  Head head;
  head.checksum = content_id(body);
  auto name = (folder_ / (key.text() + "-XXXXXX" + kUnfinished)).string();
  const UniqueFd fd(
      ::mkostemps(name.data(), static_cast<int>(std::strlen(kUnfinished)), O_CLOEXEC));
  if (!fd) return warn(ipc::system_error("mkostemps").message);
  auto written = ipc::write_whole(fd.get(), std::as_bytes(std::span(&head, 1)));
  if (written.ok()) written = ipc::write_whole(fd.get(), body);
  if (written.ok()) fs::rename(name, path_of(key), failed);
  if (!written.ok() || failed) {
    warn(written.ok() ? failed.message() : written.error().message);
    fs::remove(name, failed);
    return;
  }
  trim();
}

/// By what each process sees; two that trim at once remove more than one would, and no harm is
/// done.
void KernelCache::trim() {
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    std::uint64_t bytes;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& file : fs::directory_iterator(folder_, ignored)) {
    std::error_code gone;
    const auto used = file.last_write_time(gone);
    const auto bytes = gone ? 0 : file.file_size(gone);
    if (gone) continue;
    const auto suffix = file.path().extension();
    if (suffix == kUnfinished && now - used > kAbandoned) fs::remove(file.path(), gone);
    if (suffix != kSuffix) continue;
    entries.push_back({file.path(), used, bytes});
    total += bytes;
  }
  if (total <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const auto& entry : entries) {
    if (total <= max_bytes_ / 4 * 3) return;
    fs::remove(entry.path, ignored);
    total -= entry.bytes;
  }
}

fs::path kernel_cache_folder(const std::string& setting) {
  if (setting == "none") return {};
  if (setting != "auto") return setting;
  const auto named = [](const char* variable) -> fs::path {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value == '/' ? value : "";
  };
  if (const auto caches = named("XDG_CACHE_HOME"); !caches.empty())
    return caches / "troupe" / "kernels";
  const auto home = named("HOME");
  return home.empty() ? home : home / ".cache" / "troupe" / "kernels";
}

}  // namespace troupe::rank_process
