#include "rank/store/part_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <troupe/progress.hpp>

#include "common/ipc/file_size_signal.hpp"

namespace troupe::rank_process {
Error file_error(const std::filesystem::path& path, int error) {
  return {Errc::io, error, path.string() + ": " + std::strerror(error)};
}

Result<NewFile> NewFile::create(const std::filesystem::path& path, std::uint64_t bytes) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  const ipc::NoFileSizeSignal held_back;
  if (!fd) return file_error(path);
  if (bytes != 0 && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return file_error(path);
  return NewFile(path, std::move(fd));
}

Result<void> NewFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  const ipc::NoFileSizeSignal held_back;
  while (!bytes.empty()) {
    const auto count = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path_);
    if (count == 0) return file_error(path_, ENOSPC);  // no progress, and no reason given
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<void> NewFile::finish() const {
  return ::fsync(fd_.get()) == 0 ? Result<void>() : file_error(path_);
}

Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  constexpr std::size_t kPiece = std::size_t{64}
                                 << 20;  // of what a disk takes in a fraction of a second
  Progress progress("writing " + path.string(), bytes.size() >> 20, "MiB");
  const auto file = NewFile::create(path, 0);
  if (!file) return file.error();
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    if (auto done = file->write(at, piece); !done) return done;
    progress.reach((at + piece.size()) >> 20);
  }
  return file->finish();
}

Error PartFile::wrong(const std::string& what) const {
  return {Errc::invalid, 0, path_.string() + ": " + what};
}

Result<PartFile> PartFile::open(const std::filesystem::path& path) {
  PartFile file;
  file.path_ = path;
  file.fd_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.fd_ || ::fstat(file.fd_.get(), &status) != 0) return file_error(path);
  if (!S_ISREG(status.st_mode)) return file.wrong("it is no file");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  std::vector<std::byte> head(std::min<std::uint64_t>(bytes, kPartHeaderBytes));
  if (auto done = file.read(0, head); !done) return done.error();
  const auto size = head_bytes(head);
  if (!size) return file.wrong(size.error().message);
  head.resize(std::min(bytes, *size));
  if (auto done = file.read(0, head); !done) return done.error();
  auto table = read_table(head, bytes);
  if (!table) return file.wrong(table.error().message);
  file.table_ = std::move(*table);
  return file;
}

Result<void> PartFile::verify() const {
  constexpr std::uint64_t kPiece = 4u << 20;
  std::vector<std::byte> piece;
  Progress progress("checking " + path_.string(), table_.bytes >> 20, "MiB");
  for (const auto& place : table_.places) {
    std::uint32_t crc = 0;
    for (std::uint64_t at = 0; at < place.bytes; at += kPiece) {
      piece.resize(std::min(kPiece, place.bytes - at));
      if (auto done = read(place.offset + at, piece); !done) return done;
      crc = checksum(piece, crc);
      progress.reach((place.offset + at + piece.size()) >> 20);
    }
    if (crc != place.crc) return wrong("the checksum of entry " + place.entry.name + " is wrong");
  }
  return {};
}

Result<void> PartFile::load(std::span<std::byte> image) const {
  check(image.size() == table_.bytes, "PartFile::load: room for the whole part");
  if (auto done = read(0, image); !done) return done;
  const auto table = open_image(image);
  if (!table) return wrong(table.error().message);
  return {};
}

Result<void> PartFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto count = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path_);
    if (count == 0) return wrong("it became shorter while it was read");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

}  // namespace troupe::rank_process
