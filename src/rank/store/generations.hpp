#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "rank/store/fingerprint.hpp"

namespace troupe::rank_process {

/// What a saved state on disk consists of: one entry per part, in order.
struct Manifest {
  struct Part {
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;  ///< PartTable::head_crc, which covers the whole part
    bool operator==(const Part&) const = default;
  };
  std::int64_t step = -1;
  std::vector<Part> parts;
  Fingerprint fingerprint = {};  ///< of the run that saved it
  bool operator==(const Manifest&) const = default;
};
std::string to_json(const Manifest& manifest);
/// Errors: invalid, with what is wrong.
Result<Manifest> parse_manifest(const std::string& text);

/// The saved states of one program in one folder, of which two generations are kept.
///
///     FOLDER/step-120/part-0.troupe, part-1.troupe, ..., manifest.json
///     FOLDER/step-180.tmp/...                                             being written
///     FOLDER/step-120.old.tmp, step-60.gone.tmp                           about to go
///
/// A state is there as a whole or not at all: its parts are written into a folder with the ending
/// .tmp, each waited for until it is on disk; then one rank writes the manifest and renames the
/// folder. Functions that say so are for that one rank.
class Generations {
 public:
  /// `fingerprint`: of the run that looks for a state to go on from, and saves others.
  explicit Generations(std::filesystem::path folder, const Fingerprint& fingerprint = {})
      : folder_(std::move(folder)), fingerprint_(in_ascii(fingerprint)) {}

  /// Makes the folder, removes what was left half written, and brings back a state that was to be
  /// replaced by one that never came. One rank, before any other writes.
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
  /// The manifest is written with the fingerprint of this run.
  Result<void> publish(Manifest manifest) const;
  /// Removes what was written of a state. One rank, when all have stopped writing.
  void abandon(std::int64_t step) const;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] const Fingerprint& fingerprint() const noexcept { return fingerprint_; }

 private:
  [[nodiscard]] std::filesystem::path unfinished(std::int64_t step) const;

  std::filesystem::path folder_;
  Fingerprint fingerprint_;
};

}  // namespace troupe::rank_process
