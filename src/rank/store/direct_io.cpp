#include "rank/store/direct_io.hpp"

#include <algorithm>

#include <troupe/progress.hpp>

#include "rank/store/part_file.hpp"

namespace troupe::rank_process {
namespace {

/// Submits what nobody but its submitter wants to know the failure of.
class QuietSubmitter final : public detail::Submitter {
 public:
  explicit QuietSubmitter(CommandPort& port) : port_(&port) {}
  Future<void> submit(const detail::CommandView& command) override {
    auto quiet = command;
    quiet.quiet = true;
    return port_->submit(quiet);
  }
  Future<void> refuse(Error error) override { return Future<void>(std::move(error)); }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return port_->result_cell(bytes);
  }

 private:
  CommandPort* port_;
};

}  // namespace

Result<file::Done> DirectIo::write(const std::filesystem::path& path, const Operand& source,
                                   std::uint64_t offset) {
  QuietSubmitter submitter(device_->port());
  file::Write op;
  op.dtype = DType::u8, op.source = source;
  return file::submit_unordered(submitter, op, path, {.offset = offset}).wait();
}

Result<file::Done> DirectIo::read(const std::filesystem::path& path, const Operand& destination,
                                  std::uint64_t offset) {
  QuietSubmitter submitter(device_->port());
  file::Read op;
  op.dtype = DType::u8, op.destination = destination;
  return file::submit_unordered(submitter, op, path, {.offset = offset}).wait();
}

DirectTrial DirectIo::try_folder(const std::filesystem::path& folder, int rank) {
  constexpr std::uint64_t kBytes = 8192;  // two blocks: also for a small disk
  // Should this process end meanwhile, the name has the file removed with other leftovers.
  const auto path = folder / ("step-trial-" + std::to_string(rank) + ".tmp");
  const auto memory = device_->pools().allocate(kBytes, DType::u8);
  const auto done =
      memory.ok() ? write(path, memory->where, 0) : Result<file::Done>(memory.error());
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (done.ok()) {
    if (done->way == file::Way::direct) return {DirectTrial::Outcome::direct, {}};
    return {DirectTrial::Outcome::not_direct,
            std::string(done->words()) + ": the data would go through host memory"};
  }
  const auto code = done.error().code;
  const bool found_out = code == Errc::io || code == Errc::unsupported || code == Errc::library ||
                         code == Errc::out_of_memory;
  return {found_out ? DirectTrial::Outcome::not_direct : DirectTrial::Outcome::unknown,
          done.error().message};
}

Result<Pieces> move_range(const Operand& range, std::uint64_t offset, const MovePiece& move) {
  Pieces pieces;
  for (std::uint64_t at = 0; at < range.bytes; at += DirectIo::kPiece) {
    auto piece = range;
    piece.offset += at, piece.bytes = std::min(DirectIo::kPiece, range.bytes - at);
    const auto done = move(piece, offset + at);
    if (!done) return done.error();
    pieces.crc = checksum_of_both(pieces.crc, done->crc32, piece.bytes);
    if (done->way == file::Way::compat) pieces.io = StateIo::compat;
  }
  return pieces;
}

Result<StateIo> write_part(const std::filesystem::path& path, PartTable& table,
                           std::span<const Checkpoint::Committed> entries, const MovePiece& write) {
  check(entries.size() == table.places.size(), "a commit has other entries than its part");
  const auto part = NewFile::create(path, table.bytes);
  if (!part) return part.error();
  Progress progress("writing " + path.string(), table.bytes >> 20, "MiB");
  auto io = StateIo::direct;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& place = table.places[i];
    if (place.entry.dtype) {
      const auto moved = move_range(entries[i].device, place.offset, write);
      if (!moved) return moved.error();
      place.crc = moved->crc;
      if (moved->io == StateIo::compat) io = StateIo::compat;
    } else {
      place.crc = checksum(entries[i].host);
      if (auto done = part->write(place.offset, entries[i].host); !done) return done.error();
    }
    progress.reach((place.offset + place.bytes) >> 20);
  }
  if (auto done = part->write(0, make_head(table)); !done) return done.error();
  if (auto done = part->finish(); !done) return done.error();
  return io;
}

}  // namespace troupe::rank_process
