#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::rank_process {

/// What measurements have found, on disk: plans of libraries that begin with wire::kTuningMark.
/// Many processes use one file at once: it is read and written under a lock, under another name,
/// and renamed. One that cannot be read, is damaged or is of another version costs a warning, and
/// is made anew with the next measurement. One thread.
class TuningFile {
 public:
  struct Entry {
    std::string library;
    std::vector<std::byte> plan;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  static constexpr std::size_t kMost = 256, kMaxBytes = 4096;  ///< of plans, of each of them

  /// `file`: its folder is made when needed; empty: nothing is kept.
  explicit TuningFile(std::filesystem::path file) : file_(std::move(file)) {}

  /// Those that were added last come first.
  [[nodiscard]] std::vector<Entry> load();
  /// Beyond kMost those that were added first go. Whatever is no result of a measurement is left
  /// out.
  void add(const std::vector<Entry>& plans);

 private:
  void warn(const std::string& what);

  std::filesystem::path file_;
  bool warned_ = false;
};

/// The file that a setting names: "auto" is troupe/tuning in the user's folder of caches, "none" is
/// none.
std::filesystem::path tuning_cache_file(const std::string& setting);

}  // namespace troupe::rank_process
