#include "rank/device/kernels/kernel_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"
#include "common/ipc/trusted_file.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

/// The start of an entry; its key and its outcome follow.
struct EntryHead {
  char magic[16] = {'t', 'r', 'o', 'u', 'p', 'e', ' ', 'k', 'e', 'r', 'n', 'e', 'l', ' ', '2', 0};
  ContentId checksum;  ///< of all that follows it
  std::uint64_t key_bytes = 0;
};
static_assert(sizeof(EntryHead) == 40);

constexpr auto kSuffix = ".kernel", kUnfinished = ".part";
/// What a process that ended has left unfinished.
constexpr auto kAbandoned = std::chrono::hours(1);

std::vector<std::byte> entry_of(KernelKey key, const wire::CompileOutcome& outcome) {
  EntryHead head;
  head.key_bytes = key.size();
  const auto body = wire::encode(outcome);
  std::vector<std::byte> entry(sizeof head + key.size() + body.size());
  std::copy(key.begin(), key.end(), entry.begin() + sizeof head);
  std::copy(body.begin(), body.end(), entry.end() - static_cast<std::ptrdiff_t>(body.size()));
  std::memcpy(entry.data(), &head, sizeof head);
  head.checksum = content_id(std::span(entry).subspan(offsetof(EntryHead, key_bytes)));
  std::memcpy(entry.data(), &head, sizeof head);
  return entry;
}

/// Nothing unless the entry is undamaged, for this key, and still what would be compiled.
std::optional<wire::CompileOutcome> outcome_in(std::span<const std::byte> entry, KernelKey key) {
  EntryHead head, sound;
  if (entry.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, entry.data(), sizeof head);
  if (std::memcmp(head.magic, sound.magic, sizeof head.magic) != 0 ||
      head.checksum != content_id(entry.subspan(offsetof(EntryHead, key_bytes))))
    return std::nullopt;
  const auto rest = entry.subspan(sizeof head);
  if (head.key_bytes != key.size() || rest.size() < key.size() ||
      !std::equal(key.begin(), key.end(), rest.begin()))
    return std::nullopt;
  auto outcome = wire::decode_outcome(rest.subspan(key.size()));
  if (!outcome.ok() || !wire::stamps_hold(outcome->compiler) || !wire::inputs_hold(outcome->inputs))
    return std::nullopt;
  return std::move(*outcome);
}

}  // namespace

fs::path KernelCache::path_of(KernelKey key) const {
  return folder_ / (content_id(key).text() + kSuffix);
}

void KernelCache::warn(const std::string& what) {
  if (warned_.exchange(true)) return;
  log::warn("device", "compiled kernels are not kept in {} (see --kernel-cache): {}",
            folder_.string(), what);
}

std::optional<wire::CompileOutcome> KernelCache::find(KernelKey key) {
  if (folder_.empty()) return std::nullopt;
  const auto path = path_of(key);
  const auto file = ipc::open_trusted(path.string());
  if (!file.ok()) {
    if (file.code() == Errc::invalid) warn(file.error().message);
    return std::nullopt;
  }
  const auto bytes = ipc::read_whole(file->get());
  if (!bytes.ok()) return std::nullopt;
  if (auto outcome = outcome_in(*bytes, key)) {
    (void)::futimens(file->get(), nullptr);  // used now; no matter if the folder is read-only
    return outcome;
  }
  std::error_code ignored;
  fs::remove(path, ignored);
  return std::nullopt;
}

void KernelCache::store(KernelKey key, const wire::CompileOutcome& outcome) {
  if (folder_.empty()) return;
  const auto entry = entry_of(key, outcome);
  if (entry.size() > max_bytes_ / 2) return;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return warn(failed.message());
  auto name = (folder_ / (content_id(key).text() + "-XXXXXX" + kUnfinished)).string();
  const UniqueFd fd(
      ::mkostemps(name.data(), static_cast<int>(std::strlen(kUnfinished)), O_CLOEXEC));
  if (!fd) return warn(ipc::system_error("mkostemps").message);
  const auto written = ipc::write_whole(fd.get(), entry);
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
