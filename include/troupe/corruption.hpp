#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// Numbers that a rank had wrong. The same on all ranks that were members of the run then.
struct Corruption {
  /// How they were found.
  enum class Found : std::uint8_t {
    verified,    ///< steps that were done again gave other numbers (--verify)
    replicated,  ///< an entry that is the same on all ranks was another one here (add_replicated)
    constant     ///< memory that no step writes has changed (Checkpoint::add_constant)
  };
  Found found = Found::verified;
  /// Whose numbers were wrong; -1: that cannot be told, because those of several ranks differ.
  int rank = -1;
  std::string gpu = {};                        ///< its UUID; empty: it has none
  std::string host = {};                       ///< where it is
  std::int64_t first_step = 0, last_step = 0;  ///< the steps that it came about in
  std::string entry = {};              ///< of the checkpoint, in which the numbers were found
  std::uint64_t element = 0;           ///< the first that was wrong
  std::uint64_t count = 0;             ///< elements that were
  std::string wrong = {}, right = {};  ///< values of the first; empty: not known
  /// The steps gave three different results, or the entry was another one again after the run had
  /// gone back: a GPU that fails. Otherwise it has happened once.
  bool persistent = false;
};
std::string_view to_string(Corruption::Found found) noexcept;
/// "rank 2 (GPU-…, host n01) computed wrong numbers in steps 40 to 49, once: entry x, element 17,
/// …"
std::string in_words(const Corruption& corruption);

}  // namespace troupe
