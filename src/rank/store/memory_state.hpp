#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <troupe/saved_state.hpp>

#include "rank/net/host_group.hpp"
#include "rank/store/disk_state.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {

/// A part that a rank can give of a saved state: its own, or another rank's.
struct HeldPart {
  using Image = std::shared_ptr<const std::vector<std::byte>>;

  std::int64_t step = -1;  ///< -1: nothing that is complete over all ranks
  /// Header and table, as they lie at the begin of the part, and the bytes of all of it.
  std::vector<std::byte> head = {};
  std::uint64_t bytes = 0;
  /// All of it, its checksums compared. Errors: io, invalid (it is damaged).
  std::function<Result<Image>()> image = {};
  /// Parts of one step make one state only if this is the same.
  std::uint32_t state = 0;

  /// A part that is whole in memory.
  static HeldPart in_memory(std::int64_t step, Image image);
};

/// A state whose parts lie with the ranks of a group, any part at any rank: in host memory, or
/// where only some of the ranks reach it.
///
/// A read is three exchanges: who takes part in it, wishes to the holders, bytes back. A rank that
/// wants nothing (more) is in serve() meanwhile.
class MemoryState final : public detail::StateSource {
 public:
  /// The step of the newest state of which the ranks hold all parts, damaged or not; -1: none. All
  /// of the group call it.
  static std::int64_t newest(const HostGroup& group, const std::vector<HeldPart>& held);
  /// The newest state that is complete among what the ranks hold; a part that is damaged costs a
  /// line of log. All of the group call it. Errors: invalid (there is none).
  static Result<std::shared_ptr<MemoryState>> find(const HostGroup& group,
                                                   std::vector<HeldPart> held);

  [[nodiscard]] std::int64_t step() const override { return parts_[0].table.step; }
  [[nodiscard]] int parts() const override { return static_cast<int>(parts_.size()); }
  Result<std::vector<SavedEntry>> entries(int part) override;
  Result<std::vector<std::vector<std::byte>>> read(std::span<const SavedPiece> pieces) override;
  void serve() override;

  /// HeldPart::state of its parts.
  [[nodiscard]] std::uint32_t state() const noexcept { return state_; }

  /// The part that this rank holds for all; nullptr: none of this state.
  [[nodiscard]] const PartTable* own() const;
  /// The bytes of own().
  [[nodiscard]] std::span<const std::byte> own_image() const;
  /// No rank holds more than one part.
  [[nodiscard]] bool is_spread() const;

 private:
  using Image = HeldPart::Image;
  struct Part {
    PartTable table;
    int holder;
  };
  /// A state's name: worlds of several sizes may have saved states of one step.
  struct Complete {
    std::int64_t step;
    std::int32_t parts;
    std::uint32_t state;
    auto operator<=>(const Complete&) const = default;
  };
  using States = std::map<Complete, std::map<int, Part>>;

  MemoryState(const HostGroup& group, std::uint32_t state, std::map<int, Image> images,
              std::vector<Part> parts)
      : group_(&group), state_(state), images_(std::move(images)), parts_(std::move(parts)) {}

  /// The states of which the ranks hold all parts, by what they say.
  static States gather(const HostGroup& group, const std::vector<HeldPart>& held);

  /// Whether any rank reads; this one does if it says so.
  [[nodiscard]] bool anyone_reads(bool this_one) const;
  [[nodiscard]] Result<PieceRange> find_piece(const SavedPiece& piece) const;
  [[nodiscard]] std::vector<std::vector<std::byte>> answer(
      const std::vector<std::vector<std::byte>>& wishes) const;

  const HostGroup* group_;
  std::uint32_t state_;
  std::map<int, Image> images_;  ///< what this rank holds for all, by part
  std::vector<Part> parts_;
};

}  // namespace troupe::rank_process
