#pragma once

#include <cerrno>
#include <filesystem>
#include <span>

#include "common/ipc/unique_fd.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {

/// The error of a failed call on a file, from errno: io, whatever the call lacked. A full disk is
/// no lack of memory.
Error file_error(const std::filesystem::path& path, int error = errno);

/// A file that is being written, perhaps by others too. Errors: io, naming the file.
class NewFile {
 public:
  /// Makes it, or empties the one that is there; `bytes`: how long it is from the start, all zeros.
  static Result<NewFile> create(const std::filesystem::path& path, std::uint64_t bytes);
  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Waits until all that anybody has written is on disk.
  [[nodiscard]] Result<void> finish() const;

 private:
  NewFile(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  UniqueFd fd_;
};

/// Writes a file and waits until it is on disk. Errors: io, naming the file.
Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// A part in a file, open for reading. Everything in the file is checked; errors name the file and
/// what is wrong: io (cannot be read), invalid (is no good part).
class PartFile {
 public:
  /// Reads and checks header, table and size.
  static Result<PartFile> open(const std::filesystem::path& path);

  [[nodiscard]] const PartTable& table() const noexcept { return table_; }
  /// Reads all entries and checks their checksums, piece by piece.
  [[nodiscard]] Result<void> verify() const;
  /// Reads the whole part, of table().bytes bytes, and checks it.
  Result<void> load(std::span<std::byte> image) const;
  /// Reads `bytes` from an offset in the part.
  Result<void> read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  [[nodiscard]] Error wrong(const std::string& what) const;

  std::filesystem::path path_;
  UniqueFd fd_;
  PartTable table_;
};

}  // namespace troupe::rank_process
