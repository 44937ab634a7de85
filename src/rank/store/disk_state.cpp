#include "rank/store/disk_state.hpp"

namespace troupe::rank_process {

Result<PieceRange> locate(const PartTable& table, const SavedPiece& piece) {
  const auto* const place = table.find(piece.entry);
  if (place == nullptr)
    return Error{Errc::invalid, 0, "the saved state has no entry " + piece.entry};
  const auto& entry = place->entry;
  if (piece.first > entry.count || piece.count > entry.count - piece.first) {
    return Error{
        Errc::invalid, 0,
        "entry " + piece.entry + " was saved with " + std::to_string(entry.count) + " elements"};
  }
  return PieceRange{place->offset + piece.first * entry.element_bytes,
                    piece.count * entry.element_bytes};
}

Result<std::shared_ptr<const PartFile>> DiskState::open(int part) {
  if (part < 0 || part >= parts())
    return Error{Errc::invalid, 0, "the saved state has no part " + std::to_string(part)};
  if (const auto it = open_.find(part); it != open_.end()) return it->second;
  const auto path = generations_.part(step(), part);
  auto file = PartFile::open(path);
  if (!file) return file.error();
  const auto& table = file->table();
  const auto& promised = manifest_.parts[static_cast<std::size_t>(part)];
  if (table.part != part || table.parts != parts() || table.step != step() ||
      table.bytes != promised.bytes || table.head_crc != promised.crc) {
    return Error{Errc::invalid, 0, path.string() + ": it is not the part that its manifest names"};
  }
  // Readers go from part to part: which one is let go hardly matters.
  if (open_.size() == kMostOpen) open_.erase(open_.begin());
  auto opened = std::make_shared<const PartFile>(std::move(*file));
  open_.emplace(part, opened);
  return opened;
}

Result<std::vector<SavedEntry>> DiskState::entries(int part) {
  const auto file = open(part);
  if (!file) return file.error();
  std::vector<SavedEntry> entries;
  for (const auto& place : (*file)->table().places) entries.push_back(place.entry);
  return entries;
}

Result<std::vector<std::vector<std::byte>>> DiskState::read(std::span<const SavedPiece> pieces) {
  std::vector<std::vector<std::byte>> all;
  for (const auto& piece : pieces) {
    const auto file = open(piece.part);
    if (!file) return file.error();
    const auto range = locate((*file)->table(), piece);
    if (!range) return range.error();
    auto& bytes = all.emplace_back(range->bytes);
    if (auto done = (*file)->read(range->offset, bytes); !done) return done.error();
  }
  return all;
}

Result<std::optional<detail::EntryInFile>> DiskState::file_of(const SavedPiece& whole) {
  const auto file = open(whole.part);
  if (!file) return file.error();
  const auto* const place = (*file)->table().find(whole.entry);
  if (place == nullptr)
    return Error{Errc::invalid, 0, "the saved state has no entry " + whole.entry};
  return std::optional(detail::EntryInFile{generations_.part(step(), whole.part).string(),
                                           place->offset, place->bytes, place->crc});
}

Result<void> DiskState::verify(int part) {
  const auto file = open(part);
  return file.ok() ? (*file)->verify() : Result<void>(file.error());
}

}  // namespace troupe::rank_process
