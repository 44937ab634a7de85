#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <troupe/saved_state.hpp>

#include "rank/store/generations.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {

/// Brings states to disk, all ranks of a group together: each writes its part, and once all are
/// there one rank makes them visible. Where each node has a folder of its own, one rank of each
/// node does so.
class StateWriter {
 public:
  /// Gathers a value of every rank of the group.
  using AllGather = std::function<void(std::span<const std::byte> value, std::span<std::byte> all)>;

  /// `publishes`: this rank makes the states of its folder visible. `place`: the folder, in words.
  /// `again`: every state that does not come about costs a line of log, not only the first of
  /// several.
  StateWriter(Generations generations, bool publishes, int size, AllGather all_gather,
              std::string place = "on disk", bool again = true)
      : generations_(std::move(generations)),
        publishes_(publishes),
        size_(size),
        place_(std::move(place)),
        again_(again),
        all_gather_(std::move(all_gather)) {}

  /// What a rank has of a state.
  struct Share {
    const PartTable* table = nullptr;  ///< nullptr: nothing; with its checksums after `write`
    /// Writes the part to this file, and waits until it is on disk; how it went.
    std::function<Result<StateIo>(const std::filesystem::path&)> write = {};
    bool lost = false;  ///< it should have a part
    /// Another rank's part, of the same step, that is kept beside it; null: none.
    std::shared_ptr<const std::vector<std::byte>> copy = nullptr;
    int copy_of = -1;          ///< whose
    double stall_seconds = 0;  ///< how long the program was held up by it
  };
  struct Outcome {
    std::uint64_t bytes;   ///< of all parts
    double stall_seconds;  ///< the longest
    StateIo io;            ///< direct if all parts were, compat if any was
    double write_seconds;  ///< the longest that a part took
  };
  /// All ranks call it. nullopt on all of them if the state did not come about, in one of the
  /// folders at least: the log says why.
  [[nodiscard]] std::optional<Outcome> write(std::int64_t step, const Share& share);

  /// For Share::write, of a part that is whole in memory, which must outlive the call.
  static std::function<Result<StateIo>(const std::filesystem::path&)> of_image(
      std::span<const std::byte> image);

  [[nodiscard]] const Generations& generations() const noexcept { return generations_; }

 private:
  struct Written;

  [[nodiscard]] Written write_part(const Share& share) const;
  [[nodiscard]] bool publish(std::int64_t step, const std::vector<Written>& written) const;
  void tell(const std::string& what) const;

  Generations generations_;
  bool publishes_;
  int size_;
  std::string place_;
  bool again_;
  bool failed_ = false;  ///< the last one did not come about
  AllGather all_gather_;
};

}  // namespace troupe::rank_process
