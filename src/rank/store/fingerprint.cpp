#include "rank/store/fingerprint.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <vector>

#include "common/ipc/unique_fd.hpp"
#include "rank/store/part_file.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {
namespace {

std::string printable(const std::string& text) {
  std::ostringstream plain;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 0x7f) {
      plain << c;
    } else {
      plain << "\\x" << std::hex << std::setw(2) << std::setfill('0') << int{byte};
    }
  }
  return plain.str();
}

}  // namespace

std::string difference(const Fingerprint& saved, const Fingerprint& now) {
  Fingerprint all = saved;
  all.insert(now.begin(), now.end());
  for (const auto& [name, value] : all) {
    const auto was = saved.find(name), is = now.find(name);
    if (was != saved.end() && is != now.end() && was->second == is->second) continue;
    const auto describe = [](const auto& at, const auto& end) {
      return at == end ? "not there" : at->second.empty() ? "empty" : at->second;
    };
    return name + " was " + describe(was, saved.end()) + " and is " + describe(is, now.end());
  }
  return "";
}

Result<std::string> contents_of(const std::filesystem::path& file) {
  constexpr std::uint64_t kWhole = std::uint64_t{1} << 30, kPiece = 1 << 20;
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return file_error(file);
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    return Error{Errc::invalid, 0, file.string() + ": not a regular file"};
  const auto bytes = std::filesystem::file_size(file, error);
  if (error) return file_error(file, error.value());
  // Only some pieces of a very large file, evenly spaced, and the last one.
  const auto stride = std::max<std::uint64_t>(1, bytes / kWhole) * kPiece;
  std::vector<std::byte> piece(kPiece);
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < bytes;) {
    const auto count = ::pread(fd.get(), piece.data(), piece.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(file);
    if (count == 0) break;
    crc = checksum(std::span(piece).first(static_cast<std::size_t>(count)), crc);
    const auto read = static_cast<std::uint64_t>(count);
    const auto next = stride == kPiece ? at + read : at + stride;
    at = next >= bytes && at + read < bytes ? std::max(at + read, bytes - kPiece) : next;
  }
  std::ostringstream text;
  text << "a file of " << bytes << " bytes with checksum " << std::hex << crc;
  return text.str();
}

Fingerprint in_ascii(const Fingerprint& fingerprint) {
  Fingerprint plain;
  for (const auto& [name, value] : fingerprint) plain.emplace(printable(name), printable(value));
  return plain;
}

}  // namespace troupe::rank_process
