#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include <troupe/checkpoint.hpp>
#include <troupe/lib/file.hpp>

#include "rank/device/device_core.hpp"
#include "rank/store/part_table.hpp"
#include "rank/store/state_io.hpp"

namespace troupe::rank_process {

/// Between device memory and files: pieces of states, as operations of the device host. Their
/// failures are the caller's alone. Any thread; each call waits.
class DirectIo {
 public:
  explicit DirectIo(std::shared_ptr<DeviceCore> device) : device_(std::move(device)) {}

  /// What one operation moves at most: a piece that a fault cuts off is done again, and what else
  /// waits for all operations so far waits for one piece only.
  static constexpr std::uint64_t kPiece = std::uint64_t{128} << 20;

  /// Errors: io, those of any command.
  Result<file::Done> write(const std::filesystem::path& path, const Operand& source,
                           std::uint64_t offset);
  Result<file::Done> read(const std::filesystem::path& path, const Operand& destination,
                          std::uint64_t offset);
  /// Writes a file of this rank into the folder, and removes it again.
  DirectTrial try_folder(const std::filesystem::path& folder, int rank);

 private:
  std::shared_ptr<DeviceCore> device_;
};

/// Moves one piece of a range between device memory and the file at `offset`.
using MovePiece = std::function<Result<file::Done>(const Operand& piece, std::uint64_t offset)>;

/// What the pieces of a range have come to.
struct Pieces {
  std::uint32_t crc = 0;         ///< of the range
  StateIo io = StateIo::direct;  ///< direct, or compat if any piece was
};
/// Moves a range piece by piece, to or from `offset` on.
Result<Pieces> move_range(const Operand& range, std::uint64_t offset, const MovePiece& move);

/// Writes a part whose entries are in device memory, and waits until it is on disk: `table.part`,
/// `parts` and `step` must be set, its checksums are set here. Returns how the buffers went.
/// Errors: io, and those of `write`.
Result<StateIo> write_part(const std::filesystem::path& path, PartTable& table,
                           std::span<const Checkpoint::Committed> entries, const MovePiece& write);

}  // namespace troupe::rank_process
