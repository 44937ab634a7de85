#include "common/wire/opened_library.hpp"

namespace troupe::wire {

std::string encode(const OpenedLibrary& library) {
  // A text ends at its first 0, wherever it comes from.
  const auto ended = [](const std::string& text) { return std::string(text.c_str()) + '\0'; };
  auto bytes = ended(library.name);
  for (const auto& loaded : library.stands_on)
    bytes += ended(loaded.name) + ended(loaded.version) + ended(loaded.file);
  return bytes;
}

Result<OpenedLibrary> decode_opened_library(std::string_view bytes) {
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    const auto end = bytes.find('\0');
    if (end == std::string_view::npos) break;
    texts.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  if (!bytes.empty() || texts.size() % 3 != 1 || texts.front().empty())
    return Error{Errc::invalid, 0, "malformed description of an opened library"};
  OpenedLibrary library{texts.front(), {}};
  for (std::size_t i = 1; i < texts.size(); i += 3)
    library.stands_on.push_back({texts[i], texts[i + 1], texts[i + 2]});
  return library;
}

}  // namespace troupe::wire
