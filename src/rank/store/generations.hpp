#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "rank/store/fingerprint.hpp"

namespace troupe::rank_process {

/// With which step each of the program's runs before has ended, of those that save their states in
/// the same folder; kNoEnd: by an error. A run is known by their number: the first one has none.
using Ends = std::vector<std::int64_t>;
inline constexpr std::int64_t kNoEnd = -1;

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
  Ends ends = {};                ///< of the runs before the one that saved it
  bool operator==(const Manifest&) const = default;
};
std::string to_json(const Manifest& manifest);
/// Errors: invalid, with what is wrong.
Result<Manifest> parse_manifest(const std::string& text);

/// The saved states of one run of a program in one folder, of which two generations are kept. Those
/// of the first run lie in the folder itself, those of each later one in a folder within.
///
///     FOLDER/step-120/part-0.troupe, part-1.troupe, ..., manifest.json
///     FOLDER/step-180.tmp/...                                             being written
///     FOLDER/step-120.old.tmp, step-60.gone.tmp                           about to go
///     FOLDER/run-2/step-40/...                                            of the second run
///
/// A state is there as a whole or not at all: its parts are written into a folder with the ending
/// .tmp, each waited for until it is on disk; then one rank writes the manifest and renames the
/// folder. Functions that say so are for that one rank.
class Generations {
 public:
  /// `fingerprint`, `ends`: of the run that looks for a state to go on from, and saves others.
  explicit Generations(const std::filesystem::path& folder, const Fingerprint& fingerprint = {},
                       Ends ends = {});
  /// A run of which there is a state, the newest; 1: also if there is none of any.
  [[nodiscard]] static std::size_t newest_run(const std::filesystem::path& folder);
  /// The run takes up no state of another start of the program: with its first one the states of
  /// the runs behind it go too.
  void begin_anew() noexcept { anew_ = true; }

  /// Makes the folder, removes what was left half written, and brings back a state that was to be
  /// replaced by one that never came. One rank, before any other writes.
  Result<void> prepare() const;
  /// The steps of which there is a state, newest first; none if there is no folder.
  [[nodiscard]] std::vector<std::int64_t> steps() const;
  /// Errors: io, invalid, each naming the file.
  [[nodiscard]] Result<Manifest> manifest(std::int64_t step) const;
  [[nodiscard]] std::filesystem::path part(std::int64_t step, int part) const;
  /// The file beside the parts with a copy of one that lies in another node's folder.
  [[nodiscard]] static std::string copy_name(int part);

  /// Makes the folder for a state to be written, unless another rank has; the path of a part in it.
  Result<std::filesystem::path> begin(std::int64_t step, int part) const;
  /// All parts are on disk: makes the state visible and removes all others but the one before it.
  /// States of later steps go too: they belong to a start of the program that this one has not
  /// continued. So do those of the runs before this one, but not those of the runs behind it: a
  /// program that is started again comes by this run on its way to them. One rank. The manifest is
  /// written with the fingerprint and the ends of this run.
  Result<void> publish(Manifest manifest) const;
  /// Removes what was written of a state. One rank, when all have stopped writing.
  void abandon(std::int64_t step) const;
  /// Removes all states of all runs, and the folder if nothing else is in it. One rank.
  void clear() const;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  /// The folder of all runs of the program.
  [[nodiscard]] const std::filesystem::path& base() const noexcept { return base_; }
  [[nodiscard]] const Fingerprint& fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] const Ends& ends() const noexcept { return ends_; }
  /// The run's number, from 1.
  [[nodiscard]] std::size_t run() const noexcept { return ends_.size() + 1; }
  /// True if a run behind this one has left a state.
  [[nodiscard]] bool has_later_run() const { return newest_run(base_) > run(); }

 private:
  [[nodiscard]] std::filesystem::path unfinished(std::int64_t step) const;

  /// Where the states lie of the runs that make way for this one's.
  [[nodiscard]] std::vector<std::filesystem::path> replaced_runs() const;

  std::filesystem::path base_;    ///< of all runs
  std::filesystem::path folder_;  ///< of this one
  Fingerprint fingerprint_;
  Ends ends_;
  bool anew_ = false;
};

}  // namespace troupe::rank_process
