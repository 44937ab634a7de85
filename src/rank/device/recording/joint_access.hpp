#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <troupe/lib/submit.hpp>

#include "common/wire/record.hpp"

namespace troupe::rank_process {

/// What commands that run one after another do together to each byte that they name.
///
/// A byte is read if one of them reads it before another has surely overwritten it; else what was
/// there does not matter. It is surely overwritten if one of them says so of it before any of them
/// reads it.
class JointAccess {
 public:
  /// The next command. `surely`: it is not passed over.
  void add(const detail::CommandView& command, bool surely = true);
  /// All that has been added, as operands of one command: they do not overlap. The tag of those
  /// that are surely overwritten is `overwritten`, that of others 0. Where there are too many
  /// ranges, those that touch one another are joined, as what all of them together may be; no byte
  /// is ever named that no command names. Errors: unsupported (there are still too many).
  [[nodiscard]] Result<std::vector<TailOperand>> operands(std::uint32_t overwritten) const;
  /// The most ranges that one command can name.
  static constexpr std::size_t kMostRanges = wire::kMaxTail;

 private:
  struct Part {
    std::uint64_t end = 0;
    bool read = false;         ///< what was there before the first command
    bool written = false;      ///< by any
    bool overwritten = false;  ///< surely
    bool operator==(const Part&) const = default;
  };
  using Parts = std::map<std::uint64_t, Part>;  ///< by first byte; disjoint
  struct Buffer {
    Operand any;  ///< one of its operands
    Parts parts;
  };

  void add(const Operand& range, Access access, std::uint64_t overwritten);
  static void split(Parts& parts, std::uint64_t at);
  /// Neighbours are one where they are alike, and with `all_neighbours` wherever they touch.
  [[nodiscard]] std::vector<TailOperand> joined(std::uint32_t overwritten,
                                                bool all_neighbours) const;

  /// By region and buffer; of memory that is in no table of buffers the latter is 0.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Buffer> buffers_;
};

}  // namespace troupe::rank_process
