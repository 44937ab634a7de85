#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::rank {

/// What a saved state on disk consists of: one entry per part, in order.
struct Manifest {
  struct Part {
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;  ///< PartTable::head_crc, which covers the whole part
    bool operator==(const Part&) const = default;
  };
  std::int64_t step = -1;
  std::vector<Part> parts;
  bool operator==(const Manifest&) const = default;
};
std::string to_json(const Manifest& manifest);
/// Errors: invalid, with what is wrong.
Result<Manifest> parse_manifest(const std::string& text);

/// The saved states of one program in one folder, of which two generations are kept.
///
///     FOLDER/step-120/part-0.troupe, part-1.troupe, ..., manifest.json
///     FOLDER/step-180.tmp/...                                             being written
///
/// A state is there as a whole or not at all: its parts are written into a folder with the ending
/// .tmp, each waited for until it is on disk; then one rank writes the manifest and renames the
/// folder. Functions that say so are for that one rank.
class Generations {
 public:
  explicit Generations(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Makes the folder and removes what was left half written. One rank, before any other writes.
  Result<void> prepare() const;
  /// The steps of which there is a state, newest first; none if there is no folder.
  [[nodiscard]] std::vector<std::int64_t> steps() const;
  /// Errors: io, invalid, each naming the file.
  [[nodiscard]] Result<Manifest> manifest(std::int64_t step) const;
  [[nodiscard]] std::filesystem::path part(std::int64_t step, int part) const;

  /// Makes the folder for a state to be written, unless another rank has; the path of a part in it.
  Result<std::filesystem::path> begin(std::int64_t step, int part) const;
  /// All parts are on disk: makes the state visible and removes all others but the one before it.
  /// States of later steps go too: they belong to a run that this one has not continued. One rank.
  Result<void> publish(const Manifest& manifest) const;
  /// Removes what was written of a state. One rank, when all have stopped writing.
  void abandon(std::int64_t step) const;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  [[nodiscard]] std::filesystem::path unfinished(std::int64_t step) const;

  std::filesystem::path folder_;
};

}  // namespace troupe::rank
