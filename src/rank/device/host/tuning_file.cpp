#include "rank/device/host/tuning_file.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

#include "common/core/content_id.hpp"
#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"
#include "common/ipc/trusted_file.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"
#include "common/wire/tuning_mark.hpp"
#include "rank/device/kernels/kernel_cache.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;
using Entry = TuningFile::Entry;

/// What the file begins with; its plans follow, library and plan, each behind its size in eight
/// bytes.
struct Head {
  char magic[16] = {'t', 'r', 'o', 'u', 'p', 'e', ' ', 't', 'u', 'n', 'e', 'd', ' ', '1'};
  ContentId checksum;
};
static_assert(sizeof(Head) == 32);

std::vector<std::byte> encode(const std::vector<Entry>& plans) {
  std::vector<std::byte> body(sizeof(Head));
  const auto put = [&body](std::span<const std::byte> bytes) {
    const std::uint64_t size = bytes.size();
    const auto length = std::as_bytes(std::span(&size, 1));
    body.insert(body.end(), length.begin(), length.end());
    body.insert(body.end(), bytes.begin(), bytes.end());
  };
  for (const auto& [library, plan] : plans) put(std::as_bytes(std::span(library))), put(plan);
  Head head;
  head.checksum = content_id(std::span(body).subspan(sizeof head));
  std::memcpy(body.data(), &head, sizeof head);
  return body;
}

std::optional<std::vector<Entry>> decode(std::span<const std::byte> bytes) {
  Head head, sound;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  auto rest = bytes.subspan(sizeof head);
  if (std::memcmp(head.magic, sound.magic, sizeof head.magic) != 0 ||
      head.checksum != content_id(rest))
    return std::nullopt;
  const auto get = [&rest]() -> std::optional<std::span<const std::byte>> {
    std::uint64_t size = 0;
    if (rest.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, rest.data(), sizeof size);
    if (size > rest.size() - sizeof size) return std::nullopt;
    const auto part = rest.subspan(sizeof size, size);
    rest = rest.subspan(sizeof size + size);
    return part;
  };
  std::vector<Entry> plans;
  while (!rest.empty()) {
    const auto library = get(), plan = get();
    if (!library || !plan || !wire::is_tuning(*plan)) return std::nullopt;
    plans.push_back({{reinterpret_cast<const char*>(library->data()), library->size()},
                     {plan->begin(), plan->end()}});
  }
  return plans;
}

/// Waits for the lock no longer than a second: nobody holds it for that long who runs.
bool lock(const UniqueFd& fd) {
  for (int i = 0; i < 500; ++i) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

}  // namespace

void TuningFile::warn(const std::string& what) {
  if (warned_) return;
  warned_ = true;
  log::warn("device", "results of tuning in {} (see --tuning-cache): {}", file_.string(), what);
}

std::vector<Entry> TuningFile::load() {
  if (file_.empty()) return {};
  const auto file = ipc::open_trusted(file_.string(), {.follows_links = true});
  if (!file.ok()) {
    const auto& error = file.error();
    if (error.native != ENOENT && error.native != ENOTDIR) warn(error.message);
    return {};
  }
  const auto bytes = ipc::read_whole(file->get());
  auto plans = bytes.ok() ? decode(*bytes) : std::nullopt;
  if (!plans) {
    warn(bytes.ok() ? "damaged or of another version, ignored" : bytes.error().message);
    return {};
  }
  return std::move(*plans);
}

void TuningFile::add(const std::vector<Entry>& plans) {
  if (file_.empty()) return;
  std::vector<Entry> all;
  const auto take = [&all](const std::vector<Entry>& some) {
    for (const auto& plan : some) {
      if (wire::is_tuning(plan.plan) && plan.plan.size() <= kMaxBytes && all.size() < kMost &&
          std::find(all.begin(), all.end(), plan) == all.end())
        all.push_back(plan);
    }
  };
  take(plans);
  if (all.empty()) return;
  std::error_code failed;
  if (file_.has_parent_path()) fs::create_directories(file_.parent_path(), failed);
  if (failed) return warn(failed.message());
  const auto lock_file = ipc::create_trusted(file_.string() + ".lock", 0600);
  if (!lock_file.ok()) return warn(lock_file.error().message);
  if (!lock(*lock_file)) return warn("another process has it, not written");
  take(load());
  // Only who has the lock uses this name: one that a killed process has left is written anew.
  const auto name = file_.string() + ".new";
  const auto file = ipc::create_trusted(name, 0600);
  if (!file.ok()) return warn(file.error().message);
  const auto written = ipc::write_whole(file->get(), encode(all));
  if (written.ok()) fs::rename(name, file_, failed);
  if (written.ok() && !failed) return;
  warn(written.ok() ? failed.message() : written.error().message);
  fs::remove(name, failed);
}

fs::path tuning_cache_file(const std::string& setting) {
  if (setting == "none") return {};
  if (setting != "auto") return setting;
  const auto kernels = kernel_cache_folder("auto");
  return kernels.empty() ? kernels : kernels.parent_path() / "tuning";
}

}  // namespace troupe::rank_process
