#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <troupe/saved_state.hpp>

#include "rank/store/generations.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {

/// Brings states to disk, all ranks of a group together: each writes its part, and once all are
/// there the first makes them visible.
class StateWriter {
 public:
  /// Gathers a value of every rank of the group.
  using AllGather = std::function<void(std::span<const std::byte> value, std::span<std::byte> all)>;

  StateWriter(Generations generations, int rank, int size, AllGather all_gather)
      : generations_(std::move(generations)),
        rank_(rank),
        size_(size),
        all_gather_(std::move(all_gather)) {}

  /// What a rank has of a state.
  struct Share {
    const PartTable* table = nullptr;  ///< nullptr: nothing; with its checksums after `write`
    /// Writes the part to this file, and waits until it is on disk; how it went.
    std::function<Result<StateIo>(const std::filesystem::path&)> write = {};
    bool lost = false;         ///< it should have a part
    double stall_seconds = 0;  ///< how long the program was held up by it
  };
  struct Outcome {
    std::uint64_t bytes;   ///< of all parts
    double stall_seconds;  ///< the longest
    StateIo io;            ///< direct if all parts were, compat if any was
    double write_seconds;  ///< the longest that a part took
  };
  /// All ranks call it. nullopt on all of them if the state did not come about: the log says why.
  [[nodiscard]] std::optional<Outcome> write(std::int64_t step, const Share& share) const;

  /// For Share::write, of a part that is whole in memory, which must outlive the call.
  static std::function<Result<StateIo>(const std::filesystem::path&)> of_image(
      std::span<const std::byte> image);

  [[nodiscard]] const Generations& generations() const noexcept { return generations_; }

 private:
  struct Written;

  [[nodiscard]] Written write_part(const Share& share) const;
  [[nodiscard]] bool publish(std::int64_t step, const std::vector<Written>& written) const;

  Generations generations_;
  int rank_, size_;
  AllGather all_gather_;
};

}  // namespace troupe::rank_process
