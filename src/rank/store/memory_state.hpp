#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <troupe/saved_state.hpp>

#include "rank/net/host_group.hpp"
#include "rank/store/disk_state.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {

/// What a rank keeps in host memory of a saved state: its own part, or another rank's.
struct HeldPart {
  std::int64_t step = -1;  ///< -1: nothing that is complete over all ranks
  std::shared_ptr<const std::vector<std::byte>> part;
};

/// A state whose parts lie in the host memory of a group's ranks, any part at any rank.
///
/// A read is three exchanges: who takes part in it, wishes to the holders, bytes back. A rank that
/// wants nothing (more) is in serve() meanwhile.
class MemoryState final : public detail::StateSource {
 public:
  /// The newest state that is complete among what the ranks hold. All of the group call it. Errors:
  /// invalid (there is none).
  static Result<std::shared_ptr<MemoryState>> find(const HostGroup& group,
                                                   const std::vector<HeldPart>& held);

  [[nodiscard]] std::int64_t step() const override { return parts_[0].table.step; }
  [[nodiscard]] int parts() const override { return static_cast<int>(parts_.size()); }
  Result<std::vector<SavedEntry>> entries(int part) override;
  Result<std::vector<std::vector<std::byte>>> read(std::span<const SavedPiece> pieces) override;
  void serve() override;

  /// The part that this rank holds for all; nullptr: none of this state.
  [[nodiscard]] const PartTable* own() const;
  /// The bytes of own().
  [[nodiscard]] std::span<const std::byte> own_image() const;
  /// No rank holds more than one part.
  [[nodiscard]] bool is_spread() const;

 private:
  struct Part {
    PartTable table;
    int holder;
  };

  using Image = std::shared_ptr<const std::vector<std::byte>>;
  MemoryState(const HostGroup& group, std::map<int, Image> images, std::vector<Part> parts)
      : group_(&group), images_(std::move(images)), parts_(std::move(parts)) {}

  /// Whether any rank reads; this one does if it says so.
  [[nodiscard]] bool anyone_reads(bool this_one) const;
  [[nodiscard]] Result<PieceRange> find_piece(const SavedPiece& piece) const;
  [[nodiscard]] std::vector<std::vector<std::byte>> answer(
      const std::vector<std::vector<std::byte>>& wishes) const;

  const HostGroup* group_;
  std::map<int, Image> images_;  ///< what is here, by part
  std::vector<Part> parts_;
};

}  // namespace troupe::rank_process
