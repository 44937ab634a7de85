#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "common/core/content_id.hpp"
#include "common/wire/compile_job.hpp"

namespace troupe::rank_process {

/// All that is known beforehand of the making of a kernel, as bytes.
using KernelKey = std::span<const std::byte>;

/// Compiled kernels on disk, by what they were compiled from. Many processes use one folder at
/// once: an entry is written under another name and renamed, and checked when it is read. It is run
/// as code, so only an entry that is trusted (see ipc::open_trusted()), has the whole key in it and
/// is undamaged is taken. What cannot be read or written costs the entry; one warning tells of it.
/// Any thread.
class KernelCache {
 public:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{512} << 20;

  /// `folder`: made when needed; empty: there is no cache. `max_bytes`: of all entries together;
  /// beyond it those that were not used for longest go.
  explicit KernelCache(std::filesystem::path folder, std::uint64_t max_bytes = kMaxBytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  /// Nothing if there is no entry, if it is damaged or not to be trusted, or if its compiler or a
  /// file that it was made from has changed since.
  std::optional<wire::CompileOutcome> find(KernelKey key);
  void store(KernelKey key, const wire::CompileOutcome& outcome);
  /// The file of an entry.
  [[nodiscard]] std::filesystem::path path_of(KernelKey key) const;

 private:
  void warn(const std::string& what);
  void trim();

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  std::atomic<bool> warned_{false};
};

/// The folder that a setting names: "auto" is troupe/kernels in the user's folder of caches (XDG
/// Base Directory Specification), "none" is none.
std::filesystem::path kernel_cache_folder(const std::string& setting);

}  // namespace troupe::rank_process
