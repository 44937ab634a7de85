#pragma once

#include <map>
#include <memory>

#include <troupe/saved_state.hpp>

#include "rank/store/generations.hpp"
#include "rank/store/part_file.hpp"

namespace troupe::rank_process {

/// A saved state on disk. Parts are opened when they are asked for, and compared with the manifest
/// then: parts of different states do not make one. Few stay open at a time, however many ranks
/// saved the state.
class DiskState final : public detail::StateSource {
 public:
  DiskState(Generations generations, Manifest manifest)
      : generations_(std::move(generations)), manifest_(std::move(manifest)) {}

  [[nodiscard]] std::int64_t step() const override { return manifest_.step; }
  [[nodiscard]] int parts() const override { return static_cast<int>(manifest_.parts.size()); }
  Result<std::vector<SavedEntry>> entries(int part) override;
  Result<std::vector<std::vector<std::byte>>> read(std::span<const SavedPiece> pieces) override;
  Result<std::optional<detail::EntryInFile>> file_of(const SavedPiece& whole) override;
  /// Checks a part as a whole. Errors name the file: io, invalid.
  Result<void> verify(int part);

 private:
  static constexpr std::size_t kMostOpen = 8;

  Result<std::shared_ptr<const PartFile>> open(int part);

  Generations generations_;
  Manifest manifest_;
  std::map<int, std::shared_ptr<const PartFile>> open_;
};

/// Where a piece lies in its part. Errors: invalid.
struct PieceRange {
  std::uint64_t offset = 0, bytes = 0;
};
Result<PieceRange> locate(const PartTable& table, const SavedPiece& piece);

}  // namespace troupe::rank_process
