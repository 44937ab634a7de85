#include "text.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace troupe::train {

Result<std::vector<std::uint8_t>> read_text(const std::string& path) {
  // A folder says so itself. Others may never end, or wait for somebody who writes.
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  if (std::filesystem::exists(path, ignored) && kind != std::filesystem::file_type::regular &&
      kind != std::filesystem::file_type::directory)
    return Error{Errc::invalid, 0, path + ": not a regular file"};
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes;
  for (std::array<char, 65536> piece; file;) {
    file.read(piece.data(), piece.size());
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + file.gcount());
  }
  if (!file.is_open() || file.bad())
    return Error{Errc::io, errno, path + ": " + std::strerror(errno)};
  return bytes;
}

std::vector<std::uint8_t> made_text() {
  constexpr std::size_t kBytes = std::size_t{1} << 16;
  constexpr const char* kSubjects[] = {"the kernel", "a stream", "the rank", "a message",
                                       "the device", "a matrix", "the host", "a sequence"};
  constexpr const char* kVerbs[] = {"waits for", "copies", "reads", "sends", "follows", "holds"};
  constexpr const char* kEnds[] = {" and stops.\n", ", then goes on.\n", ".\n", " once more.\n"};
  std::mt19937 random(1);  // the standard says which numbers it gives
  const auto one_of = [&random](const auto& words) { return words[random() % std::size(words)]; };
  std::string text;
  while (text.size() < kBytes)
    text.append(one_of(kSubjects))
        .append(" ")
        .append(one_of(kVerbs))
        .append(" ")
        .append(one_of(kSubjects))
        .append(one_of(kEnds));
  return {text.begin(), text.end()};
}

std::uint64_t hash_of(const void* data, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto* at = static_cast<const unsigned char*>(data); bytes > 0; --bytes, ++at)
    hash = (hash ^ *at) * 0x100000001b3;
  return hash;
}

}  // namespace troupe::train
